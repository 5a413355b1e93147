//! Lines with their numbers, as several clients show files.

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
const PREFIX: usize = 8;

/// The text with a number on each line. This is most of what a mapped read costs, so it does without the formatting machinery.
pub(crate) fn numbered(text: &str, first: i64, style: &LineStyle) -> String {
    let mut shown = String::with_capacity(text.len() + text.len() / 40 * PREFIX + PREFIX);
    for (number, line) in (first..).zip(text.split('\n')) {
        if number > first {
            shown.push('\n');
        }
        shown.push_str(style.before);
        push_number(&mut shown, number, style.columns);
        shown.push_str(style.after);
        shown.push_str(shortened(line.trim_end_matches('\r'), style.most_characters));
    }
    shown
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

/// Adds a number, with spaces before it until it has so many columns.
fn push_number(shown: &mut String, number: i64, columns: usize) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let sign = usize::from(number < 0);
    for _ in digits.len() - start + sign..columns {
        shown.push(' ');
    }
    if number < 0 {
        shown.push('-');
    }
    shown.extend(digits[start..].iter().map(|digit| char::from(*digit)));
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
        let tabbed = LineStyle::new("", 0, "\t");
        assert_eq!(numbered(with_final_line("one\ntwo\n", true), 1, &tabbed), "1\tone\n2\ttwo\n3\t");
        assert_eq!(numbered(with_final_line("one\ntwo\n", false), 1, &tabbed), "1\tone\n2\ttwo");
        assert_eq!(numbered(with_final_line("one\r\ntwo", true), 7, &tabbed), "7\tone\n8\ttwo");
    }

    #[test]
    fn numbers_are_written_as_formatting_writes_them() {
        for number in [0, 7, 10, 99_999, 1_000_000, -1, -12, i64::MAX, i64::MIN] {
            for columns in [0, 1, 6] {
                let mut shown = String::new();
                push_number(&mut shown, number, columns);
                assert_eq!(shown, format!("{number:>columns$}"));
            }
        }
        let short = LineStyle { most_characters: 2, ..LineStyle::new("L", 0, ": ") };
        assert_eq!(numbered("€€€\nab\nabc", 9, &short), "L9: €€\nL10: ab\nL11: ab");
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
