//! A terminal emulator: turns the output of a process, with its escape sequences, into a screen of text.

use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Screen, TerminalSize, schemars};
use vt100::{Cell, Color, Parser};

/// A terminal's screen, made from the output of a process.
pub(super) struct TerminalEmulator(Parser);

impl TerminalEmulator {
    pub(super) fn new(size: TerminalSize) -> Self {
        Self(Parser::new(at_least_one(size.rows), at_least_one(size.columns), 0))
    }

    pub(super) fn paint(&mut self, bytes: &[u8]) {
        self.0.process(bytes);
    }

    pub(super) fn resize(&mut self, size: TerminalSize) {
        self.0.set_size(at_least_one(size.rows), at_least_one(size.columns));
    }

    /// The screen as it would be with this output added.
    pub(super) fn with(&self, unfinished: &[u8]) -> Screen {
        let (rows, columns) = self.0.screen().size();
        let mut painted = Parser::new(rows, columns, 0);
        painted.process(self.0.screen().state_formatted().as_bytes());
        painted.process(unfinished);
        let screen = painted.screen();
        let (row, column) = screen.cursor_position();
        let contents = screen.contents();
        let lines: Vec<&str> = contents.trim_end().split('\n').map(str::trim_end).collect();
        Screen { text: lines.join("\n"), row: row + 1, column: column + 1 }
    }

    /// The cells of the screen as it would be with this output added.
    pub(super) fn cells_with(&self, unfinished: &[u8]) -> ScreenCells {
        let (rows, columns) = self.0.screen().size();
        let mut painted = Parser::new(rows, columns, 0);
        painted.process(self.0.screen().state_formatted().as_bytes());
        painted.process(unfinished);
        let screen = painted.screen();
        let row = |row: u16| {
            let cells = (0..columns.get()).filter_map(|column| screen.cell(row, column));
            let mut runs: Vec<StyledRun> = Vec::new();
            for cell in cells.filter(|cell| !cell.is_wide_continuation()) {
                let run = StyledRun::of(cell);
                match runs.last_mut().filter(|last| last.has_style_of(&run)) {
                    Some(last) => last.text.push_str(&run.text),
                    None => runs.push(run),
                }
            }
            runs
        };
        let (cursor_row, cursor_column) = screen.cursor_position();
        ScreenCells {
            rows: (0..rows.get()).map(row).collect(),
            columns: columns.get(),
            cursor_row,
            cursor_column,
            cursor_hidden: screen.hide_cursor(),
        }
    }

    /// The bytes that paint this screen on another terminal.
    pub(super) fn repaint_sequence(&self) -> Vec<u8> {
        self.0.screen().state_formatted().into_bytes()
    }
}

/// A terminal's screen for a page: rows of text with the style of each part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenCells {
    /// The rows from the top, each as parts of one style.
    pub rows: Vec<Vec<StyledRun>>,
    /// How many columns there are.
    pub columns: u16,
    /// The row of the cursor, from 0.
    pub cursor_row: u16,
    /// The column of the cursor, from 0.
    pub cursor_column: u16,
    /// Whether the program hides the cursor.
    pub cursor_hidden: bool,
}

/// Neighbouring cells of one style.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StyledRun {
    /// Their text.
    pub text: String,
    /// The colour of the text: a number of the palette, or `#rrggbb`; none for the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fg: Option<String>,
    /// The colour behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bg: Option<String>,
    /// Whether it is bold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bold: bool,
    /// Whether it is underlined.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub underline: bool,
    /// Whether both colours are exchanged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inverse: bool,
}

impl StyledRun {
    fn of(cell: &Cell) -> Self {
        let text = if cell.has_contents() { cell.contents().to_owned() } else { " ".to_owned() };
        Self {
            text,
            fg: color(cell.fgcolor()),
            bg: color(cell.bgcolor()),
            bold: cell.bold(),
            underline: cell.underline(),
            inverse: cell.inverse(),
        }
    }

    fn has_style_of(&self, other: &Self) -> bool {
        (&self.fg, &self.bg, self.bold, self.underline, self.inverse)
            == (&other.fg, &other.bg, other.bold, other.underline, other.inverse)
    }
}

fn color(color: Color) -> Option<String> {
    match color {
        Color::Default => None,
        Color::Idx(index) => Some(index.to_string()),
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

fn at_least_one(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_is_what_a_person_would_see() {
        let mut painted = TerminalEmulator::new(TerminalSize { rows: 4, columns: 20 });
        painted.paint(b"first\r\nsecond\x1b[1;1H\x1b[31mFIRST\x1b[0m\x1b[3;1H>>> ");
        let screen = painted.with(b"1+");
        assert_eq!(screen.text, "FIRST\nsecond\n>>> 1+");
        assert_eq!((screen.row, screen.column), (3, 7));
        assert_eq!(painted.with(b"").text, "FIRST\nsecond\n>>>", "what is unfinished leaves no trace");
        let cells = painted.cells_with(b"1+");
        let first = &cells.rows[0][0];
        assert_eq!((first.text.as_str(), first.fg.as_deref()), ("FIRST", Some("1")));
        assert_eq!((cells.rows.len(), cells.columns, cells.cursor_row, cells.cursor_column), (4, 20, 2, 6));
    }
}
