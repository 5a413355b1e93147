//! How many braces are open before each line, without those in strings and comments.

use super::Lines;
use crate::language::Language;

/// What is known of the lines of a file.
pub(super) struct LineDepths {
    /// Open braces before each line, and after the last.
    pub(super) before: Vec<u32>,
    /// Whether a line begins as code: not inside of a string or comment.
    pub(super) is_code: Vec<bool>,
}

/// What the scan is inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Code,
    BlockComment,
    /// A string until this quote; some end with their line.
    Text(u8),
    /// A raw string of Rust, until a quote and this many `#`.
    Raw(usize),
    /// A string of several lines, until three of these quotes.
    Tripled(u8),
    /// A string of C# after `@`, in which a doubled quote is one.
    Verbatim,
}

/// Counts the open braces before each line.
pub(super) fn line_depths(language: &Language, lines: &Lines<'_>) -> LineDepths {
    let mut depths =
        LineDepths { before: Vec::with_capacity(lines.len() + 1), is_code: Vec::with_capacity(lines.len()) };
    let (mut depth, mut inside) = (0_u32, Inside::Code);
    let mut conditions = Vec::new();
    for line in 0..lines.len() {
        depths.before.push(depth);
        depths.is_code.push(inside == Inside::Code);
        let text = lines.line(line);
        if inside == Inside::Code && language.has_preprocessor() && text.trim_start().starts_with('#') {
            depth = after_condition(text, depth, &mut conditions);
        }
        (depth, inside) = scan_line(language, text.as_bytes(), depth, inside);
    }
    depths.before.push(depth);
    depths
}

/// The depth after a line of the preprocessor. Each branch of a condition begins at the same depth, since only one of them is
/// compiled.
fn after_condition(line: &str, depth: u32, conditions: &mut Vec<u32>) -> u32 {
    let directive = line.trim_start().trim_start_matches('#').trim_start();
    if directive.starts_with("if") {
        conditions.push(depth);
    } else if directive.starts_with("el") {
        return conditions.last().copied().unwrap_or(depth);
    } else if directive.starts_with("endif") {
        conditions.pop();
    }
    depth
}

fn scan_line(language: &Language, line: &[u8], mut depth: u32, mut inside: Inside) -> (u32, Inside) {
    let comment = language.line_comment.as_bytes();
    let mut at = 0;
    while at < line.len() {
        let rest = &line[at..];
        match inside {
            Inside::BlockComment => match memchr::memmem::find(rest, b"*/") {
                Some(end) => (inside, at) = (Inside::Code, at + end + 2),
                None => return (depth, inside),
            },
            Inside::Text(quote) => match string_end(rest, quote) {
                Some(end) => (inside, at) = (Inside::Code, at + end + 1),
                None => return (depth, if quote == b'`' { inside } else { open_string(language, line, inside) }),
            },
            Inside::Raw(hashes) => match raw_end(rest, hashes) {
                Some(end) => (inside, at) = (Inside::Code, at + end),
                None => return (depth, inside),
            },
            Inside::Tripled(quote) => match memchr::memmem::find(rest, &[quote; 3]) {
                Some(end) => (inside, at) = (Inside::Code, at + end + 3),
                None => return (depth, inside),
            },
            Inside::Verbatim => match verbatim_end(rest) {
                Some(end) => (inside, at) = (Inside::Code, at + end),
                None => return (depth, inside),
            },
            Inside::Code => {
                let step = code_step(language, comment, line, at);
                match step {
                    Step::Over(count) => at += count,
                    Step::Open => (depth, at) = (depth + 1, at + 1),
                    Step::Close => (depth, at) = (depth.saturating_sub(1), at + 1),
                    Step::Into(what, count) => (inside, at) = (what, at + count),
                    Step::EndOfLine => return (depth, inside),
                }
            }
        }
    }
    match inside {
        Inside::Text(quote) if quote != b'`' => (depth, open_string(language, line, inside)),
        _ => (depth, inside),
    }
}

/// Strings of Rust and PHP go on over lines; in other languages a quote without its end was something else.
fn open_string(language: &Language, line: &[u8], inside: Inside) -> Inside {
    let goes_on = matches!(language.name, "rust" | "php" | "bash") && inside == Inside::Text(b'"');
    if goes_on || line.ends_with(b"\\") { inside } else { Inside::Code }
}

enum Step {
    Over(usize),
    Open,
    Close,
    Into(Inside, usize),
    EndOfLine,
}

fn code_step(language: &Language, comment: &[u8], line: &[u8], at: usize) -> Step {
    let rest = &line[at..];
    match rest[0] {
        b'{' => Step::Open,
        b'}' => Step::Close,
        b'/' if rest.starts_with(b"//") && comment == b"//" => Step::EndOfLine,
        b'/' if rest.starts_with(b"/*") && comment == b"//" => Step::Into(Inside::BlockComment, 2),
        b'#' if comment == b"#" && (at == 0 || line[at - 1].is_ascii_whitespace()) => Step::EndOfLine,
        b'r' if language.name == "rust" && (at == 0 || !line[at - 1].is_ascii_alphanumeric()) => {
            let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
            match rest.get(1 + hashes) {
                Some(b'"') => Step::Into(Inside::Raw(hashes), hashes + 2),
                _ => Step::Over(1),
            }
        }
        b'"' if language.has_tripled_quotes() && rest.starts_with(b"\"\"\"") => Step::Into(Inside::Tripled(b'"'), 3),
        b'\'' if language.name == "dart" && rest.starts_with(b"'''") => Step::Into(Inside::Tripled(b'\''), 3),
        b'@' if language.name == "csharp" && rest.starts_with(b"@\"") => Step::Into(Inside::Verbatim, 2),
        b'@' if language.name == "csharp" && rest.starts_with(b"@$\"") => Step::Into(Inside::Verbatim, 3),
        b'"' => Step::Into(Inside::Text(b'"'), 1),
        b'`' if matches!(language.name, "javascript" | "typescript" | "go") => Step::Into(Inside::Text(b'`'), 1),
        b'\'' => single_quote(language, rest),
        b'\\' => Step::Over(2),
        _ => Step::Over(1),
    }
}

/// A quote begins a character, a string, or the name of a lifetime.
fn single_quote(language: &Language, rest: &[u8]) -> Step {
    match (language.name, rest) {
        ("javascript" | "typescript" | "php" | "bash" | "dart", _) => Step::Into(Inside::Text(b'\''), 1),
        (_, [_, b'\\', _, ..]) => {
            let end = rest[2..].iter().skip(1).position(|byte| *byte == b'\'');
            Step::Over(end.map_or(1, |end| end + 4))
        }
        (_, [_, _, b'\'', ..]) => Step::Over(3),
        _ => Step::Over(1),
    }
}

/// Where a string ends, by the position of its quote.
fn string_end(rest: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// The position after the end of a raw string.
fn raw_end(rest: &[u8], hashes: usize) -> Option<usize> {
    memchr::memchr_iter(b'"', rest)
        .find(|at| rest[at + 1..].iter().take_while(|byte| **byte == b'#').count() >= hashes)
        .map(|at| at + 1 + hashes)
}

/// The position after the end of a verbatim string of C#.
fn verbatim_end(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr(b'"', &rest[at..])? + 1;
        if rest.get(at) != Some(&b'"') {
            return Some(at);
        }
        at += 1;
    }
}
