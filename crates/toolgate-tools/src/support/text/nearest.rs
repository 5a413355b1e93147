//! The text most similar to one that wasn't found, and where it first differs: what a reader needs to try again.
//!
//! The search is linear in the text and bounded, since it only ever serves an error message.

use std::collections::HashMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::indexed_text::IndexedText;
use super::lines::{body, is_blank, trim};

/// Lines after this one aren't examined.
const MAX_LINES: usize = 400_000;
/// A requested line that occurs often votes for its first few positions only.
const MAX_VOTES: usize = 8;
/// A line is similar when it contains this share, in percent, of the wanted line's byte pairs.
const ALIKE_PERCENT: usize = 60;
/// Maximum bytes of a line that are compared.
const LINE_COMPARED: usize = 4096;
/// Maximum characters of a line in a message.
const LINE_WIDTH: usize = 160;
/// Maximum lines in a message.
const SHOWN_LINES: usize = 12;

/// A line of the file, for a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NumberedLine {
    /// Its number, from 1.
    pub line: usize,
    /// Its text, cut when it is long.
    pub text: String,
}

/// The part of the file that is most similar to the wanted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NearestMatch {
    /// Its first line, from 1.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
    /// Its lines; only the first when there are many.
    pub lines: Vec<NumberedLine>,
    /// Where it first differs.
    pub difference: Option<LineDifference>,
}

/// The first line that differs from the wanted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LineDifference {
    /// The line of the file, from 1.
    pub line: usize,
    /// The line of the wanted text, from 1.
    pub wanted_line: usize,
    /// The wanted line.
    pub expected: String,
    /// The line in the file.
    pub found: String,
    /// Whether only whitespace differs; it is then made visible.
    pub whitespace_only: bool,
}

impl fmt::Display for NumberedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>6} | {}", self.line, self.text)
    }
}

impl fmt::Display for NearestMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first_line == self.last_line {
            true => writeln!(f, "The nearest text is line {}:", self.first_line)?,
            false => writeln!(f, "The nearest text is lines {} to {}:", self.first_line, self.last_line)?,
        }
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        match &self.difference {
            Some(difference) => write!(f, "{difference}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for LineDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.whitespace_only { "It differs in whitespace first" } else { "It first differs" };
        writeln!(f, "{what} at line {} (line {} of the wanted text):", self.line, self.wanted_line)?;
        write!(f, "  expected: {}\n     found: {}", self.expected, self.found)
    }
}

/// A line of a text, for a message. The number counts from 0.
pub(crate) fn numbered_line(page: &IndexedText<'_>, number: usize) -> NumberedLine {
    NumberedLine { line: number + 1, text: clipped(body(page.line(number))) }
}

/// A line as a message shows it.
pub(crate) fn clipped(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    match text.char_indices().nth(LINE_WIDTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// The lines of the text that are most similar to the wanted ones, if any are.
pub(crate) fn nearest(page: &IndexedText<'_>, wanted: &[&[u8]]) -> Option<Box<NearestMatch>> {
    let first = by_equal_lines(page, wanted).or_else(|| by_similar_line(page, wanted))?;
    Some(Box::new(describe(page, wanted, first)))
}

/// Compares the lines from `first` with the wanted ones.
fn describe(page: &IndexedText<'_>, wanted: &[&[u8]], first: usize) -> NearestMatch {
    let end = (first + wanted.len().max(1)).min(page.len());
    let lines = (first..end).take(SHOWN_LINES).map(|number| numbered_line(page, number)).collect();
    let difference = wanted.iter().enumerate().find_map(|(index, &wanted)| {
        let number = first + index;
        let found = (number < page.len()).then(|| body(page.line(number)));
        (found != Some(wanted)).then(|| differ(number, index, wanted, found))
    });
    NearestMatch { first_line: first + 1, last_line: end.max(first + 1), lines, difference }
}

fn differ(number: usize, index: usize, wanted: &[u8], found: Option<&[u8]>) -> LineDifference {
    let whitespace_only = found.is_some_and(|found| without_whitespace(found) == without_whitespace(wanted));
    let text = |bytes: &[u8]| if whitespace_only { visible(&clipped(bytes)) } else { clipped(bytes) };
    LineDifference {
        line: number + 1,
        wanted_line: index + 1,
        expected: text(wanted),
        found: found.map_or_else(|| "(the end of the file)".to_owned(), text),
        whitespace_only,
    }
}

fn without_whitespace(bytes: &[u8]) -> Vec<char> {
    String::from_utf8_lossy(bytes).chars().filter(|character| !character.is_whitespace()).collect()
}

/// Whitespace replaced by visible characters.
fn visible(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            ' ' => '·',
            '\t' => '→',
            '\r' => '␍',
            other if other.is_whitespace() => '⍽',
            other => other,
        })
        .collect()
}

