//! The first words of a connection: to whom does the client think it speaks? TLS says so in its greeting (SNI), HTTP in
//! its first request. A name that differs from the one that was let through is a way to somebody else on the same server.

/// Bytes that a greeting may take.
pub(super) const LONGEST: usize = 32 * 1024;

/// What the first bytes say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SniffedProtocol {
    /// Not all of it is there yet.
    Unfinished,
    /// TLS, for this host if it says so.
    Tls(Option<String>),
    /// HTTP, for this host if it says so.
    Http(Option<String>),
    /// HTTP that says different things at different places, or asks for a tunnel.
    Ambiguous,
    /// Something else.
    Other,
}

/// Reads the first bytes of a connection.
pub(super) fn read(bytes: &[u8]) -> SniffedProtocol {
    match bytes {
        [] => SniffedProtocol::Unfinished,
        [0x16, ..] => tls(bytes),
        [first, ..] if first.is_ascii_uppercase() => http(bytes),
        _ => SniffedProtocol::Other,
    }
}

/// A ClientHello may come in several records; its host is in an extension.
fn tls(bytes: &[u8]) -> SniffedProtocol {
    let mut records = TlsReader(bytes);
    let mut hello = Vec::new();
    loop {
        match wanted(&hello) {
            Some(whole) if hello.len() >= whole => return server_name_of_hello(&hello[4..whole]),
            _ => {}
        }
        let record = (|| {
            let kind = records.take(1)?[0];
            records.take(2)?;
            Some((kind, records.sized(2)?))
        })();
        match record {
            Some((0x16, part)) => hello.extend_from_slice(part),
            Some(_) => return SniffedProtocol::Other,
            None => return SniffedProtocol::Unfinished,
        }
    }
}

/// How long the whole message is, once its beginning is there.
fn wanted(hello: &[u8]) -> Option<usize> {
    let [kind, a, b, c, ..] = hello else { return None };
    // Anything but a ClientHello is read as an empty one, which names no host.
    Some(if *kind == 1 { 4 + u32::from_be_bytes([0, *a, *b, *c]) as usize } else { 4 })
}

fn server_name_of_hello(body: &[u8]) -> SniffedProtocol {
    let found = (|| {
        let mut body = TlsReader(body);
        body.take(2 + 32)?;
        body.sized(1)?;
        body.sized(2)?;
        body.sized(1)?;
        let mut extensions = TlsReader(body.sized(2)?);
        while let Some(kind) = extensions.take(2) {
            let content = extensions.sized(2)?;
            if kind == [0, 0] {
                return Some(host_in_server_name_list(content));
            }
        }
        None
    })();
    SniffedProtocol::Tls(found.flatten())
}

fn host_in_server_name_list(list: &[u8]) -> Option<String> {
    let mut names = TlsReader(TlsReader(list).sized(2)?);
    (names.take(1)? == [0]).then_some(())?;
    let name = names.sized(2)?;
    names.0.is_empty().then(|| String::from_utf8(name.to_vec()).ok()).flatten()
}

struct TlsReader<'a>(&'a [u8]);

impl<'a> TlsReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    /// So many bytes of length, and then that many bytes.
    fn sized(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = self.take(width)?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        self.take(length)
    }
}

fn http(bytes: &[u8]) -> SniffedProtocol {
    let Some(end) = end_of_head(bytes) else {
        // A request begins with a line that ends in its version; what doesn't is something else.
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let is_line_over = line.len() < bytes.len();
        return if is_line_over && !is_request_line(line) {
            SniffedProtocol::Other
        } else {
            SniffedProtocol::Unfinished
        };
    };
    let mut lines = bytes[..end - 4].split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first = lines.next().unwrap_or_default();
    if !is_request_line(first) {
        return SniffedProtocol::Other;
    }
    let mut hosts: Vec<String> = Vec::new();
    let target = first.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    match target {
        [b'/', ..] | b"*" => {}
        target => match target.strip_prefix(b"http://").and_then(|rest| rest.split(|byte| *byte == b'/').next()) {
            Some(host) => hosts.push(plain(host)),
            None => return SniffedProtocol::Ambiguous,
        },
    }
    for line in lines {
        // A line that goes on, a name with a blank behind it, or a lone carriage return is read in different ways by different servers.
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return SniffedProtocol::Ambiguous };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        let is_odd = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
        if name.is_empty() || name.iter().any(u8::is_ascii_whitespace) || value.iter().any(is_odd) {
            return SniffedProtocol::Ambiguous;
        }
        if name.eq_ignore_ascii_case(b"host") {
            hosts.push(plain(value.trim_ascii()));
        }
    }
    match hosts.as_slice() {
        [] => SniffedProtocol::Http(None),
        [host, rest @ ..] if rest.iter().all(|other| other == host) && rest.len() < 2 => {
            SniffedProtocol::Http(Some(host.clone()))
        }
        _ => SniffedProtocol::Ambiguous,
    }
}

