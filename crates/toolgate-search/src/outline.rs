//! The definitions in a file: functions, types, sections of a document, each with its name and its lines. A scan by line
//! and by brace finds them, not a parser: it is an order of magnitude faster, can't be confused by code that doesn't
//! compile, and runs no parser written in C on text that anybody may have written. A definition that it misses is found by
//! its words all the same.

mod brace_depth;
mod declaration;
mod signature;

use self::brace_depth::{LineDepths, line_depths};
use self::declaration::{Declared, after_annotations, declared_name, word_at};
use crate::language::{Language, Syntax};

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    /// Where its name is, in bytes of the text.
    pub(crate) name: std::ops::Range<usize>,
    /// Its first line, counted from 0; comments and attributes before it included.
    pub(crate) first: usize,
    /// The line that has its name.
    pub(crate) line: usize,
    /// The line after its last.
    pub(crate) end: usize,
    /// How many definitions it is inside of.
    pub(crate) depth: usize,
}

/// A text as lines.
pub(crate) struct Lines<'a> {
    pub(crate) text: &'a str,
    /// Where each line begins; the end of the text comes last.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        Self { text, starts }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where a line begins.
    pub(crate) fn start(&self, line: usize) -> usize {
        self.starts[line.min(self.len())]
    }

    /// A line, without its end.
    pub(crate) fn line(&self, line: usize) -> &'a str {
        self.text[self.start(line)..self.start(line + 1)].trim_end_matches(['\n', '\r'])
    }
}

/// The definitions of a file, in order; a definition comes before those inside of it.
pub(crate) fn outline(language: &Language, lines: &Lines<'_>) -> Vec<Definition> {
    let mut found = match language.syntax {
        Syntax::Plain => Vec::new(),
        Syntax::Headings => headings(lines),
        Syntax::Indentation => indented(language, lines),
        Syntax::End => ended(language, lines),
        Syntax::Braces | Syntax::TypedBraces => braced(language, lines),
    };
    nest(&mut found);
    for definition in &mut found {
        definition.first = first_line(language, lines, definition.line);
    }
    found
}

fn definition(name: std::ops::Range<usize>, line: usize, end: usize) -> Definition {
    Definition { name, first: line, line, end, depth: 0 }
}

/// Definitions in languages with braces: each ends where the brace that it opens is closed.
fn braced(language: &Language, lines: &Lines<'_>) -> Vec<Definition> {
    let LineDepths { before, is_code } = line_depths(language, lines);
    let mut found: Vec<Definition> = Vec::new();
    // Inside of a function are statements, which look like declarations in languages that begin with the type.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut types = TypeGroup::default();
    for (line, is_code) in is_code.iter().enumerate().take(lines.len()) {
        while open.last().is_some_and(|(end, _)| *end <= line) {
            open.pop();
        }
        let is_in_function = open.last().is_some_and(|(_, is_function)| *is_function);
        if !is_code {
            continue;
        }
        let text = lines.line(line);
        if is_in_function && begins_anonymous_class(language, text) {
            open.push((braced_end(lines, &before, line, false).unwrap_or(line), false));
            continue;
        }
        let grouped = (language.name == "go").then(|| types.member(text, before[line])).flatten();
        let Some(declared) = grouped.or_else(|| declared_name(language, text)) else { continue };
        // Statements inside of functions, such as a closure in JavaScript, are parts of the function.
        if is_in_function && !declared.has_keyword {
            continue;
        }
        let Some(end) = braced_end(lines, &before, line, declared.needs_block) else { continue };
        let start = lines.start(line);
        let name = match declared.name.is_empty() {
            true => match name_after_block(lines, end - 1) {
                Some(name) => name,
                None => continue,
            },
            false => start + declared.name.start..start + declared.name.end,
        };
        open.push((end, declared.is_function));
        found.push(definition(name, line, end));
    }
    found
}

/// `new Name() {` of Java, in which methods are declared.
fn begins_anonymous_class(language: &Language, text: &str) -> bool {
    language.name == "java" && text.ends_with(") {") && text.contains("new ") && !text.contains("->")
}

/// The name in `} Name;`.
fn name_after_block(lines: &Lines<'_>, line: usize) -> Option<std::ops::Range<usize>> {
    let name = word_at(lines.line(line), lines.line(line).find('}')? + 1)?;
    Some(lines.start(line) + name.start..lines.start(line) + name.end)
}

/// `type (` of Go, in which each line of its depth declares a type.
#[derive(Default)]
struct TypeGroup {
    depth: Option<u32>,
}

impl TypeGroup {
    fn member(&mut self, text: &str, depth: u32) -> Option<Declared> {
        if text.starts_with("type (") {
            self.depth = Some(depth);
        } else if text.starts_with(')') {
            self.depth = None;
        }
        let name = word_at(text, 0).filter(|name| self.depth == Some(depth) && name.start > 0)?;
        let is_declared = text[name.end..].starts_with([' ', '[', '\t']);
        is_declared.then_some(Declared { name, has_keyword: true, is_function: false, needs_block: false })
    }
}

