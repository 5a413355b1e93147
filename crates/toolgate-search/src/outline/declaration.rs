//! What one line of code declares.

use std::ops::Range;

use super::signature::{assigned_function, by_signature, test_case};
use crate::language::{Language, Syntax};

/// A declaration on one line.
pub(super) struct Declared {
    /// Where the name is in the line. Empty where it comes after the block.
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
    "actual",
    "expect",
    "infix",
    "value",
    "annotation",
    "noinline",
    "convenience",
    "required",
    "indirect",
    "nonisolated",
    "factory",
    "covariant",
    "base",
    "threadlocal",
];

/// The definition that a line begins; none if it begins none.
pub(super) fn declared_name(language: &Language, line: &str) -> Option<Declared> {
    let indent = line.len() - line.trim_start().len();
    // A line this long is data or minified.
    if line.len() > 2000 || is_comment(language, &line[indent..]) {
        return None;
    }
    let begin = after_annotations(language, line, indent)?;
    by_keyword(language, line, begin)
        .or_else(|| assigned_function(language, line, begin))
        .or_else(|| test_case(language, line, begin))
        .or_else(|| by_signature(language, line, begin))
}

/// Whether a line is a comment, a line of one, or one for the preprocessor.
fn is_comment(language: &Language, text: &str) -> bool {
    let is_commented = !language.line_comment.is_empty() && text.starts_with(language.line_comment);
    let is_block = language.line_comment == "//" && (text.starts_with("/*") || text.starts_with("* "));
    is_commented || is_block || language.has_preprocessor() && text.starts_with('#')
}

/// Where a line begins after annotations such as `@Test`, `@Named("a")` and, in C#, `[Fact]`. None if there is nothing else.
pub(super) fn after_annotations(language: &Language, line: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = &line[at..];
        let end = match rest.as_bytes().first()? {
            b'@' if language.syntax != Syntax::Indentation && !rest.starts_with("@interface") => {
                let end = rest[1..].find(|c: char| !(c.is_alphanumeric() || "_.:".contains(c)));
                let end = end.map_or(rest.len(), |end| end + 1);
                end + enclosed(&rest[end..], '(', ')').unwrap_or(0)
            }
            b'[' if language.name == "csharp" => enclosed(rest, '[', ']')?,
            b'@' if language.name == "java" => return Some(at + 1),
            _ => return Some(at),
        };
        let after = rest[end..].trim_start();
        if end == 1 || after.is_empty() || after.starts_with('(') {
            return None;
        }
        at = line.len() - after.len();
    }
}

/// How long the part in brackets is with which a text begins; none if it begins with none, or they aren't closed.
pub(super) fn enclosed(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, character) in text.char_indices() {
        if character == open {
            depth += 1;
        } else if character == close && !text[..at].ends_with(['-', '=']) {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 {
            return (at > 0).then_some(at + character.len_utf8());
        }
    }
    None
}

/// `pub async fn name`, `class Name`, `func (receiver) Name`, `impl Trait for Name`.
fn by_keyword(language: &Language, line: &str, mut at: usize) -> Option<Declared> {
    loop {
        let word = word_at(line, at)?;
        let text = &line[word.clone()];
        let after = &line[word.end..];
        if text == "macro_rules" && after.starts_with('!') {
            return Some(of_keyword(language, text, name_after(language, line, text, word.end + 1)?));
        }
        if language.name == "swift" && matches!(text, "init" | "subscript") && after.starts_with(['(', '<', '?']) {
            return Some(Declared { name: word, has_keyword: true, is_function: true, needs_block: false });
        }
        if language.keywords.contains(&text) && !(text == "const" && after.trim_start().starts_with("fn ")) {
            return match next_keyword(language, line, word.end) {
                Some(next) => by_keyword(language, line, next),
                None if is_use_of_type(language, line, word.end) => None,
                None => {
                    let after_block = || is_anonymous_typedef(language, line).then_some(line.len()..line.len());
                    let name = name_after(language, line, text, word.end).or_else(after_block)?;
                    Some(of_keyword(language, text, name))
                }
            };
        }
        if !MODIFIERS.contains(&text) {
            return None;
        }
        at = skip_modifier(line, word.end);
    }
}

/// Where the next keyword is in `enum class Name`, `class func name` and `typedef struct name`.
fn next_keyword(language: &Language, line: &str, at: usize) -> Option<usize> {
    let next = word_at(line, at)?;
    let is_keyword = language.has_braces() && language.keywords.contains(&&line[next.clone()]);
    let goes_on = line[next.end..].starts_with([' ', '\t']) || line[next.end..].is_empty();
    (is_keyword && goes_on && next.start > at).then_some(next.start)
}

/// `struct name *function(…)` and `enum name variable` of C: no definition of the type.
fn is_use_of_type(language: &Language, line: &str, at: usize) -> bool {
    let Some(name) = word_at(line, at).filter(|_| matches!(language.name, "c" | "cpp")) else { return false };
    let rest = line[name.end..].trim_start();
    let goes_on = rest.starts_with(['{', ':', '<']) || rest.starts_with("final") || rest.starts_with("//");
    // Attributes and macros come between the keyword and the name: `class API_EXPORT Name {`.
    !(rest.is_empty()
        || goes_on
        || rest.starts_with("=")
        || line.trim_end().ends_with('{') && !rest.contains(['(', '=']))
}

