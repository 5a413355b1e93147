//! The requests of a plain HTTP connection, one after the other. A connection that stays open could be let through for one
//! host and then ask for another on the same server, so the head of every request is held against the host. To find the
//! next head, the body before it has to be measured as every server would; what leaves a doubt is refused, and so is
//! whatever isn't a request any more, such as another protocol after an upgrade.

use toolgate_contract::Denial;

use super::allowed_host::AllowedHost;
use super::client_hello::{self, SniffedProtocol};

/// Bytes of a line that measures a piece of a body.
const LONGEST_LINE: usize = 4096;

/// What a client says, cut into requests.
#[derive(Debug, Default)]
pub(super) struct HttpRequestStream {
    /// What came and isn't understood yet.
    waiting: Vec<u8>,
    next: HttpParseState,
}

/// What comes next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum HttpParseState {
    /// The head of a request.
    #[default]
    Head,
    /// So many bytes of a body.
    Body(u64),
    /// The line that says how long the next piece of a body is.
    Size,
    /// So many bytes of a piece, then the end of its line.
    Piece(u64),
    /// The lines after the last piece.
    Trailer,
}

impl HttpRequestStream {
    /// Takes what the client says next, and gives what may go on to the server.
    pub(super) fn take(&mut self, bytes: &[u8], meant: &AllowedHost<'_>) -> Result<Vec<u8>, Denial> {
        self.waiting.extend_from_slice(bytes);
        let mut passed = Vec::with_capacity(self.waiting.len());
        while let Some(count) = self.understood(meant)? {
            passed.extend(self.waiting.drain(..count));
        }
        Ok(passed)
    }

    /// How many of the waiting bytes may go on; none if more have to come first.
    fn understood(&mut self, meant: &AllowedHost<'_>) -> Result<Option<usize>, Denial> {
        match self.next {
            HttpParseState::Head => self.head(meant),
            HttpParseState::Body(0) => self.then(HttpParseState::Head, 0),
            HttpParseState::Piece(0) => match self.line(meant)? {
                Some(2) => self.then(HttpParseState::Size, 2),
                Some(_) => Err(meant.unclear()),
                None => Ok(None),
            },
            HttpParseState::Body(left) => self.some_of(left, HttpParseState::Body),
            HttpParseState::Piece(left) => self.some_of(left, HttpParseState::Piece),
            HttpParseState::Size => {
                let Some(length) = self.line(meant)? else { return Ok(None) };
                match chunk_size(&self.waiting[..length]).ok_or_else(|| meant.unclear())? {
                    0 => self.then(HttpParseState::Trailer, length),
                    size => self.then(HttpParseState::Piece(size), length),
                }
            }
            HttpParseState::Trailer => match self.line(meant)? {
                Some(2) => self.then(HttpParseState::Head, 2),
                length => Ok(length),
            },
        }
    }

    fn then(&mut self, next: HttpParseState, count: usize) -> Result<Option<usize>, Denial> {
        self.next = next;
        Ok(Some(count))
    }

    fn some_of(&mut self, left: u64, next: fn(u64) -> HttpParseState) -> Result<Option<usize>, Denial> {
        let count = self.waiting.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if count == 0 {
            return Ok(None);
        }
        self.then(next(left - count as u64), count)
    }

    /// A whole head that is for the right host.
    fn head(&mut self, meant: &AllowedHost<'_>) -> Result<Option<usize>, Denial> {
        // Some clients end a body with a line too many; servers pass over it.
        while self.waiting.starts_with(b"\r\n") {
            self.waiting.drain(..2);
        }
        if self.waiting == b"\r" {
            return Ok(None);
        }
        let heard = client_hello::read(&self.waiting);
        match heard {
            SniffedProtocol::Unfinished if self.waiting.len() < client_hello::LONGEST => return Ok(None),
            SniffedProtocol::Http(_) => meant.hears(&heard)?,
            _ => return Err(meant.unclear()),
        }
        let end = client_hello::end_of_head(&self.waiting).ok_or_else(|| meant.unclear())?;
        let body = body_framing(&self.waiting[..end]).ok_or_else(|| meant.unclear())?;
        self.then(body, end)
    }

