//! Lines with their numbers, as several clients show files.

use std::fmt::Write as _;

/// Adds a line with its number to a text.
pub(crate) type LineWriter = dyn Fn(&mut String, i64, &str);

/// Bytes that a number and what is around it take, about.
const PREFIX: usize = 8;

/// The text with a number on each line, written by `add`.
pub(crate) fn numbered(text: &str, first: i64, add: &LineWriter) -> String {
    let mut shown = String::with_capacity(text.len() + text.len() / 40 * PREFIX + PREFIX);
    for (number, line) in (first..).zip(text.split('\n')) {
        if number > first {
            shown.push('\n');
        }
        add(&mut shown, number, line);
    }
    shown
}

/// Adds a line behind its number and a mark.
pub(crate) fn add_line(shown: &mut String, number: std::fmt::Arguments<'_>, line: &str) {
    shown.write_fmt(number).expect("a text takes everything");
    shown.push_str(line);
}

/// A text for clients that count one more, empty line behind a final newline. Where the file goes on, there is none.
pub(crate) fn with_final_line(text: &str, is_end: bool) -> &str {
    if is_end { text } else { text.strip_suffix('\n').unwrap_or(text) }
}

/// Whether every line begins with a line number as some client shows it. Models copy such prefixes into the text to replace.
pub(crate) fn has_line_numbers(text: &str) -> bool {
    let is_numbered = |line: &str| {
        let rest = line.trim_start().trim_start_matches(|letter: char| letter.is_ascii_digit());
        rest.len() < line.trim_start().len() && ["→", "\t", ": "].iter().any(|mark| rest.starts_with(mark))
    };
    !text.is_empty() && text.lines().all(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_final_newline_shows_one_more_line_at_the_end_of_the_file_alone() {
        let tabbed = |shown: &mut String, number: i64, line: &str| add_line(shown, format_args!("{number}\t"), line);
        assert_eq!(numbered(with_final_line("one\ntwo\n", true), 1, &tabbed), "1\tone\n2\ttwo\n3\t");
        assert_eq!(numbered(with_final_line("one\ntwo\n", false), 1, &tabbed), "1\tone\n2\ttwo");
        assert_eq!(numbered(with_final_line("one\r\ntwo", true), 7, &tabbed), "7\tone\r\n8\ttwo");
    }

    #[test]
    fn copied_line_numbers_are_known() {
        for text in ["1\tone", "     1→one\n     2→two", "1: one\n2: two"] {
            assert!(has_line_numbers(text), "{text:?}");
        }
        for text in ["", "one", "1\tone\ntwo", "10 green bottles", "1:2"] {
            assert!(!has_line_numbers(text), "{text:?}");
        }
    }
}
