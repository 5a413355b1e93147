//! What one line of code declares.

use std::ops::Range;

use crate::language::{Language, Syntax};

/// A declaration on one line.
pub(super) struct Declared {
    /// Where the name is in the line.
    pub(super) name: Range<usize>,
    /// Whether a keyword says that it is a definition.
    pub(super) has_keyword: bool,
    /// Whether it is a function: what is inside of it is a part of it.
    pub(super) is_function: bool,
    /// Whether it counts only with a block of its own.
    pub(super) needs_block: bool,
}

/// Words that may come before the keyword of a definition.
const MODIFIERS: &[&str] = &[
    "pub",
    "export",
    "default",
    "async",
    "static",
    "public",
    "private",
    "protected",
    "internal",
    "final",
    "abstract",
    "unsafe",
    "extern",
    "inline",
    "virtual",
    "override",
    "partial",
    "sealed",
    "readonly",
    "declare",
    "open",
    "data",
    "local",
    "suspend",
    "const",
    "constexpr",
    "template",
    "friend",
    "comptime",
    "case",
    "implicit",
    "lazy",
    "mutating",
    "typedef",
    "new",
    "fileprivate",
    "companion",
    "inner",
    "tailrec",
    "operator",
    "external",
];

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

/// The definition that a line begins; none if it begins none.
pub(super) fn declared_name(language: &Language, line: &str) -> Option<Declared> {
    let indent = line.len() - line.trim_start().len();
    // A line this long is data or minified.
    if line.len() > 2000 {
        return None;
    }
    by_keyword(language, line, indent)
        .or_else(|| assigned_function(language, line, indent))
        .or_else(|| by_signature(language, line, indent))
}

/// `pub async fn name`, `class Name`, `func (receiver) Name`, `impl Trait for Name`.
fn by_keyword(language: &Language, line: &str, mut at: usize) -> Option<Declared> {
    loop {
        let word = word_at(line, at)?;
        let text = &line[word.clone()];
        let after = &line[word.end..];
        let is_macro = text == "macro_rules" && after.starts_with('!');
        if is_macro || language.keywords.contains(&text) && !(text == "const" && after.trim_start().starts_with("fn "))
        {
            let from = word.end + usize::from(is_macro);
            let name = name_after(language, line, text, from)?;
            let is_function = matches!(text, "fn" | "def" | "func" | "function" | "fun" | "defp" | "defmacro");
            let needs_block = language.syntax == Syntax::TypedBraces;
            return Some(Declared { name, has_keyword: true, is_function, needs_block });
        }
        if !MODIFIERS.contains(&text) {
            return None;
        }
        at = skip_modifier(line, word.end);
    }
}

/// After a modifier: `pub(crate)`, `extern "C"`, and the space that follows.
fn skip_modifier(line: &str, at: usize) -> usize {
    let rest = line[at..].trim_start();
    let rest = match rest.as_bytes().first() {
        Some(b'(') => rest.find(')').map_or("", |end| &rest[end + 1..]),
        Some(b'"') => rest[1..].find('"').map_or("", |end| &rest[end + 2..]),
        Some(b'<') => rest.find('>').map_or("", |end| &rest[end + 1..]),
        _ => rest,
    };
    let rest = rest.trim_start();
    line.len() - rest.len()
}

/// The name that a keyword is followed by.
fn name_after(language: &Language, line: &str, keyword: &str, at: usize) -> Option<Range<usize>> {
    let rest = &line[at..];
    if keyword == "impl" {
        return implemented_type(line, at);
    }
    // Generators, receivers of Go methods, attributes of C.
    let skipped = rest.trim_start_matches([' ', '\t', '*', '&']);
    let mut from = line.len() - skipped.len();
    if language.name == "go" && keyword == "func" && skipped.starts_with('(') {
        from += skipped.find(')')? + 1;
        from += line[from..].len() - line[from..].trim_start().len();
    }
    if from == at && !rest.starts_with('*') {
        return None;
    }
    let name = word_at(line, from)?;
    // `defmodule A.B`, `def self.name`, `function table.name`, `namespace A::B`: the last name.
    let mut name = name;
    while let Some(separator) = ["::", ".", ":"].iter().find(|separator| line[name.end..].starts_with(**separator)) {
        match word_at(line, name.end + separator.len()) {
            Some(next)
                if next.start == name.end + separator.len()
                    && language.name != "python"
                    && language.syntax != Syntax::TypedBraces =>
            {
                name = next
            }
            _ => break,
        }
    }
    let text = &line[name.clone()];
    let is_name = !text.starts_with(|c: char| c.is_ascii_digit()) && !matches!(text, "_" | "for" | "of" | "in" | "fn");
    is_name.then_some(name)
}

