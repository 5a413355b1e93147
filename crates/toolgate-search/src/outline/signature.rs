//! Functions that no keyword announces: those of C and its relatives, methods, functions in a variable, and cases of a test.

use std::ops::Range;

use super::declaration::{Declared, enclosed, word_at};
use crate::language::{Language, Syntax};

/// Words that look like a function's name where a statement begins.
const STATEMENTS: &[&str] = &[
    "if",
    "for",
    "while",
    "switch",
    "return",
    "catch",
    "else",
    "do",
    "try",
    "throw",
    "new",
    "delete",
    "sizeof",
    "using",
    "case",
    "await",
    "yield",
    "assert",
    "synchronized",
    "lock",
    "foreach",
    "with",
    "match",
    "elif",
    "until",
    "select",
    "defined",
    "typeof",
    "super",
    "this",
    "function",
    "import",
    "require",
    "fixed",
    "unsafe",
    "not",
    "and",
    "or",
    "in",
];

/// `const name = (…) =>`, `name = function`, `owner.name = function`, `export const name = …` in JavaScript and TypeScript.
pub(super) fn assigned_function(language: &Language, line: &str, indent: usize) -> Option<Declared> {
    if !language.is_script() {
        return None;
    }
    if let Some(member) = assigned_member(line, indent) {
        return Some(member);
    }
    let is_exported = line[indent..].starts_with("export ");
    let rest = line[indent..].trim_start_matches("export ").trim_start_matches("default ");
    let at = line.len() - rest.len();
    let keyword = ["const ", "let ", "var "].iter().find(|keyword| rest.starts_with(**keyword));
    let name = word_at(line, at + keyword.map_or(0, |keyword| keyword.len()))?;
    let after = line[name.end..].trim_start();
    let is_function = after.contains("=>") || has_function(after);
    let is_assigned = after.starts_with('=') && !after.starts_with("==") || keyword.is_some() && after.starts_with(':');
    let is_import = after.trim_start_matches(['=', ' ']).starts_with("require(");
    if !is_assigned || is_import || !(is_function || is_exported || keyword.is_some() && indent == 0) {
        return None;
    }
    Some(Declared { name, has_keyword: keyword.is_some() && is_function, is_function, needs_block: false })
}

/// Whether `function` begins a function in a text, and isn't only mentioned as in `typeof x === 'function'`.
fn has_function(text: &str) -> bool {
    text.match_indices("function").any(|(at, word)| text[at + word.len()..].starts_with(['(', ' ', '*']))
}

/// `exports.name = function`, `Type.prototype.name = (…) =>`.
fn assigned_member(line: &str, indent: usize) -> Option<Declared> {
    let mut name = word_at(line, indent)?;
    let mut has_owner = false;
    while line[name.end..].starts_with('.') {
        name = word_at(line, name.end + 1).filter(|next| next.start == name.end + 1)?;
        has_owner = true;
    }
    let value = line[name.end..].trim_start().strip_prefix('=')?.trim_start();
    let value = value.strip_prefix("async").map_or(value, str::trim_start);
    let is_arrow = || value.find("=>").is_some_and(|arrow| is_parameters(value[..arrow].trim()));
    let is_function = value.strip_prefix("function").is_some_and(|rest| rest.starts_with(['(', ' ', '*']));
    let is_declared = has_owner && &line[name.clone()] != "exports" && (is_function || is_arrow());
    is_declared.then_some(Declared { name, has_keyword: false, is_function: true, needs_block: false })
}

