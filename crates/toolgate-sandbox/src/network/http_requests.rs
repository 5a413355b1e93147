//! The requests of a plain HTTP connection, one after the other. A connection that stays open could ask for the allowed host
//! first and for another on the same server later, so every request head is checked. The next head begins where the body
//! before it ends; where servers could disagree about that (request smuggling), the connection ends, and so it does at
//! whatever isn't a request any more, such as another protocol after an upgrade.

use toolgate_contract::Denial;

use super::allowed_host::AllowedHost;
use super::http_head::{self, BodyFraming, HeadError, RequestHead};
use super::sniff::{MAX_SNIFFED_BYTES, SniffedProtocol};

/// Bytes of a line in a chunked body: the size of a chunk, or a trailer field.
const MAX_LINE_BYTES: usize = 4096;
/// Hexadecimal digits of the size of a chunk. One more could overflow 64 bits in some server.
const MAX_CHUNK_SIZE_DIGITS: usize = 15;
/// What ends a line.
const CRLF: &[u8] = b"\r\n";

/// Checks and forwards what a client sends, request by request.
#[derive(Debug, Default)]
pub(super) struct HttpRequestStream {
    /// Bytes that came and aren't forwarded yet.
    buffered: Vec<u8>,
    expects: HttpParseState,
}

/// What the next bytes have to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum HttpParseState {
    /// The head of a request.
    #[default]
    Head,
    /// So many bytes of a body.
    Body(u64),
    /// The line with the size of a chunk.
    ChunkSize,
    /// So many bytes of a chunk, then the end of its line.
    Chunk(u64),
    /// The fields after the last chunk.
    Trailer,
}

impl HttpRequestStream {
    /// Takes what the client sent next; gives what may be forwarded to the server.
    pub(super) fn push(&mut self, bytes: &[u8], allowed: &AllowedHost<'_>) -> Result<Vec<u8>, Denial> {
        self.buffered.extend_from_slice(bytes);
        let mut forwarded = Vec::with_capacity(self.buffered.len());
        while let Some(count) = self.advance(allowed)? {
            forwarded.extend(self.buffered.drain(..count));
        }
        Ok(forwarded)
    }

    /// How many of the buffered bytes may be forwarded; none if more have to come first.
    fn advance(&mut self, allowed: &AllowedHost<'_>) -> Result<Option<usize>, Denial> {
        match self.expects {
            HttpParseState::Head => self.head(allowed),
            HttpParseState::Body(0) => self.then(HttpParseState::Head, 0),
            HttpParseState::Chunk(0) => match self.line(allowed)? {
                Some(length) if length == CRLF.len() => self.then(HttpParseState::ChunkSize, length),
                Some(_) => Err(allowed.ambiguous()),
                None => Ok(None),
            },
            HttpParseState::Body(left) => self.some_of(left, HttpParseState::Body),
            HttpParseState::Chunk(left) => self.some_of(left, HttpParseState::Chunk),
            HttpParseState::ChunkSize => {
                let Some(length) = self.line(allowed)? else { return Ok(None) };
                match chunk_size(&self.buffered[..length]).ok_or_else(|| allowed.ambiguous())? {
                    0 => self.then(HttpParseState::Trailer, length),
                    size => self.then(HttpParseState::Chunk(size), length),
                }
            }
            HttpParseState::Trailer => match self.line(allowed)? {
                Some(length) if length == CRLF.len() => self.then(HttpParseState::Head, length),
                length => Ok(length),
            },
        }
    }

    fn then(&mut self, expects: HttpParseState, count: usize) -> Result<Option<usize>, Denial> {
        self.expects = expects;
        Ok(Some(count))
    }

    fn some_of(&mut self, left: u64, state: fn(u64) -> HttpParseState) -> Result<Option<usize>, Denial> {
        let count = self.buffered.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if count == 0 {
            return Ok(None);
        }
        self.then(state(left - count as u64), count)
    }

    /// A whole head that names the allowed host.
    fn head(&mut self, allowed: &AllowedHost<'_>) -> Result<Option<usize>, Denial> {
        // Some clients send an empty line after a body; servers skip it.
        while self.buffered.starts_with(CRLF) {
            self.buffered.drain(..CRLF.len());
        }
        // What is there may become an empty line, or a request.
        if CRLF.starts_with(&self.buffered) {
            return Ok(None);
        }
        let RequestHead { host, length, body } = match http_head::parse(&self.buffered) {
            Ok(head) => head,
            Err(HeadError::Incomplete) if self.may_become_a_head() => return Ok(None),
            Err(_) => return Err(allowed.ambiguous()),
        };
        allowed.check(&SniffedProtocol::Http(host))?;
        match body {
            BodyFraming::ContentLength(bytes) => self.then(HttpParseState::Body(bytes), length),
            BodyFraming::Chunked => self.then(HttpParseState::ChunkSize, length),
        }
    }

    fn may_become_a_head(&self) -> bool {
        self.buffered.len() < MAX_SNIFFED_BYTES && self.buffered.first().is_some_and(u8::is_ascii_uppercase)
    }

    /// How long the next line is, with its end; none if that hasn't come yet.
    fn line(&self, allowed: &AllowedHost<'_>) -> Result<Option<usize>, Denial> {
        match self.buffered.iter().position(|byte| *byte == b'\n') {
            Some(end) if end < MAX_LINE_BYTES && self.buffered[..=end].ends_with(CRLF) => Ok(Some(end + 1)),
            None if self.buffered.len() < MAX_LINE_BYTES => Ok(None),
            _ => Err(allowed.ambiguous()),
        }
    }
}

