//! Wraps text at the terminal's width, with further lines indented. Widths are columns of the terminal, of which some
//! characters take two.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::stdout_size;

/// The least room that wrapped text gets, however narrow the terminal is.
const LEAST: usize = 20;

/// Wraps text at the width of the terminal, with all lines but the first indented. Without a terminal the text stays on
/// one line, so that it can be searched.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    match stdout_size() {
        Some(size) => {
            let room = usize::from(size.columns).saturating_sub(indent).max(LEAST);
            wrap(text, room).join(&format!("\n{}", " ".repeat(indent)))
        }
        None => text.to_owned(),
    }
}

/// The lines of a text at this width. A word that is longer is broken.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.extend(broken(word, width)),
        }
    }
    lines
}

/// A word in pieces of at most this width.
fn broken(word: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for letter in word.chars() {
        let columns = letter.width().unwrap_or(0);
        if used + columns > width && used > 0 {
            pieces.push(String::new());
            used = 0;
        }
        used += columns;
        if let Some(piece) = pieces.last_mut() {
            piece.push(letter);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_wide_as_there_is_room() {
        assert_eq!(wrap("one two three four five six", 20), ["one two three four", "five six"]);
        assert_eq!(wrap("one aWordThatIsLongerThanTheRoom two", 20), ["one", "aWordThatIsLongerTha", "nTheRoom two"],);
        assert_eq!(wrap("", 80), Vec::<String>::new());
        assert_eq!(wrap("整理する 報告する", 9), ["整理する", "報告する"]);
        assert_eq!(wrap("整理する", 5), ["整理", "する"], "a wide character isn't cut in two");
    }
}