/// Whether this is all that an arrow is preceded by: a name, or names in parentheses.
fn is_parameters(text: &str) -> bool {
    text.starts_with('(') && enclosed(text, '(', ')') == Some(text.len())
        || !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

/// `it('does this', () => {` is called `does this`.
pub(super) fn test_case(language: &Language, line: &str, indent: usize) -> Option<Declared> {
    const CASES: [&str; 6] = ["describe", "it", "test", "suite", "context", "bench"];
    if !language.is_script() {
        return None;
    }
    let word = word_at(line, indent).filter(|word| CASES.contains(&&line[word.clone()]))?;
    let open = word.end + line[word.end..].find('(')?;
    let quote = line[open + 1..].chars().next().filter(|first| "'\"`".contains(*first))?;
    let start = open + 2;
    let end = start + line[start..].find(quote).filter(|length| *length > 0)?;
    Some(Declared { name: start..end, has_keyword: true, is_function: true, needs_block: true })
}

/// `Type name(arguments) {` in C and its relatives, and methods of classes in JavaScript.
pub(super) fn by_signature(language: &Language, line: &str, indent: usize) -> Option<Declared> {
    if language.syntax != Syntax::TypedBraces && !language.is_script() {
        return None;
    }
    let indent = indent + foreign_length(language, &line[indent..]);
    let (name, open) = operator_name(language, line, indent)
        .or_else(|| getter_name(language, line, indent))
        .or_else(|| plain_name(language, line, indent))?;
    let before = line[indent..name.start].trim_end();
    let after = line[open..].trim_end();
    let is_member = declares_without_block(language) && !before.is_empty() && !before.ends_with('.');
    let is_call = after.ends_with(';') && !is_member;
    let has_other = before.contains(['=', '"', '\'', '!', '+', '|', '{', '}', '(']);
    let is_script = language.is_script();
    if is_call || has_other || is_script && (before.contains(['.', '?']) || !is_method(after)) {
        return None;
    }
    let first = line[indent..].split_whitespace().next().unwrap_or_default();
    if STATEMENTS.contains(&&line[name.clone()]) || before == "new" || STATEMENTS.contains(&first) && first != "new" {
        return None;
    }
    // In scripts, a block after the arguments says as much as a keyword.
    let has_keyword = is_script && enclosed(after, '(', ')').is_some();
    Some(Declared {
        name,
        has_keyword,
        is_function: true,
        needs_block: !(after.ends_with(';') || is_expression(language, after)),
    })
}

/// Whether a function's body is an expression after an arrow, or may be one after arguments on several lines.
fn is_expression(language: &Language, after: &str) -> bool {
    let goes_on = language.name == "dart" && enclosed(after, '(', ')').is_none();
    goes_on || matches!(language.name, "dart" | "csharp") && after.contains("=>")
}

/// `Type get name` of Dart.
fn getter_name(language: &Language, line: &str, indent: usize) -> Option<(Range<usize>, usize)> {
    let at = line[indent..]
        .find("get ")
        .filter(|at| language.name == "dart" && (*at == 0 || line[indent..][..*at].ends_with(' ')))?;
    let name = word_at(line, indent + at + 4)?;
    let goes_on = line[name.end..].trim_start();
    (goes_on.is_empty() || goes_on.starts_with(['{', ';']) || goes_on.starts_with("=>") || goes_on.starts_with("async"))
        .then(|| (name.clone(), name.end))
}

/// How long `extern "C"` is at the beginning, and `template <…>`.
fn foreign_length(language: &Language, text: &str) -> usize {
    let rest = match (language.name, text.strip_prefix("extern \"C\" "), text.strip_prefix("template")) {
        ("c" | "cpp", Some(rest), _) => rest,
        ("cpp", _, Some(rest)) => {
            let rest = rest.trim_start();
            enclosed(rest, '<', '>').map_or(rest, |end| rest[end..].trim_start())
        }
        _ => text,
    };
    text.len() - rest.len()
}

/// `operator==` and where its arguments begin.
fn operator_name(language: &Language, line: &str, indent: usize) -> Option<(Range<usize>, usize)> {
    if !matches!(language.name, "cpp" | "csharp") {
        return None;
    }
    let start =
        indent + line[indent..].find("operator").filter(|at| line[indent..][..*at].ends_with([' ', ':', '&', '*']))?;
    let after = start + "operator".len();
    let symbol = line[after..].trim_start();
    let call = if symbol.starts_with("()") { 2 } else { 0 };
    let open = line.len() - symbol.len() + call + symbol[call..].find('(')?;
    Some((start..start + line[start..open].trim_end().len(), open))
}

/// The name before the first parenthesis, and where that is.
fn plain_name(language: &Language, line: &str, indent: usize) -> Option<(Range<usize>, usize)> {
    let open = indent + line[indent..].find('(')?;
    let mut end = indent + line[indent..open].trim_end().len();
    // `T max<T>(…)`
    if line[..end].ends_with('>') && matches!(language.name, "csharp" | "dart" | "typescript") {
        end = indent + generics_start(&line[indent..end])?;
    }
    let is_part = |c: char| {
        let others = match language.name {
            "bash" => "_:-.@",
            "dart" => "_$.",
            _ => "_$",
        };
        c.is_alphanumeric() || others.contains(c)
    };
    let start = line[indent..end].rfind(|c: char| !is_part(c));
    let start = start.map_or(indent, |at| indent + at + line[indent + at..].chars().next().map_or(1, char::len_utf8));
    let is_name = line[start..end].starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$');
    is_name.then_some((start..end, open))
}

/// Where `<…>` at the end of a text begins.
fn generics_start(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, character) in text.char_indices().rev() {
        depth = match character {
            '>' => depth + 1,
            '<' => depth.checked_sub(1)?,
            _ => depth,
        };
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Whether functions without a block are declared among a type's members, as in interfaces.
fn declares_without_block(language: &Language) -> bool {
    matches!(language.name, "java" | "csharp" | "dart")
}

/// Whether arguments are those of a method, which a block follows, and not those of a call.
fn is_method(arguments: &str) -> bool {
    match enclosed(arguments, '(', ')') {
        Some(end) => matches!(arguments[end..].trim_start().as_bytes().first(), Some(b'{' | b':')),
        None => !arguments.contains("=>") && !arguments.contains("function"),
    }
}
