//! Messages of the protocol in a stream of bytes: a header with the length, then JSON. Some servers print other things in
//! between; those are passed over up to the next header.

/// Bytes of one message.
const LARGEST: usize = 64 * 1024 * 1024;

/// What a header begins with.
const HEADER: &[u8] = b"Content-Length:";

/// A stream of messages whose end hasn't come yet.
#[derive(Debug, Default)]
pub(crate) struct MessageBuffer {
    rest: Vec<u8>,
}

/// Why the stream can't be read any further.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnreadableStream;

impl MessageBuffer {
    /// Adds a piece of the stream, and gives the messages that are whole now.
    pub(crate) fn add(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, UnreadableStream> {
        self.rest.extend_from_slice(piece);
        let mut messages = Vec::new();
        while let Some(message) = self.next()? {
            messages.push(message);
        }
        Ok(messages)
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>, UnreadableStream> {
        let Some(start) = find(&self.rest, HEADER) else {
            // What can't be the beginning of a header is noise.
            let keep = self.rest.len().min(HEADER.len());
            self.rest.drain(..self.rest.len() - keep);
            return Ok(None);
        };
        self.rest.drain(..start);
        let Some(end) = find(&self.rest, b"\r\n\r\n") else {
            return if self.rest.len() > 4096 { Err(UnreadableStream) } else { Ok(None) };
        };
        let digits = self.rest[HEADER.len()..end].split(|byte| *byte == b'\r').next().unwrap_or_default();
        let length = std::str::from_utf8(digits).ok().and_then(|digits| digits.trim().parse::<usize>().ok());
        let Some(length) = length.filter(|length| *length <= LARGEST) else { return Err(UnreadableStream) };
        let body = end + 4;
        if self.rest.len() < body + length {
            return Ok(None);
        }
        let message = self.rest[body..body + length].to_vec();
        self.rest.drain(..body + length);
        Ok(Some(message))
    }
}

/// A message with its header.
pub(crate) fn framed(message: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{message}", message.len()).into_bytes()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_put_together_and_noise_is_passed_over() {
        let mut buffer = MessageBuffer::default();
        let stream = [&b"warming up\nConte"[..], b"nt-Length: 2\r\n\r\n{", b"}oops\n", &framed("[1]")].concat();
        let mut messages = Vec::new();
        for byte in stream {
            messages.extend(buffer.add(&[byte]).unwrap());
        }
        assert_eq!(messages, [b"{}".to_vec(), b"[1]".to_vec()]);
        let typed = b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}";
        assert_eq!(buffer.add(typed).unwrap(), [b"{}".to_vec()]);
    }

    #[test]
    fn what_never_ends_is_refused() {
        assert_eq!(MessageBuffer::default().add(b"Content-Length: 99999999999\r\n\r\n"), Err(UnreadableStream));
        assert_eq!(MessageBuffer::default().add(b"Content-Length: -1\r\n\r\n"), Err(UnreadableStream));
        let endless = [b"Content-Length: ".to_vec(), vec![b'1'; 5000]].concat();
        assert_eq!(MessageBuffer::default().add(&endless), Err(UnreadableStream));
        let mut noisy = MessageBuffer::default();
        noisy.add(&vec![b'x'; 1 << 20]).unwrap();
        assert!(noisy.rest.len() <= HEADER.len());
    }
}
