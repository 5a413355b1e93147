//! A terminal emulator: turns the output of a process, with its escape sequences, into a screen of text.

use std::num::NonZeroU16;

use toolgate_contract::{Screen, TerminalSize};
use vt100::Parser;

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

    /// The bytes that paint this screen on another terminal.
    pub(super) fn repaint_sequence(&self) -> Vec<u8> {
        self.0.screen().state_formatted().into_bytes()
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
    }
}
