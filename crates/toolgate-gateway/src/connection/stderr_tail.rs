//! The last of what a server wrote to its standard error, where it says why it fails.

use std::collections::VecDeque;

use crate::foreign_text::cleaned;

/// Bytes that are kept.
const KEPT: usize = 8 * 1024;

/// The last of a server's errors.
#[derive(Debug, Default)]
pub(super) struct StderrTail(VecDeque<u8>);

impl StderrTail {
    pub(super) fn add(&mut self, piece: &[u8]) {
        self.0.extend(&piece[piece.len().saturating_sub(KEPT)..]);
        let excess = self.0.len().saturating_sub(KEPT);
        self.0.drain(..excess);
    }

    pub(super) fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        cleaned(String::from_utf8_lossy(&bytes).trim())
    }
}