/// The size in a line such as `1a;note`. `httparse::parse_chunk_size` is no help: it allows blanks and any byte in the note.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let line = line.strip_suffix(CRLF)?;
    let digits = line.split(|byte| *byte == b';').next()?;
    let is_size = (1..=MAX_CHUNK_SIZE_DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let is_plain = !line.iter().any(u8::is_ascii_control);
    (is_size && is_plain).then(|| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use toolgate_contract::EgressPolicy;

    use super::*;

    #[derive(Debug)]
    struct DenyAll;

    impl EgressPolicy for DenyAll {
        fn pass(&self, host: &str, port: u16) -> Result<(), Denial> {
            Err(Denial::of_host(host, port, "denied", None))
        }

        fn arrive(&self, host: &str, port: u16, _: IpAddr) -> Result<(), Denial> {
            self.pass(host, port)
        }

        fn cleared(&self) -> Vec<(String, u16)> {
            Vec::new()
        }
    }

    /// What is forwarded of a stream that comes in pieces of this size, and why no more was.
    fn forwarded(stream: &str, piece: usize) -> (String, Option<String>) {
        let allowed = AllowedHost { host: "ok.test", port: 80, egress: &DenyAll };
        let (mut requests, mut passed) = (HttpRequestStream::default(), Vec::new());
        for bytes in stream.as_bytes().chunks(piece) {
            match requests.push(bytes, &allowed) {
                Ok(bytes) => passed.extend(bytes),
                Err(denial) => return (String::from_utf8(passed).unwrap(), Some(denial.reason)),
            }
        }
        (String::from_utf8(passed).unwrap(), None)
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n";
    const EVIL: &str = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";

    fn post(fields: &str, body: &str) -> String {
        format!("POST / HTTP/1.1\r\nHost: ok.test\r\n{fields}\r\n\r\n{body}")
    }

    #[test]
    fn requests_for_the_host_pass_however_they_are_cut() {
        let chunked =
            post("Transfer-Encoding: chunked", "4;x=1\r\nGET \r\n10\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n");
        // A body may look like a request.
        let sized = post(&format!("Content-Length: {}", EVIL.len()), EVIL);
        let stream = format!("{GET}{sized}{GET}{chunked}{}{GET}", post("Content-Length: 0", ""));
        for piece in [1, 2, 7, 4096] {
            assert_eq!(forwarded(&stream, piece), (stream.clone(), None), "pieces of {piece}");
        }
    }

    #[test]
    fn the_first_request_for_another_host_ends_the_connection() {
        for first in [
            GET.to_owned(),
            post("Content-Length: 3", "abc"),
            post("Transfer-Encoding: chunked", "1\r\na\r\n0\r\n\r\n"),
            format!("{GET}\r\n"),
        ] {
            for piece in [1, 4096] {
                let (passed, why) = forwarded(&format!("{first}{EVIL}"), piece);
                assert!(
                    !passed.contains("evil") && why.unwrap().contains("names `evil.test`"),
                    "{first:?}: {passed:?}"
                );
            }
        }
    }

    #[test]
    fn requests_that_servers_read_in_different_ways_are_refused() {
        for doubtful in [
            post("Content-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
            post("Content-Length: 5\r\nContent-Length: 6", ""),
            post("Content-Length: 5\r\nContent-Length: 5", ""),
            post("Content-Length: +5", ""),
            post("Content-Length: 5, 5", ""),
            post("Content-Length: 99999999999999999999", ""),
            post("Transfer-Encoding: gzip, chunked", ""),
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", ""),
            post("Transfer-Encoding: xchunked", ""),
            post("Transfer-Encoding: chunked\u{b}", "0\r\n\r\n"),
            post("Transfer-Encoding\u{b}: chunked", "0\r\n\r\n"),
            post("Transfer-Encoding : chunked", "0\r\n\r\n"),
            post("X: y\n\nTransfer-Encoding: chunked", "0\r\n\r\n"),
            post(" Transfer-Encoding: chunked", "0\r\n\r\n"),
            post("Content-Length: 0x5", ""),
            post("Content-Length: -1", ""),
            post("Content-Length: ", ""),
            post("Content-Length: 5 5", ""),
            post("Content-Length\0: 5", ""),
            post("Transfer-Encoding: chunked", "ffffffffffffffffffff\r\n"),
            post("Transfer-Encoding: chunked", "1 \r\na\r\n"),
            post("Transfer-Encoding: chunked", "1;\0\r\na\r\n"),
            post("Transfer-Encoding: chunked", "0x1\r\n"),
            post("Transfer-Encoding: chunked", "1\na\r\n"),
            post("Transfer-Encoding: chunked", "1\r\nab\r\n"),
            post("Transfer-Encoding: chunked", " 1\r\n"),
            post("Transfer-Encoding: chunked", "-1\r\n"),
            post("Transfer-Encoding: chunked", "0\r\nA: b\n\r\n"),
            "GET / HTTP/1.1\r\nHost: ok.test\r\nX: a\rHost: evil.test\r\n\r\n".into(),
            format!("{GET}PRI * HTTP/2.0\r\n\r\n"),
            format!("{GET}\u{1}binary"),
        ] {
            let (passed, why) = forwarded(&doubtful, 4096);
            assert!(why.is_some_and(|why| why.contains("read as one to another")), "{doubtful:?}: {passed:?}");
        }
    }
}