    /// How long the next line is, with its end; none if that hasn't come yet.
    fn line(&self, meant: &AllowedHost<'_>) -> Result<Option<usize>, Denial> {
        let end = self.waiting.iter().position(|byte| *byte == b'\n');
        match end {
            Some(end) if end > 0 && end < LONGEST_LINE && self.waiting[end - 1] == b'\r' => Ok(Some(end + 1)),
            None if self.waiting.len() < LONGEST_LINE => Ok(None),
            _ => Err(meant.unclear()),
        }
    }
}

/// What follows a head, if all servers agree on that.
fn body_framing(head: &[u8]) -> Option<HttpParseState> {
    let (mut lengths, mut encodings) = (Vec::new(), Vec::new());
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            lengths.push(value);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            encodings.push(value);
        }
    }
    match (lengths[..].as_ref(), encodings[..].as_ref()) {
        ([], []) => Some(HttpParseState::Body(0)),
        ([length], []) if length.iter().all(u8::is_ascii_digit) => {
            std::str::from_utf8(length).ok()?.parse().ok().map(HttpParseState::Body)
        }
        ([], [encoding]) if encoding.eq_ignore_ascii_case(b"chunked") => Some(HttpParseState::Size),
        _ => None,
    }
}

/// The size in a line such as `1a;note`.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let line = line.strip_suffix(b"\r\n")?;
    let digits = line.split(|byte| *byte == b';').next()?;
    let is_size = (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let is_plain = !line.iter().any(u8::is_ascii_control);
    (is_size && is_plain).then(|| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use toolgate_contract::EgressPolicy;

    use super::*;

    #[derive(Debug)]
    struct Closed;

    impl EgressPolicy for Closed {
        fn pass(&self, host: &str, port: u16) -> Result<(), Denial> {
            Err(Denial::of_host(host, port, "closed", None))
        }

        fn arrive(&self, host: &str, port: u16, _: IpAddr) -> Result<(), Denial> {
            self.pass(host, port)
        }

        fn cleared(&self) -> Vec<(String, u16)> {
            Vec::new()
        }
    }

    /// What gets through, in pieces of this size, and why no more did.
    fn sifted(stream: &str, piece: usize) -> (String, Option<String>) {
        let meant = AllowedHost { host: "ok.test", port: 80, egress: &Closed };
        let (mut requests, mut passed) = (HttpRequestStream::default(), Vec::new());
        for bytes in stream.as_bytes().chunks(piece) {
            match requests.take(bytes, &meant) {
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
            assert_eq!(sifted(&stream, piece), (stream.clone(), None), "pieces of {piece}");
        }
    }

    #[test]
    fn the_first_request_for_somebody_else_ends_it() {
        for first in [
            GET.to_owned(),
            post("Content-Length: 3", "abc"),
            post("Transfer-Encoding: chunked", "1\r\na\r\n0\r\n\r\n"),
            format!("{GET}\r\n"),
        ] {
            for piece in [1, 4096] {
                let (passed, why) = sifted(&format!("{first}{EVIL}"), piece);
                assert!(!passed.contains("evil") && why.unwrap().contains("for `evil.test`"), "{first:?}: {passed:?}");
            }
        }
    }

    #[test]
    fn what_servers_read_in_different_ways_is_refused() {
        for doubtful in [
            post("Content-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
            post("Content-Length: 5\r\nContent-Length: 6", ""),
            post("Content-Length: 5\r\nContent-Length: 5", ""),
            post("Content-Length: +5", ""),
            post("Content-Length: 5, 5", ""),
            post("Content-Length: 99999999999999999999", ""),
            post("Transfer-Encoding: gzip, chunked", ""),
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", ""),
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
            let (passed, why) = sifted(&doubtful, 4096);
            assert!(why.is_some_and(|why| why.contains("read as one to another")), "{doubtful:?}: {passed:?}");
        }
    }
}
