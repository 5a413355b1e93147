//! Lines with their numbers, as several clients show files.

use std::io::Write;

/// How a client writes a line with its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineStyle {
    /// What is before the number.
    pub(crate) before: &'static str,
    /// How many columns the number has at least, filled with spaces.
    pub(crate) columns: usize,
    /// What is between the number and the line.
    pub(crate) after: &'static str,
    /// Characters of a line that are shown.
    pub(crate) most_characters: usize,
}

impl LineStyle {
    /// A style that shows whole lines.
    pub(crate) const fn new(before: &'static str, columns: usize, after: &'static str) -> Self {
        Self { before, columns, after, most_characters: usize::MAX }
    }
}

/// Bytes that a number and what is around it take, about.
const USUAL_PREFIX: usize = 8;
/// The most that they take: the end of a line, the twenty characters of the longest number, and what the styles have around it.
const LONGEST_PREFIX: usize = 32;

/// The text with a number on each line.
pub(crate) fn numbered(text: &str, first: i64, style: &LineStyle) -> String {
    numbered_between("", text, first, style, "")
}

/// The text with a number on each line, between two others. This is most of what a mapped read costs: so a number is counted up in its
/// digits, each line takes two copies, one of them of a fixed length, and what is around the lines none.
pub(crate) fn numbered_between(before: &str, text: &str, first: i64, style: &LineStyle, after: &str) -> String {
    let lines = text.len() + text.len() / 40 * USUAL_PREFIX;
    let mut shown = Vec::with_capacity(before.len() + lines + LONGEST_PREFIX + after.len());
    shown.extend_from_slice(before.as_bytes());
    let mut prefix = LinePrefix::new(first, style);
    // What is before the first line has no line to end.
    shown.extend_from_slice(&prefix.text()[1..]);
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text.as_bytes()) {
        shown.extend_from_slice(shown_part(&text[start..end], style));
        prefix.count_up();
        prefix.add_to(&mut shown);
        start = end + 1;
    }
    shown.extend_from_slice(shown_part(&text[start..], style));
    shown.extend_from_slice(after.as_bytes());
    String::from_utf8(shown).expect("lines of a text and numbers are a text")
}

/// The part of a line that is shown.
fn shown_part<'a>(line: &'a str, style: &LineStyle) -> &'a [u8] {
    // Few lines end in one, and few are too long: a look at a byte and a length tells.
    let line = if line.as_bytes().last() == Some(&b'\r') { line.trim_end_matches('\r') } else { line };
    match line.len() > style.most_characters {
        true => shortened(line, style.most_characters).as_bytes(),
        false => line.as_bytes(),
    }
}

/// What is between two lines: the end of the one, and the number of the other with what is around it.
struct LinePrefix<'a> {
    style: &'a LineStyle,
    number: i64,
    bytes: [u8; LONGEST_PREFIX],
    length: usize,
}

impl<'a> LinePrefix<'a> {
    fn new(number: i64, style: &'a LineStyle) -> Self {
        let LineStyle { before, columns, after, .. } = *style;
        let mut bytes = [0; LONGEST_PREFIX];
        let mut rest = &mut bytes[..];
        write!(rest, "\n{before}{number:>columns$}{after}").expect("the styles are short");
        let length = LONGEST_PREFIX - rest.len();
        Self { style, number, bytes, length }
    }

    fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// All bytes are copied, and those behind the text taken away again: a copy of a fixed length is a few instructions.
    fn add_to(&self, shown: &mut Vec<u8>) {
        shown.extend_from_slice(&self.bytes);
        shown.truncate(shown.len() - (LONGEST_PREFIX - self.length));
    }

    /// Counts in the digits, as by hand. A number below zero, and one that gets another digit, is written anew.
    fn count_up(&mut self) {
        self.number = self.number.saturating_add(1);
        let digits = self.length - self.style.after.len();
        // Nine of ten numbers differ from the one before in their last digit alone.
        let last = &mut self.bytes[digits - 1];
        if (b'0'..=b'8').contains(last) && self.number > 0 {
            *last += 1;
            return;
        }
        for digit in self.bytes[..digits].iter_mut().rev().take_while(|digit| digit.is_ascii_digit()) {
            if *digit < b'9' && self.number > 0 {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        *self = Self::new(self.number, self.style);
    }
}

/// The beginning of a line.
pub(crate) fn shortened(line: &str, most_characters: usize) -> &str {
    // A character has at least a byte.
    if line.len() <= most_characters {
        return line;
    }
    let end = line.char_indices().nth(most_characters).map_or(line.len(), |(at, _)| at);
    &line[..end]
}

/// A text for clients that count one more, empty line behind a final newline. Where the file goes on, there is none.
pub(crate) fn with_final_line(text: &str, is_end: bool) -> &str {
    if is_end { text } else { text.strip_suffix('\n').unwrap_or(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_final_newline_shows_one_more_line_at_the_end_of_the_file_alone() {
        let tabbed = LineStyle::new("", 0, "\t");
        assert_eq!(numbered(with_final_line("one\ntwo\n", true), 1, &tabbed), "1\tone\n2\ttwo\n3\t");
        assert_eq!(numbered(with_final_line("one\ntwo\n", false), 1, &tabbed), "1\tone\n2\ttwo");
        assert_eq!(numbered(with_final_line("one\r\ntwo", true), 7, &tabbed), "7\tone\n8\ttwo");
    }

    #[test]
    fn numbers_are_written_as_formatting_writes_them() {
        for first in [0, 1, 7, 97, 99_995, 999_998, -1, -12, i64::MIN] {
            for columns in [0, 1, 6] {
                let lines: Vec<String> = (first..).take(25).map(|number| format!("[{number:>columns$}] x")).collect();
                let style = LineStyle::new("[", columns, "] ");
                assert_eq!(numbered(&["x"; 25].join("\n"), first, &style), lines.join("\n"));
            }
        }
        let short = LineStyle { most_characters: 2, ..LineStyle::new("L", 0, ": ") };
        assert_eq!(numbered("€€€\nab\nabc", 9, &short), "L9: €€\nL10: ab\nL11: ab");
    }
}
