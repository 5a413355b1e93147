//! The head of an HTTP/1 request: which host it is for, and where its body ends. `httparse` splits the head into fields;
//! this module refuses whatever two servers could still understand in two ways.

use httparse::{EMPTY_HEADER, Header, Request, Status};

use super::sniff::SniffedProtocol;

/// The empty line that ends a head.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// A request head that every server reads in the same way.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestHead {
    /// The host that it names; none if it names none.
    pub(super) host: Option<String>,
    /// How long it is, with the empty line at its end.
    pub(super) length: usize,
    /// What follows it.
    pub(super) body: BodyFraming,
}

/// How a request tells the length of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFraming {
    /// By a number of bytes, which is 0 without a body.
    ContentLength(u64),
    /// By the chunks that it is cut into.
    Chunked,
}

/// Why bytes aren't a request head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadError {
    /// More bytes are needed.
    Incomplete,
    /// Servers could read it in different ways, or it asks for a tunnel.
    Ambiguous,
    /// It doesn't begin with an HTTP/1 request line.
    NotHttp,
}

/// Reads the first request of a connection.
pub(super) fn sniff(bytes: &[u8]) -> SniffedProtocol {
    match parse(bytes) {
        Ok(head) => SniffedProtocol::Http(head.host),
        Err(HeadError::Incomplete) => SniffedProtocol::Incomplete,
        Err(HeadError::Ambiguous) => SniffedProtocol::Ambiguous,
        Err(HeadError::NotHttp) => SniffedProtocol::Other,
    }
}

/// Reads the request head that `bytes` begin with.
pub(super) fn parse(bytes: &[u8]) -> Result<RequestHead, HeadError> {
    let line_end = bytes.iter().position(|byte| *byte == b'\n').ok_or(HeadError::Incomplete)?;
    // Decided here and not by what `httparse` makes of the line: what isn't HTTP passes at ports of other protocols.
    if !is_request_line(&bytes[..line_end]) {
        return Err(HeadError::NotHttp);
    }
    let length = bytes.windows(HEAD_END.len()).position(|window| window == HEAD_END).ok_or(HeadError::Incomplete)?;
    let head = &bytes[..length + HEAD_END.len()];
    let mut fields = vec![EMPTY_HEADER; head.iter().filter(|byte| **byte == b'\n').count()];
    let mut request = Request::new(&mut fields);
    // `httparse` lets a bare line feed end a line, and so the head. To other servers the head goes on.
    if request.parse(head) != Ok(Status::Complete(head.len())) {
        return Err(HeadError::Ambiguous);
    }
    let target = request.path.ok_or(HeadError::Ambiguous)?;
    let host = host(target, request.headers).ok_or(HeadError::Ambiguous)?;
    let body = body_framing(request.headers).ok_or(HeadError::Ambiguous)?;
    Ok(RequestHead { host, length: head.len(), body })
}

/// Whether a line is a method in capitals, a target and a version of HTTP/1.
fn is_request_line(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    matches!(words[..], [method, _, version] if method.iter().all(u8::is_ascii_uppercase) && version.starts_with(b"HTTP/1."))
}

