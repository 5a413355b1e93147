//! The lines of a stream, each with a limit: a server that never ends its line doesn't fill our memory.

use memchr::memchr_iter;

/// Bytes of one line.
const LONGEST: usize = 16 * 1024 * 1024;

/// The beginning of a line that isn't whole yet.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    rest: Vec<u8>,
}

/// A line that is longer than any message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OverlongLine;

impl LineBuffer {
    /// Adds a piece of the stream, and gives the lines that are whole now.
    pub(crate) fn add(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, OverlongLine> {
        let mut lines = Vec::new();
        let mut start = 0;
        for end in memchr_iter(b'\n', piece) {
            self.rest.extend_from_slice(&piece[start..end]);
            lines.push(std::mem::take(&mut self.rest));
            start = end + 1;
        }
        self.rest.extend_from_slice(&piece[start..]);
        match self.rest.len() > LONGEST || lines.iter().any(|line| line.len() > LONGEST) {
            true => Err(OverlongLine),
            false => Ok(lines),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_from_pieces_and_bounded() {
        let mut buffer = LineBuffer::default();
        assert_eq!(buffer.add(b"one\ntw").unwrap(), [b"one".to_vec()]);
        assert_eq!(buffer.add(b"o\n\nthree").unwrap(), [b"two".to_vec(), b"".to_vec()]);
        assert_eq!(buffer.add(b"\n").unwrap(), [b"three".to_vec()]);
        assert!(buffer.add(&vec![b'x'; LONGEST]).unwrap().is_empty());
        assert_eq!(buffer.add(b"x"), Err(OverlongLine));
    }
}
