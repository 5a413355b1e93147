//! Parses server-sent events from bytes that arrive in arbitrary pieces. Only what model APIs use: the event's name and
//! its data.

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerEvent {
    /// Its name; empty when it has none.
    pub(super) name: String,
    /// Its data.
    pub(super) data: String,
    /// Whether it is a complete response, of a server that doesn't stream.
    pub(super) is_complete: bool,
}

/// The longest line that is accepted, in bytes.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// Parses bytes into events.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    line: Vec<u8>,
    next: ServerEvent,
    has_data: bool,
}

/// A line exceeded the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineTooLong;

impl SseParser {
    /// Adds bytes and returns the events that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<ServerEvent>, LineTooLong> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + piece.len() > MAX_LINE {
                return Err(LineTooLong);
            }
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                events.extend(self.line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r'])));
            }
        }
        Ok(events)
    }

    /// An empty line ends an event; other lines add fields to it.
    fn line(&mut self, line: &str) -> Option<ServerEvent> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.next);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.next.name),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.next.data.push('\n');
                }
                self.next.data.push_str(value);
            }
            // Comments, ids and retry times aren't needed.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str =
        ": hello\n\nevent: ping\ndata: {}\n\ndata: one\ndata: é two\r\n\r\ndata:[DONE]\n\ndata: never ended";

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        let event = |name: &str, data: &str| ServerEvent { name: name.into(), data: data.into(), is_complete: false };
        let expected = [event("ping", "{}"), event("", "one\né two"), event("", "[DONE]")];
        for size in 1..STREAM.len() {
            let mut parser = SseParser::default();
            let events: Vec<_> = STREAM.as_bytes().chunks(size).flat_map(|chunk| parser.push(chunk).unwrap()).collect();
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_without_end_is_a_fault() {
        let mut parser = SseParser::default();
        assert_eq!(parser.push(&vec![b'x'; MAX_LINE]), Ok(vec![]));
        assert_eq!(parser.push(b"x"), Err(LineTooLong));
    }
}