/// The host in the target (absolute form) and in the Host field, without its port. The outer `None` means that they disagree,
/// or that there are more than two.
fn host(target: &str, fields: &[Header<'_>]) -> Option<Option<String>> {
    let mut hosts = Vec::new();
    if !target.starts_with('/') && target != "*" {
        let authority = target.strip_prefix("http://")?.split('/').next()?;
        hosts.push(without_port(authority.as_bytes()));
    }
    hosts.extend(values(fields, "host").map(without_port));
    match &hosts[..] {
        [] => Some(None),
        [host] => Some(Some(host.clone())),
        [host, other] if host == other => Some(Some(host.clone())),
        _ => None,
    }
}

/// What follows the head, if all servers agree on it.
fn body_framing(fields: &[Header<'_>]) -> Option<BodyFraming> {
    let lengths: Vec<&[u8]> = values(fields, "content-length").collect();
    let encodings: Vec<&[u8]> = values(fields, "transfer-encoding").collect();
    match (&lengths[..], &encodings[..]) {
        ([], []) => Some(BodyFraming::ContentLength(0)),
        ([length], []) if length.iter().all(u8::is_ascii_digit) => {
            std::str::from_utf8(length).ok()?.parse().ok().map(BodyFraming::ContentLength)
        }
        ([], [encoding]) if encoding.eq_ignore_ascii_case(b"chunked") => Some(BodyFraming::Chunked),
        _ => None,
    }
}

fn values<'a>(fields: &'a [Header<'_>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value.trim_ascii())
}

/// A host as it stands in a request, without its port.
fn without_port(host: &[u8]) -> String {
    let text = String::from_utf8_lossy(host).to_ascii_lowercase();
    match text.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(host: Option<&str>) -> SniffedProtocol {
        SniffedProtocol::Http(host.map(str::to_owned))
    }

    #[test]
    fn a_head_names_one_host_or_none() {
        let many = format!("GET / HTTP/1.1\r\nHost: ok.example\r\n{}\r\n", "a: b\r\n".repeat(1000));
        for (request, expected) in [
            ("GET / HTTP/1.1\r\nHost: OK.example:80\r\n\r\n", http(Some("ok.example"))),
            ("GET http://ok.example/a HTTP/1.1\r\nhost: ok.example\r\n\r\n", http(Some("ok.example"))),
            ("GET http://ok.example:80 HTTP/1.1\r\n\r\n", http(Some("ok.example"))),
            ("OPTIONS * HTTP/1.1\r\nHost: ok.example\r\n\r\n", http(Some("ok.example"))),
            ("GET / HTTP/1.0\r\n\r\n", http(None)),
            (&many, http(Some("ok.example"))),
            ("GET / HTTP/1.1\r\nHost: ok.example\r\n", SniffedProtocol::Incomplete),
            ("GET / HT", SniffedProtocol::Incomplete),
            ("SSH-2.0-OpenSSH\r\n", SniffedProtocol::Other),
            ("PRI * HTTP/2.0\r\n\r\n", SniffedProtocol::Other),
        ] {
            assert_eq!(sniff(request.as_bytes()), expected, "{request:?}");
        }
    }

    #[test]
    fn what_servers_may_read_as_another_host_is_ambiguous() {
        for request in [
            "GET / HTTP/1.1\r\nHost: ok.example\r\nHost: evil.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: ok.example\r\nhost: ok.example\r\nHOST: ok.example\r\n\r\n",
            "GET http://evil.example/ HTTP/1.1\r\nHost: ok.example\r\n\r\n",
            "GET http://evil.example:80/ HTTP/1.1\r\nHost: ok.example:80\r\n\r\n",
            "GET https://ok.example/ HTTP/1.1\r\nHost: ok.example\r\n\r\n",
            "GET evil.example/ HTTP/1.1\r\nHost: ok.example\r\n\r\n",
            "CONNECT evil.example:443 HTTP/1.1\r\nHost: ok.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: ok.example\r\n evil.example\r\n\r\n",
            "GET / HTTP/1.1\r\n Host: evil.example\r\nHost: ok.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : evil.example\r\nHost: ok.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\t: evil.example\r\nHost: ok.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\u{b}: evil.example\r\nHost: ok.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\0: evil.example\r\nHost: ok.example\r\n\r\n",
            "GET / HTTP/1.1\r\n: evil.example\r\nHost: ok.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost evil.example\r\nHost: ok.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: ok.example\0.evil\r\n\r\n",
            "GET / HTTP/1.1\r\nX: a\rHost: evil.example\r\nHost: ok.example\r\n\r\n",
            "GET / HTTP/1.1\nHost: ok.example\n\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: ok.example\n\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            "GET / HTTP/1.7\r\nHost: ok.example\r\n\r\n",
            "GET / HTTP/1.1 \r\nHost: ok.example\r\n\r\n",
            "GET /\u{1} HTTP/1.1\r\nHost: ok.example\r\n\r\n",
            " GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n",
        ] {
            let sniffed = sniff(request.as_bytes());
            let refused_at_http_ports = matches!(sniffed, SniffedProtocol::Ambiguous | SniffedProtocol::Other);
            assert!(refused_at_http_ports, "{request:?}: {sniffed:?}");
            assert_eq!(
                sniffed == SniffedProtocol::Other,
                !is_request_line(request.split('\n').next().unwrap().as_bytes())
            );
        }
    }

    #[test]
    fn a_head_may_come_in_any_pieces_and_never_panics() {
        let whole = b"POST /a HTTP/1.1\r\nHost: ok.example\r\nContent-Length: 3\r\n\r\n";
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), Err(HeadError::Incomplete), "{length}");
        }
        let head = parse(&[&whole[..], b"abc"].concat()).unwrap();
        assert_eq!((head.length, head.body), (whole.len(), BodyFraming::ContentLength(3)));
        for at in 0..whole.len() {
            for byte in [0, b'\r', b'\n', b' ', b':', 0x7f, 0xff] {
                let mut bytes = whole.to_vec();
                bytes[at] = byte;
                if let Ok(head) = parse(&bytes) {
                    assert!(head.length <= bytes.len() && bytes[..head.length].ends_with(HEAD_END));
                }
            }
        }
    }
}