/// Each line that equals a wanted line votes for the position where the wanted text would then begin.
fn by_equal_lines(page: &IndexedText<'_>, wanted: &[&[u8]]) -> Option<usize> {
    let mut indices: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (index, line) in wanted.iter().enumerate().filter(|(_, line)| !is_blank(line)) {
        let known = indices.entry(trim(line)).or_default();
        if known.len() < MAX_VOTES {
            known.push(index);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for number in 0..page.len().min(MAX_LINES) {
        let line = trim(body(page.line(number)));
        for index in indices.get(line).into_iter().flatten().filter(|&&index| index <= number) {
            *votes.entry(number - index).or_default() += line.len().min(40);
        }
    }
    votes.into_iter().max_by_key(|&(first, votes)| (votes, usize::MAX - first)).map(|(first, _)| first)
}

/// The line that shares the most byte pairs with the longest wanted line.
fn by_similar_line(page: &IndexedText<'_>, wanted: &[&[u8]]) -> Option<usize> {
    let (index, longest) = wanted.iter().enumerate().max_by_key(|(_, line)| trim(line).len())?;
    let mut pairs = BytePairs::of(trim(longest));
    let lines = (0..page.len().min(MAX_LINES)).map(|number| {
        let line = trim(body(page.line(number)));
        (pairs.shared(line), usize::MAX - line.len(), usize::MAX - number)
    });
    let (shared, _, number) = lines.max()?;
    let is_alike = shared > 0 && shared * 100 >= pairs.count() * ALIKE_PERCENT;
    is_alike.then(|| (usize::MAX - number).saturating_sub(index))
}

/// The distinct pairs of neighbouring bytes in a line.
struct BytePairs {
    /// For every possible pair its number, from 1; 0 when the line doesn't contain it.
    numbers: Vec<u16>,
    /// For every pair, the last line in which it was seen.
    seen: Vec<usize>,
    line: usize,
}

impl BytePairs {
    fn of(line: &[u8]) -> Self {
        let mut pairs = Self { numbers: vec![0; 1 << 16], seen: vec![0], line: 0 };
        for pair in line[..line.len().min(LINE_COMPARED)].windows(2) {
            let slot = slot(pair);
            if pairs.numbers[slot] == 0 {
                pairs.numbers[slot] = u16::try_from(pairs.seen.len()).unwrap_or_default();
                pairs.seen.push(0);
            }
        }
        pairs
    }

    fn count(&self) -> usize {
        self.seen.len() - 1
    }

    /// How many of these pairs another line contains.
    fn shared(&mut self, line: &[u8]) -> usize {
        self.line += 1;
        let mut shared = 0;
        for pair in line[..line.len().min(LINE_COMPARED)].windows(2) {
            let number = usize::from(self.numbers[slot(pair)]);
            shared += usize::from(number > 0 && self.seen[number] != self.line);
            self.seen[number] = self.line;
        }
        shared
    }
}

fn slot(pair: &[u8]) -> usize {
    usize::from(pair[0]) << 8 | usize::from(pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, wanted: &[&str]) -> Option<Box<NearestMatch>> {
        let wanted: Vec<_> = wanted.iter().map(|line| line.as_bytes()).collect();
        nearest(&IndexedText::new(text.as_bytes(), false), &wanted)
    }

    #[test]
    fn the_place_with_most_equal_lines_wins_and_the_first_difference_is_shown() {
        let text = "fn a() {\n    one();\n}\n\nfn b() {\n\ttwo();\n    three();\n}\n";
        let nearest = found(text, &["fn b() {", "    two();", "    four();", "}"]).unwrap();
        assert_eq!((nearest.first_line, nearest.last_line), (5, 8));
        let difference = nearest.difference.unwrap();
        assert_eq!((difference.line, difference.wanted_line, difference.whitespace_only), (6, 2, true));
        assert_eq!((difference.expected.as_str(), difference.found.as_str()), ("····two();", "→two();"));
    }

    #[test]
    fn a_line_that_is_only_alike_is_found_too() {
        let nearest = found("alpha\nlet total = count_all(items);\n", &["count_all(item)"]).unwrap();
        assert_eq!(nearest.first_line, 2);
        assert!(!nearest.difference.unwrap().whitespace_only);
        assert_eq!(found("alpha\nbeta\n", &["zzzzzz"]), None);
        assert_eq!(found("", &["a"]), None);
    }

    #[test]
    fn running_into_the_end_of_the_file_is_said() {
        let nearest = found("a line\n", &["a line", "another"]).unwrap();
        assert_eq!(nearest.difference.unwrap().found, "(the end of the file)");
    }
}
