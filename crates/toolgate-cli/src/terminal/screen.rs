//! Draws on a terminal: finished lines go into its own scrollback, and a live area below them is redrawn as it changes.
//! Nothing else than the live area is ever erased, so the terminal's scrolling, searching and copying work as usual.

use std::io::{IsTerminal, Write};

use unicode_width::UnicodeWidthChar;

/// Terminals show everything between these at once, so nothing flickers; those that don't know them ignore them.
pub(crate) const BEGIN_UPDATE: &str = "\u{1b}[?2026h";
pub(crate) const END_UPDATE: &str = "\u{1b}[?2026l";

/// The live area at the bottom of the terminal.
#[derive(Default)]
pub(crate) struct LiveScreen {
    /// The widths of the lines that are drawn.
    drawn: Vec<usize>,
    /// The drawn line and the column that the cursor is in.
    cursor: (usize, usize),
}

/// What the live area shows.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct LiveArea {
    /// Its lines, each at most as wide as the terminal.
    pub(crate) lines: Vec<String>,
    /// The line and the column of the cursor; below the last line if there is none.
    pub(crate) cursor: Option<(usize, usize)>,
}

impl LiveScreen {
    /// Whether standard error is a terminal whose cursor can be moved.
    pub(crate) fn is_possible() -> bool {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        std::io::stderr().is_terminal() && !is_dumb
    }

    /// The width of the terminal, in columns.
    pub(crate) fn width() -> usize {
        let size = terminal_size::terminal_size_of(std::io::stderr());
        size.map_or(80, |(width, _)| usize::from(width.0)).max(20)
    }

    /// The height of the terminal, in lines.
    pub(crate) fn height() -> usize {
        let size = terminal_size::terminal_size_of(std::io::stderr());
        size.map_or(24, |(_, height)| usize::from(height.0)).max(8)
    }

    /// Prints lines above the live area, and draws the area anew.
    pub(crate) fn update(&mut self, above: &[String], area: &LiveArea) {
        let width = Self::width();
        let mut text = String::from(BEGIN_UPDATE);
        self.push_erase(width, &mut text);
        for line in above {
            text.push_str(&colored(line));
            text.push_str("\r\n");
        }
        let lines: Vec<String> = area.lines.iter().map(|line| colored(&cut(line, width - 1))).collect();
        text.push_str(&lines.join("\r\n"));
        self.drawn = lines.iter().map(|line| visible_width(line)).collect();
        let last = self.drawn.len().saturating_sub(1);
        self.cursor = (last, self.drawn.last().copied().unwrap_or_default());
        if let Some((line, column)) = area.cursor {
            let up = last.saturating_sub(line);
            if up > 0 {
                text.push_str(&format!("\u{1b}[{up}A"));
            }
            text.push_str(&format!("\r\u{1b}[{}G", column.min(width - 1) + 1));
            self.cursor = (line, column);
        }
        text.push_str(END_UPDATE);
        write(&text);
    }

    /// Erases the live area, so that something else can be printed where it was.
    pub(crate) fn erase(&mut self) {
        let mut text = String::new();
        self.push_erase(Self::width(), &mut text);
        write(&text);
    }

    /// A terminal that became narrower has wrapped what was drawn.
    fn push_erase(&mut self, width: usize, text: &mut String) {
        let drawn = std::mem::take(&mut self.drawn);
        if drawn.is_empty() {
            return;
        }
        let (line, column) = std::mem::take(&mut self.cursor);
        let up: usize = drawn.iter().take(line).map(|line| line.div_ceil(width).max(1)).sum();
        let up = up + column / width;
        if up > 0 {
            text.push_str(&format!("\u{1b}[{up}A"));
        }
        text.push_str("\r\u{1b}[J");
    }
}

/// Writes to the terminal itself: colours are decided here, and movements of the cursor are never removed.
fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// The line, without its colours where standard error shows none.
pub(crate) fn colored(line: &str) -> String {
    match anstream::AutoStream::choice(&std::io::stderr()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(line).to_string(),
        _ => line.to_owned(),
    }
}

/// How many columns a line takes; escape sequences take none.
pub(crate) fn visible_width(line: &str) -> usize {
    let (mut width, mut in_code) = (0, false);
    for character in line.chars() {
        if character == '\u{1b}' || in_code {
            in_code = character != 'm';
        } else {
            width += character.width().unwrap_or(0);
        }
    }
    width
}

/// A line cut to this many columns; escape sequences take none.
pub(crate) fn cut(line: &str, width: usize) -> String {
    let (mut shown, mut room, mut in_code) = (String::new(), width, false);
    for character in line.chars() {
        if character == '\u{1b}' || in_code {
            in_code = character != 'm';
            shown.push(character);
            continue;
        }
        let columns = character.width().unwrap_or(0);
        room = room.saturating_sub(columns);
        if room > 0 || (columns > 0 && visible_width(&shown) + columns <= width) {
            shown.push(character);
        }
    }
    shown
}

/// A line that is at most this wide; one that isn't ends with an ellipsis.
pub(crate) fn shortened(line: &str, width: usize) -> String {
    if visible_width(line) <= width { line.to_owned() } else { format!("{}…", cut(line, width.saturating_sub(1))) }
}

/// Splits a line into rows of at most this many columns, between words where there are any.
pub(crate) fn rows(line: &str, width: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let last = rows.last().map(|row| visible_width(row)).unwrap_or_default();
        if last > 0 && last + visible_width(word.trim_end()) > width {
            rows.push(String::new());
        }
        for character in word.chars() {
            let is_full = rows.last().is_some_and(|row| {
                !row.is_empty() && visible_width(row) + character.width().unwrap_or(0) > width && character != ' '
            });
            if is_full {
                rows.push(String::new());
            }
            if let Some(row) = rows.last_mut() {
                row.push(character);
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_what_is_seen_of_it() {
        assert_eq!(cut("hello", 3), "hel");
        assert_eq!(cut("\u{1b}[1mhello\u{1b}[0m", 3), "\u{1b}[1mhel\u{1b}[0m");
        assert_eq!(cut("mm", 5), "mm");
        assert_eq!(cut("日本語", 4), "日本");
        assert_eq!((shortened("hello", 5), shortened("hello!", 5)), ("hello".into(), "hell…".into()));
        assert_eq!(visible_width("\u{1b}[1m日本\u{1b}[0m!"), 5);
    }

    #[test]
    fn a_long_line_becomes_rows_between_words() {
        assert_eq!(rows("one two three", 8), ["one two ", "three"]);
        assert_eq!(rows("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(rows("", 3), [""]);
    }
}
