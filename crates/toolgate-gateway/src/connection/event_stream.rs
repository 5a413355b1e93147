//! Messages in a stream of server-sent events: the data of each event is one message.

use crate::lines::{LineBuffer, OverlongLine};

/// Bytes of the data of one event.
const LONGEST: usize = 16 * 1024 * 1024;

/// The beginning of an event that isn't whole yet.
#[derive(Debug, Default)]
pub(super) struct EventBuffer {
    lines: LineBuffer,
    data: Vec<u8>,
}

impl EventBuffer {
    /// Adds a piece of the stream, and gives the data of the events that are whole now.
    pub(super) fn add(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, OverlongLine> {
        let mut events = Vec::new();
        for line in self.lines.add(piece)? {
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            if line.is_empty() {
                let data = std::mem::take(&mut self.data);
                events.extend((!data.is_empty()).then_some(data));
            } else if let Some(more) = line.strip_prefix(b"data:") {
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(more.strip_prefix(b" ").unwrap_or(more));
                if self.data.len() > LONGEST {
                    return Err(OverlongLine);
                }
            }
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_from_pieces_and_bounded() {
        let mut buffer = EventBuffer::default();
        assert_eq!(buffer.add(b": hello\r\nevent: message\r\nid: 1\r\ndata: {\"a\"").unwrap(), Vec::<Vec<u8>>::new());
        assert_eq!(buffer.add(b":1}\r\n\r\ndata: x\ndata:y\n\n\n").unwrap(), [b"{\"a\":1}".to_vec(), b"x\ny".to_vec()]);
        let line = [b"data: ".as_slice(), &vec![b'x'; 1024 * 1024], b"\n"].concat();
        let outcomes: Vec<bool> = (0..17).map(|_| buffer.add(&line).is_ok()).collect();
        assert_eq!(outcomes.iter().filter(|outcome| **outcome).count(), 15, "an event without an end ends the stream");
    }
}