/// The furthest that a block may begin after its declaration.
const LONGEST_SIGNATURE: usize = 24;

/// The line after the end of what is declared on this line; none if it has no block but needs one.
fn braced_end(lines: &Lines<'_>, before: &[u32], line: usize, needs_block: bool) -> Option<usize> {
    let (depth, mut parentheses) = (before[line], 0_i32);
    for at in line..lines.len().min(line + LONGEST_SIGNATURE) {
        let text = lines.line(at).trim_end();
        if at > line && ends_declaration(lines, line, at) {
            return (!needs_block).then_some(at);
        }
        let (brace, open) = first_brace(text, &mut parentheses);
        if before[at + 1] > depth {
            let closed = (at + 1..lines.len()).find(|at| before[at + 1] <= depth);
            return Some(closed.map_or(lines.len(), |at| at + 1));
        }
        // A block on one line.
        if brace && (at == line || text.trim_end_matches([';', ',', ')']).ends_with('}')) {
            return Some(at + 1);
        }
        if text.ends_with(';') && open {
            return (!needs_block).then_some(at + 1);
        }
    }
    let ended = (line + 1..lines.len()).find(|at| ends_declaration(lines, line, *at));
    (!needs_block).then(|| ended.unwrap_or(lines.len()))
}

/// Whether a brace outside of parentheses is on the line, and whether all parentheses are closed after it.
fn first_brace(text: &str, parentheses: &mut i32) -> (bool, bool) {
    let mut found = false;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' => *parentheses += 1,
            b')' | b']' => *parentheses -= 1,
            b'{' => found |= *parentheses <= 0,
            _ => {}
        }
    }
    (found, *parentheses <= 0)
}

/// Whether a line after a declaration without a block is something else: an empty one, or one that isn't indented further and
/// closes nothing.
fn ends_declaration(lines: &Lines<'_>, declared: usize, line: usize) -> bool {
    let indent = |text: &str| text.len() - text.trim_start().len();
    let (first, text) = (lines.line(declared), lines.line(line));
    let trimmed = text.trim_start();
    let closes = trimmed.starts_with([')', '{', '}', ']', '>', '|', ':', '=', '.']) || is_word(trimmed, "where");
    trimmed.is_empty() || indent(text) < indent(first) || indent(text) == indent(first) && !closes
}

/// Definitions in Python: each ends before the next line that isn't indented further.
fn indented(language: &Language, lines: &Lines<'_>) -> Vec<Definition> {
    let mut found = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut last_code = 0;
    let mut quote: Option<&str> = None;
    for line in 0..lines.len() {
        let text = lines.line(line);
        let was_inside = quote.is_some();
        quote = triple_quote(text, quote);
        let trimmed = text.trim_start();
        if was_inside {
            last_code = line;
            continue;
        }
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let indent = text.len() - trimmed.len();
        // A line that only closes a signature belongs to it.
        if !trimmed.starts_with([')', ']', '}']) {
            while open.last().is_some_and(|(_, depth)| *depth >= indent) {
                let (index, _) = open.pop().expect("there is one");
                let ended: &mut Definition = &mut found[index];
                ended.end = last_code + 1;
            }
        }
        last_code = line;
        if let Some(declared) = declared_name(language, text) {
            let start = lines.start(line);
            open.push((found.len(), indent));
            found.push(definition(start + declared.name.start..start + declared.name.end, line, line + 1));
        }
    }
    for (index, _) in open {
        found[index].end = last_code + 1;
    }
    found
}

/// Which triple quote is open after this line.
fn triple_quote<'q>(line: &str, open: Option<&'q str>) -> Option<&'q str> {
    let mut open = open;
    let mut rest = line;
    loop {
        match open {
            Some(quote) => match rest.find(quote) {
                Some(at) => (open, rest) = (None, &rest[at + 3..]),
                None => return open,
            },
            None => {
                let first = ["\"\"\"", "'''"].into_iter().filter_map(|quote| Some((rest.find(quote)?, quote))).min();
                match first {
                    Some((at, quote)) => (open, rest) = (Some(quote), &rest[at + 3..]),
                    None => return None,
                }
            }
        }
    }
}

/// Definitions that end in `end` at their own indentation.
fn ended(language: &Language, lines: &Lines<'_>) -> Vec<Definition> {
    let mut found = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut quote: Option<&str> = None;
    for line in 0..lines.len() {
        let text = lines.line(line);
        let was_inside = quote.is_some();
        if language.name == "elixir" {
            quote = triple_quote(text, quote);
        }
        if was_inside {
            continue;
        }
        let trimmed = text.trim_start();
        let indent = text.len() - trimmed.len();
        if is_word(trimmed, "end") {
            while open.last().is_some_and(|(_, depth)| *depth >= indent) {
                let (index, _) = open.pop().expect("there is one");
                let ended: &mut Definition = &mut found[index];
                ended.end = line + 1;
            }
        } else if let Some(declared) = declared_name(language, text) {
            let start = lines.start(line);
            let end = end_without_word(lines, line);
            if end.is_none() {
                open.push((found.len(), indent));
            }
            let name = start + declared.name.start..start + declared.name.end;
            found.push(definition(name, line, end.unwrap_or(line + 1)));
        }
    }
    found
}