/// `typedef struct {`, whose name comes after its block.
fn is_anonymous_typedef(language: &Language, line: &str) -> bool {
    matches!(language.name, "c" | "cpp") && line.starts_with("typedef ") && line.trim_end().ends_with('{')
}

fn of_keyword(language: &Language, keyword: &str, name: Range<usize>) -> Declared {
    let is_function = matches!(keyword, "fn" | "def" | "func" | "function" | "fun" | "defp" | "defmacro");
    // Values inside of functions are parts of them.
    let is_value = keyword == "val" || keyword == "const" && language.name == "zig";
    let needs_block = language.syntax == Syntax::TypedBraces;
    Declared { name, has_keyword: !is_value, is_function, needs_block }
}

/// After a modifier: `pub(crate)`, `private[this]`, `extern "C"`, `template <…>`, and the space that follows.
fn skip_modifier(line: &str, at: usize) -> usize {
    let rest = line[at..].trim_start();
    let enclosed = |open, close| enclosed(rest, open, close).map_or("", |end| &rest[end..]);
    let rest = match rest.as_bytes().first() {
        Some(b'(') => enclosed('(', ')'),
        Some(b'[') => enclosed('[', ']'),
        Some(b'<') => enclosed('<', '>'),
        Some(b'"') => rest[1..].find('"').map_or("", |end| &rest[end + 2..]),
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
    if language.name == "kotlin" && keyword == "fun" {
        return kotlin_function(line, at);
    }
    // Generators, C's pointers, the root of Ruby's modules.
    let skipped = rest.trim_start_matches([' ', '\t', '*', '&']);
    let skipped = if language.name == "ruby" { skipped.trim_start_matches(':') } else { skipped };
    let mut from = line.len() - skipped.len();
    let has_receiver = language.name == "go" && keyword == "func" && skipped.starts_with('(');
    if has_receiver {
        from += enclosed(skipped, '(', ')')?;
        from += line[from..].len() - line[from..].trim_start().len();
    }
    if from == at && !rest.starts_with('*') {
        return None;
    }
    let name = last_part(language, line, word_at(line, from)?);
    if has_receiver && !line[name.end..].starts_with(['(', '[']) {
        return None;
    }
    let text = &line[name.clone()];
    let is_prose = matches!(text, "for" | "of" | "in" | "fn" | "extends") && !line[name.end..].starts_with('(');
    let is_name = !text.starts_with(|c: char| c.is_ascii_digit()) && text != "_" && !is_prose;
    is_name.then_some(name)
}

/// `defmodule A.B`, `def self.name`, `function table.name`, `namespace A.B`: the last name.
fn last_part(language: &Language, line: &str, mut name: Range<usize>) -> Range<usize> {
    let has_parts =
        language.syntax != Syntax::Indentation && (language.syntax != Syntax::TypedBraces || language.name == "csharp");
    while let Some(separator) =
        ["::", ".", ":"].iter().find(|separator| has_parts && line[name.end..].starts_with(**separator))
    {
        let from = name.end + separator.len();
        match word_at(line, from) {
            Some(next) if next.start == from => name = next,
            _ => break,
        }
    }
    name
}

/// `fun <T> List<T>.name(…)`, and names in backticks.
fn kotlin_function(line: &str, at: usize) -> Option<Range<usize>> {
    let rest = line[at..].trim_start();
    let rest = rest[enclosed(rest, '<', '>').unwrap_or(0)..].trim_start();
    let from = line.len() - rest.len();
    if let Some(quoted) = rest.find('`') {
        let end = rest[quoted + 1..].find('`')?;
        return Some(from + quoted + 1..from + quoted + 1 + end);
    }
    let end = from + rest.find('(')?;
    let start =
        line[from..end].rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(from, |before| from + before + 1);
    (start < end).then_some(start..end)
}

/// `impl<T> Trait for Name<T>` is about `Name`.
fn implemented_type(line: &str, at: usize) -> Option<Range<usize>> {
    let rest = &line[at..];
    let mut from = at + rest.len() - rest.trim_start().len();
    if line[from..].starts_with('<') {
        from += enclosed(&line[from..], '<', '>')?;
    }
    if let Some(after) = line[from..].find(" for ") {
        from += after + 5;
    }
    let word = |from: usize| word_at(line, from + line[from..].find(|c: char| c.is_alphanumeric() || c == '_')?);
    let mut name = word(from)?;
    // `&'a mut Name`
    while line[..name.start].ends_with('\'') || matches!(&line[name.clone()], "mut" | "dyn" | "const") {
        name = word(name.end)?;
    }
    while line[name.end..].starts_with("::") {
        name = word_at(line, name.end + 2)?;
    }
    Some(name)
}

/// The word at a position, after spaces.
pub(super) fn word_at(line: &str, at: usize) -> Option<Range<usize>> {
    let rest = line.get(at..)?;
    let start = at + rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let length = line[start..].find(|c: char| !is_part(c)).unwrap_or(line.len() - start);
    (length > 0).then(|| start..start + length)
}
