//! Text as a terminal shows it: without the escapes that colour it (`ESC [ … m`). `grep --color` puts them between a
//! secret's name and its value, where no rule expects them. Each byte that is shown keeps its position in the original.

use memchr::memchr;

const ESC: u8 = 0x1b;

/// A longer escape counts as text.
const LONGEST_ESCAPE: usize = 32;

/// More bytes of escapes between two bytes of text, and the next escape counts as text, so that a stream holds back
/// little.
const LONGEST_RUN: usize = 64;

/// Where the first escape could begin.
pub(crate) fn first_escape(bytes: &[u8]) -> Option<usize> {
    memchr(ESC, bytes)
}

/// Leaves the escapes out of a text that comes in chunks, and knows where they were.
#[derive(Clone, Default)]
pub(crate) struct ColourEscapes {
    /// The beginning of an escape that isn't complete.
    begun: Vec<u8>,
    /// How many bytes of escapes there were since the last byte that is shown.
    run: usize,
    /// How many bytes were shown so far.
    shown: usize,
    /// Where escapes were left out: the position in what is shown, and how many bytes were left out up to there.
    gaps: Vec<(usize, usize)>,
}

impl ColourEscapes {
    /// For a text of which this many bytes have come, none of them in an escape.
    pub(crate) fn after(shown: usize) -> Self {
        Self { shown, ..Self::default() }
    }

    /// Adds to `shown` what is shown of the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], shown: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.begun.is_empty() {
                let plain = first_escape(rest).unwrap_or(rest.len());
                self.show(&rest[..plain], shown);
                rest = &rest[plain..];
            }
            if let Some((&byte, after)) = rest.split_first()
                && self.step(byte, shown)
            {
                rest = after;
            }
        }
    }

    /// The text has ended: an escape that isn't complete is text.
    pub(crate) fn finish(&mut self, shown: &mut Vec<u8>) {
        self.give_up(shown);
    }

    /// The position in the original of a byte that is shown, or of what follows all of them.
    pub(crate) fn original(&self, position: usize) -> usize {
        let before = self.gaps.partition_point(|(at, _)| *at <= position);
        position + before.checked_sub(1).map_or(0, |last| self.gaps[last].1)
    }

    /// The end in the original of what ends at this position.
    pub(crate) fn original_end(&self, end: usize) -> usize {
        end.checked_sub(1).map_or(0, |last| self.original(last) + 1)
    }

    /// Forgets escapes that are of no use for positions from `position` on.
    pub(crate) fn forget_before(&mut self, position: usize) {
        let useless = self.gaps.partition_point(|(at, _)| *at <= position).saturating_sub(1);
        self.gaps.drain(..useless);
    }

    /// Reads a byte of an escape. Returns false if the byte has to be read once more, as text.
    fn step(&mut self, byte: u8, shown: &mut Vec<u8>) -> bool {
        let is_part = match self.begun.len() {
            0 => byte == ESC,
            1 => byte == b'[',
            length => length < LONGEST_ESCAPE && matches!(byte, 0x20..=0x7e),
        };
        if !is_part {
            self.give_up(shown);
            return false;
        }
        let is_last = self.begun.len() >= 2 && matches!(byte, 0x40..=0x7e);
        self.begun.push(byte);
        if is_last {
            self.leave_out(shown);
        }
        true
    }

    fn leave_out(&mut self, shown: &mut Vec<u8>) {
        let length = self.begun.len();
        if self.run + length > LONGEST_RUN {
            return self.give_up(shown);
        }
        self.begun.clear();
        self.run += length;
        let before = self.gaps.last().map_or(0, |(_, total)| *total);
        match self.gaps.last_mut() {
            Some((at, total)) if *at == self.shown => *total += length,
            _ => self.gaps.push((self.shown, before + length)),
        }
    }

    fn give_up(&mut self, shown: &mut Vec<u8>) {
        let begun = std::mem::take(&mut self.begun);
        self.show(&begun, shown);
    }

    fn show(&mut self, bytes: &[u8], shown: &mut Vec<u8>) {
        if !bytes.is_empty() {
            shown.extend_from_slice(bytes);
            self.shown += bytes.len();
            self.run = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (String, ColourEscapes) {
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        let mut escapes = ColourEscapes::default();
        escapes.push(text.as_bytes(), &mut whole);
        escapes.finish(&mut whole);
        let mut other = ColourEscapes::default();
        text.bytes().for_each(|byte| other.push(&[byte], &mut pieces));
        other.finish(&mut pieces);
        assert_eq!((&whole, &escapes.gaps), (&pieces, &other.gaps), "{text:?}");
        (String::from_utf8(whole).unwrap(), escapes)
    }

    #[test]
    fn only_whole_escapes_are_left_out() {
        let many = "\u{1b}[m".repeat(30);
        let cases = [
            ("plain", "plain"),
            ("\u{1b}[01;31m\u{1b}[KPASSWORD\u{1b}[m\u{1b}[K=x", "PASSWORD=x"),
            ("a\u{1b}", "a\u{1b}"),
            ("a\u{1b}[1", "a\u{1b}[1"),
            ("a\u{1b}\u{1b}[mb", "a\u{1b}b"),
            ("a\u{1b}]0;title\u{7}b", "a\u{1b}]0;title\u{7}b"),
            ("a\u{1b}[1\nb", "a\u{1b}[1\nb"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text).0, expected, "{text:?}");
        }
        assert_eq!(shown(&many).0, "\u{1b}[m", "a long run is interrupted");
        let long = format!("\u{1b}[{}m", "1;".repeat(20));
        assert_eq!(shown(&long).0, long);
    }

    #[test]
    fn every_shown_byte_has_its_position_in_the_original() {
        let text = "ab\u{1b}[31mcd\u{1b}[m\u{1b}[Ke";
        let (plain, mut escapes) = shown(text);
        for (at, byte) in plain.bytes().enumerate() {
            assert_eq!(text.as_bytes()[escapes.original(at)], byte);
        }
        assert_eq!((escapes.original(5), escapes.original_end(2), escapes.original(2)), (text.len(), 2, 7));
        escapes.forget_before(4);
        assert_eq!(escapes.original(4), text.len() - 1);
    }
}
