//! Wraps text at the terminal's width, with further lines indented.

use super::stdout_size;

/// Wraps text at the width of the terminal, with all lines but the first indented. Without a terminal the text stays on
/// one line, so that it can be searched.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    match stdout_size() {
        Some(size) => lines(text, indent, usize::from(size.columns)).join(&format!("\n{}", " ".repeat(indent))),
        None => text.to_owned(),
    }
}

/// The lines of a text at this width and indent. A longer word isn't broken.
fn lines(text: &str, indent: usize, width: usize) -> Vec<String> {
    let room = width.saturating_sub(indent).max(20);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_wide_as_there_is_room() {
        assert_eq!(lines("one two three four five six", 10, 30), ["one two three four", "five six"]);
        assert_eq!(
            lines("one aWordThatIsLongerThanTheRoom two", 0, 20),
            ["one", "aWordThatIsLongerThanTheRoom", "two"]
        );
        assert_eq!(lines("", 0, 80), Vec::<String>::new());
        assert_eq!(
            lines("one two three four five", 100, 30),
            ["one two three four", "five"],
            "some room is always left"
        );
    }
}