/// Where the head of a request ends, if all of it is there.
pub(super) fn end_of_head(bytes: &[u8]) -> Option<usize> {
    Some(bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4)
}

fn is_request_line(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    matches!(words[..], [method, _, version] if method.iter().all(u8::is_ascii_uppercase) && version.starts_with(b"HTTP/1."))
}

/// A host as it stands in a request, without its port.
fn plain(host: &[u8]) -> String {
    let text = String::from_utf8_lossy(host).to_ascii_lowercase();
    match text.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
        _ => text,
    }
}

/// Whether a host that a client names is the one that was let through.
pub(super) fn is_same(named: &str, host: &str) -> bool {
    let bare = |text: &str| text.strip_suffix('.').unwrap_or(text).trim_matches(['[', ']']).to_ascii_lowercase();
    bare(named) == bare(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ClientHello as it goes over the wire, for this host, in records of this size.
    fn hello(host: &str, record: usize) -> Vec<u8> {
        let sized =
            |width: usize, content: &[u8]| [&(content.len() as u32).to_be_bytes()[4 - width..], content].concat();
        let name = sized(2, &[&[0][..], &sized(2, host.as_bytes())].concat());
        let other = [&[0, 43][..], &sized(2, &[2, 3, 4])].concat();
        let extension = [&[0, 0][..], &sized(2, &name)].concat();
        let extensions = sized(2, &[other, extension].concat());
        let body = [&[3, 3][..], &[9; 32], &sized(1, &[1; 32]), &sized(2, &[0x13, 1]), &sized(1, &[0]), &extensions];
        let message = [&[1][..], &sized(3, &body.concat())].concat();
        message.chunks(record).flat_map(|part| [&[0x16, 3, 1][..], &sized(2, part)].concat()).collect()
    }

    #[test]
    fn tls_tells_its_host_however_it_is_cut() {
        for record in [7, 50, 10_000] {
            let bytes = hello("ok.example", record);
            assert_eq!(read(&bytes), SniffedProtocol::Tls(Some("ok.example".into())), "records of {record}");
            for length in 0..bytes.len() {
                assert_eq!(read(&bytes[..length]), SniffedProtocol::Unfinished, "{length} bytes, records of {record}");
            }
        }
    }

    #[test]
    fn broken_tls_names_nobody_and_never_panics() {
        let whole = hello("ok.example", 10_000);
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                read(&bytes);
            }
        }
        assert_eq!(read(&[0x16, 3, 1, 0, 4, 2, 0, 0, 0]), SniffedProtocol::Tls(None), "not a ClientHello");
    }

    #[test]
    fn http_tells_its_host_or_is_ambiguous() {
        let http = |host: Option<&str>| SniffedProtocol::Http(host.map(str::to_owned));
        for (request, expected) in [
            ("GET / HTTP/1.1\r\nHost: OK.example:80\r\n\r\n", http(Some("ok.example"))),
            ("GET http://ok.example/a HTTP/1.1\r\nhost: ok.example\r\n\r\n", http(Some("ok.example"))),
            ("GET / HTTP/1.0\r\n\r\n", http(None)),
            ("GET / HTTP/1.1\r\nHost: ok.example\r\n", SniffedProtocol::Unfinished),
            ("GET / HT", SniffedProtocol::Unfinished),
            ("GET / HTTP/1.1\r\nHost: ok.example\r\nHost: evil.example\r\n\r\n", SniffedProtocol::Ambiguous),
            ("GET http://evil.example/ HTTP/1.1\r\nHost: ok.example\r\n\r\n", SniffedProtocol::Ambiguous),
            ("CONNECT evil.example:443 HTTP/1.1\r\nHost: ok.example\r\n\r\n", SniffedProtocol::Ambiguous),
            ("GET / HTTP/1.1\r\nHost: ok.example\r\n evil.example\r\n\r\n", SniffedProtocol::Ambiguous),
            ("GET / HTTP/1.1\r\nHost : evil.example\r\nHost: ok.example\r\n\r\n", SniffedProtocol::Ambiguous),
            ("SSH-2.0-OpenSSH\r\n", SniffedProtocol::Other),
            ("\u{3}\0\0", SniffedProtocol::Other),
        ] {
            assert_eq!(read(request.as_bytes()), expected, "{request:?}");
        }
    }

    #[test]
    fn hosts_are_the_same_in_spite_of_case_and_a_final_dot() {
        for (named, host, expected) in [
            ("Ok.Example.", "ok.example", true),
            ("ok.example.evil", "ok.example", false),
            ("evil.ok.example", "ok.example", false),
            ("", "ok.example", false),
            ("ok.example\0.evil", "ok.example", false),
        ] {
            assert_eq!(is_same(named, host), expected, "{named:?}");
        }
    }
}