/// `impl<T> Trait for Name<T>` is about `Name`.
fn implemented_type(line: &str, at: usize) -> Option<Range<usize>> {
    let rest = &line[at..];
    let mut from = at + rest.len() - rest.trim_start().len();
    if line[from..].starts_with('<') {
        let mut depth = 0;
        let end = line[from..].bytes().position(|byte| {
            depth += i32::from(byte == b'<') - i32::from(byte == b'>');
            depth == 0
        })?;
        from += end + 1;
    }
    if let Some(after) = line[from..].find(" for ") {
        from += after + 5;
    }
    let mut name = word_at(line, from + line[from..].find(|c: char| c.is_alphanumeric() || c == '_')?)?;
    while line[name.end..].starts_with("::") {
        name = word_at(line, name.end + 2)?;
    }
    Some(name)
}

/// `const name = (…) =>`, `name = function`, `export const name = …` in JavaScript and TypeScript.
fn assigned_function(language: &Language, line: &str, indent: usize) -> Option<Declared> {
    if !matches!(language.name, "javascript" | "typescript") {
        return None;
    }
    let is_exported = line[indent..].starts_with("export ");
    let rest = line[indent..].trim_start_matches("export ").trim_start_matches("default ");
    let at = line.len() - rest.len();
    let keyword = ["const ", "let ", "var "].iter().find(|keyword| rest.starts_with(**keyword));
    let name = word_at(line, at + keyword.map_or(0, |keyword| keyword.len()))?;
    let after = line[name.end..].trim_start();
    let is_function = after.contains("=>") || after.contains("function");
    let is_assigned = after.starts_with('=') && !after.starts_with("==") || keyword.is_some() && after.starts_with(':');
    if !is_assigned || !(is_function || is_exported || keyword.is_some() && indent == 0) {
        return None;
    }
    Some(Declared { name, has_keyword: keyword.is_some() && is_function, is_function, needs_block: false })
}

/// `Type name(arguments) {` in C and its relatives, and methods of classes in JavaScript.
fn by_signature(language: &Language, line: &str, indent: usize) -> Option<Declared> {
    let is_script = matches!(language.name, "javascript" | "typescript");
    if language.syntax != Syntax::TypedBraces && !is_script {
        return None;
    }
    let open = line.find('(')?;
    let before = line[indent..open].trim_end();
    let ends_as_statement =
        line.trim_end().ends_with(';') || before.contains(['=', '"', '\'', '!', '+', '|', '{', '}']);
    if before.is_empty() || ends_as_statement || is_script && before.contains('.') {
        return None;
    }
    let end = indent + before.len();
    let start = before
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$' || c == '~'))
        .map_or(indent, |at| indent + at + 1);
    let start = start + line[start..end].find(|c: char| c != '~').unwrap_or(0);
    let name = start..end;
    let text = &line[name.clone()];
    let first = before.split_whitespace().next().unwrap_or_default();
    let is_name = text.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$');
    if !is_name || STATEMENTS.contains(&text) || STATEMENTS.contains(&first) && first != "new" {
        return None;
    }
    Some(Declared { name, has_keyword: false, is_function: true, needs_block: true })
}

/// The word at a position, after spaces.
fn word_at(line: &str, at: usize) -> Option<Range<usize>> {
    let rest = line.get(at..)?;
    let start = at + rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let length = line[start..].find(|c: char| !is_part(c)).unwrap_or(line.len() - start);
    (length > 0).then(|| start..start + length)
}