/// Whether a text begins with this word.
fn is_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// The line after a definition that no `end` on a line of its own ends: `def double(x) = x * 2`, `def f(x); x; end`, and
/// `do: …`, also on one of the next lines.
fn end_without_word(lines: &Lines<'_>, line: usize) -> Option<usize> {
    const LONGEST_HEAD: usize = 6;
    let text = lines.line(line).trim_end();
    if text.contains(") = ") || text.ends_with(" end") || text.ends_with(";end") {
        return Some(line + 1);
    }
    let head = (line..lines.len().min(line + LONGEST_HEAD)).map(|at| (at, lines.line(at).trim()));
    let mut head = head.take_while(|(at, text)| *at == line || !text.is_empty() && !is_word(text, "end"));
    let found = head.find(|(_, text)| text.ends_with(" do") || text.starts_with("do: ") || text.contains(", do: "))?;
    (!found.1.ends_with(" do")).then_some(found.0 + 1)
}

/// Sections of Markdown and reStructuredText: each ends at the next heading of its level or above.
fn headings(lines: &Lines<'_>) -> Vec<Definition> {
    let mut found: Vec<(usize, Definition)> = Vec::new();
    let mut fence = false;
    for line in 0..lines.len() {
        let text = lines.line(line);
        fence ^= text.trim_start().starts_with("```");
        let Some((level, title)) = heading(lines, line).filter(|_| !fence) else { continue };
        for (_, open) in found.iter_mut().filter(|(other, open)| *other >= level && open.end == usize::MAX) {
            open.end = line;
        }
        found.push((level, definition(title, line, usize::MAX)));
    }
    let close = |(_, open): (usize, Definition)| Definition { end: open.end.min(lines.len()), ..open };
    found.into_iter().map(close).collect()
}

/// The level of the heading on this line, and where its title is.
fn heading(lines: &Lines<'_>, line: usize) -> Option<(usize, std::ops::Range<usize>)> {
    const UNDERLINES: &str = "=-~^\"'`#*+";
    let (text, start) = (lines.line(line), lines.start(line));
    let level = text.len() - text.trim_start_matches('#').len();
    if (1..=6).contains(&level) && text[level..].starts_with(' ') {
        return Some((level, start + level + 1..start + text.len()));
    }
    let under = (line + 1 < lines.len()).then(|| lines.line(line + 1).trim_end())?;
    let mark = under.chars().next().filter(|mark| UNDERLINES.contains(*mark))?;
    let is_underlined = under.len() >= 3 && under.len() >= text.trim_end().len() && under.chars().all(|c| c == mark);
    let is_title = text.starts_with(|c: char| c.is_alphanumeric() || c == '`' || c == ':');
    (is_underlined && is_title).then(|| (1 + UNDERLINES.find(mark).unwrap_or(0), start..start + text.len()))
}

/// Counts how deep each definition is.
fn nest(found: &mut [Definition]) {
    let mut ends: Vec<usize> = Vec::new();
    for definition in found {
        while ends.last().is_some_and(|end| *end <= definition.line) {
            ends.pop();
        }
        // A definition that goes further than the one around it was scanned wrongly; it ends with it.
        if let Some(end) = ends.last() {
            definition.end = definition.end.min(*end);
        }
        definition.depth = ends.len();
        ends.push(definition.end);
    }
}

/// The furthest that comments and attributes before a definition are taken along.
const LONGEST_COMMENT: usize = 40;

/// The first line of the comments, attributes and decorators right before a definition.
fn first_line(language: &Language, lines: &Lines<'_>, line: usize) -> usize {
    if language.syntax == Syntax::Headings {
        return line;
    }
    let mut first = line;
    while first > 0 && line - first < LONGEST_COMMENT {
        let text = lines.line(first - 1).trim_start();
        let is_comment = !language.line_comment.is_empty() && text.starts_with(language.line_comment);
        let is_block = text.starts_with("/*") || text.starts_with('*') && language.line_comment == "//";
        // `@Test fun name()` is a definition of its own.
        let is_annotation =
            text.starts_with('@') && (!language.has_braces() || after_annotations(language, text, 0).is_none());
        let is_attribute = is_annotation || text.starts_with("#[") || text.starts_with('[') && text.ends_with(']');
        if !(is_comment || is_block || is_attribute) {
            break;
        }
        first -= 1;
    }
    first
}

#[cfg(test)]
mod tests;
