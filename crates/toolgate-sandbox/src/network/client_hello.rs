//! The TLS ClientHello (RFC 8446, 4.1.2), read only as far as its server_name extension (SNI, RFC 6066).
//!
//! Read by hand, not by `rustls::server::Acceptor`. The Acceptor hides an SNI that is an IP address, so that a connection to
//! an allowed address could name another address unseen. It also rejects hellos that servers take, such as those of TLS 1.1
//! clients, which have no signature_algorithms. The tests hold this reader against the Acceptor and list the differences.

use super::sniff::SniffedProtocol;

/// `ContentType::handshake` (RFC 8446, 5.1), the first byte of a TLS record.
pub(super) const CONTENT_TYPE_HANDSHAKE: u8 = 22;
/// Bytes of `legacy_record_version`.
const RECORD_VERSION_LENGTH: usize = 2;
/// `HandshakeType::client_hello` (RFC 8446, 4).
const HANDSHAKE_TYPE_CLIENT_HELLO: u8 = 1;
/// The type of a handshake message and its 24-bit length.
const HANDSHAKE_HEADER_LENGTH: usize = 4;
/// Bytes of `legacy_version` and `random`, with which a ClientHello begins.
const VERSION_AND_RANDOM_LENGTH: usize = 2 + 32;
/// `ExtensionType::server_name` (RFC 6066, 1.1).
const EXTENSION_SERVER_NAME: [u8; 2] = [0, 0];
/// `NameType::host_name` (RFC 6066, 3).
const NAME_TYPE_HOST_NAME: u8 = 0;

/// Reads the records that a connection begins with. A ClientHello may be fragmented across several.
pub(super) fn sniff(bytes: &[u8]) -> SniffedProtocol {
    let mut records = TlsReader(bytes);
    let mut message = Vec::new();
    loop {
        match handshake_message(&message) {
            Some((HANDSHAKE_TYPE_CLIENT_HELLO, Some(body))) => return server_name(body),
            Some((HANDSHAKE_TYPE_CLIENT_HELLO, None)) | None => {}
            Some(_) => return SniffedProtocol::Tls(None),
        }
        match next_record(&mut records) {
            Some((CONTENT_TYPE_HANDSHAKE, fragment)) => message.extend_from_slice(fragment),
            Some(_) => return SniffedProtocol::Other,
            None => return SniffedProtocol::Incomplete,
        }
    }
}

/// The content type and the fragment of the next record, once all of it is there.
fn next_record<'a>(records: &mut TlsReader<'a>) -> Option<(u8, &'a [u8])> {
    let content_type = records.byte()?;
    records.take(RECORD_VERSION_LENGTH)?;
    Some((content_type, records.vector(2)?))
}

/// The type of a handshake message once its header is there, and its body once all of it is.
fn handshake_message(message: &[u8]) -> Option<(u8, Option<&[u8]>)> {
    let (header, _) = message.split_at_checked(HANDSHAKE_HEADER_LENGTH)?;
    let mut message = TlsReader(&message[1..]);
    Some((header[0], message.vector(3)))
}

fn server_name(client_hello: &[u8]) -> SniffedProtocol {
    match server_name_extensions(client_hello).as_deref() {
        Some([]) => SniffedProtocol::Tls(None),
        // A list that can't be read, or holds two names, may be read as another name by the server.
        Some([list]) => host_name(list).map_or(SniffedProtocol::Ambiguous, |name| SniffedProtocol::Tls(Some(name))),
        // So may the second of two extensions, or what can't be read at all.
        Some(_) | None => SniffedProtocol::Ambiguous,
    }
}

/// The content of each server_name extension; none if the message can't be read.
fn server_name_extensions(client_hello: &[u8]) -> Option<Vec<&[u8]>> {
    let mut hello = TlsReader(client_hello);
    hello.take(VERSION_AND_RANDOM_LENGTH)?;
    let _legacy_session_id = hello.vector(1)?;
    let _cipher_suites = hello.vector(2)?;
    let _legacy_compression_methods = hello.vector(1)?;
    // Before TLS 1.3 the extensions may be left out.
    if hello.0.is_empty() {
        return Some(Vec::new());
    }
    let mut extensions = TlsReader(hello.vector(2)?);
    let mut found = Vec::new();
    while !extensions.0.is_empty() {
        let extension_type = extensions.take(EXTENSION_SERVER_NAME.len())?;
        let content = extensions.vector(2)?;
        if extension_type == EXTENSION_SERVER_NAME {
            found.push(content);
        }
    }
    Some(found)
}

/// The host name in a list that holds one and nothing else.
fn host_name(server_name_list: &[u8]) -> Option<String> {
    let mut names = TlsReader(TlsReader(server_name_list).vector(2)?);
    (names.byte()? == NAME_TYPE_HOST_NAME).then_some(())?;
    let name = names.vector(2)?;
    names.0.is_empty().then(|| String::from_utf8(name.to_vec()).ok()).flatten()
}

/// Reads the presentation language of TLS (RFC 8446, 3).
struct TlsReader<'a>(&'a [u8]);

impl<'a> TlsReader<'a> {
    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    /// A variable-length vector: its length in `width` bytes, then its content.
    fn vector(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = self.take(width)?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::server::Acceptor;

    use super::*;

    const WHOLE: usize = 10_000;
    const SIGNATURE_ALGORITHMS: [u8; 2] = [0, 13];
    const PADDING: [u8; 2] = [0, 21];
    const SUPPORTED_VERSIONS: [u8; 2] = [0, 43];

    fn vector(width: usize, content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32).to_be_bytes()[4 - width..], content].concat()
    }

    fn extension(extension_type: [u8; 2], content: &[u8]) -> Vec<u8> {
        [&extension_type[..], &vector(2, content)].concat()
    }

    /// A server_name extension with these entries.
    fn sni(names: &[&str]) -> Vec<u8> {
        let entry = |name: &&str| [&[NAME_TYPE_HOST_NAME][..], &vector(2, name.as_bytes())].concat();
        extension(EXTENSION_SERVER_NAME, &vector(2, &names.iter().flat_map(entry).collect::<Vec<u8>>()))
    }

    fn signature_algorithms() -> Vec<u8> {
        extension(SIGNATURE_ALGORITHMS, &vector(2, &[4, 3]))
    }

    /// A ClientHello as it goes over the wire, with these extensions, in records of this size.
    fn hello(extensions: &[Vec<u8>], record: usize) -> Vec<u8> {
        let extensions = vector(2, &extensions.concat());
        let (session, suites, compression) = (vector(1, &[1; 32]), vector(2, &[0x13, 1]), vector(1, &[0]));
        let body = [&[3, 3][..], &[9; 32], &session, &suites, &compression, &extensions].concat();
        let message = [&[HANDSHAKE_TYPE_CLIENT_HELLO][..], &vector(3, &body)].concat();
        let record_of = |part: &[u8]| [&[CONTENT_TYPE_HANDSHAKE, 3, 1][..], &vector(2, part)].concat();
        message.chunks(record).flat_map(record_of).collect()
    }

    fn usual(host: &str, record: usize) -> Vec<u8> {
        let versions = extension(SUPPORTED_VERSIONS, &vector(1, &[3, 4]));
        hello(&[versions, sni(&[host]), signature_algorithms()], record)
    }

    fn tls(host: &str) -> SniffedProtocol {
        SniffedProtocol::Tls(Some(host.into()))
    }

    /// What rustls makes of the same bytes: the name that it found, or that it rejects the hello.
    fn by_acceptor(bytes: &[u8]) -> Result<Option<String>, rustls::Error> {
        let mut acceptor = Acceptor::default();
        let mut rest = bytes;
        loop {
            let count = acceptor.read_tls(&mut rest).unwrap();
            match acceptor.accept() {
                Ok(Some(accepted)) => return Ok(accepted.client_hello().server_name().map(str::to_owned)),
                Ok(None) => assert!(count > 0, "rustls waits for more"),
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// What the client of rustls says first.
    fn by_client(host: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        let name = host.to_owned().try_into().unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_host_is_found_however_the_hello_is_fragmented() {
        for record in [7, 50, WHOLE] {
            let bytes = usual("ok.example", record);
            assert_eq!(sniff(&bytes), tls("ok.example"), "records of {record}");
            for length in 0..bytes.len() {
                assert_eq!(sniff(&bytes[..length]), SniffedProtocol::Incomplete, "{length} bytes, records of {record}");
            }
        }
    }

    #[test]
    fn this_reader_and_rustls_find_the_same_host() {
        let large = extension(PADDING, &[0; 20_000]);
        for bytes in [
            by_client("ok.example"),
            usual("ok.example", 7),
            usual("ok.example", WHOLE),
            hello(&[large, sni(&["ok.example"]), signature_algorithms()], 16_000),
        ] {
            assert_eq!(sniff(&bytes), tls("ok.example"));
            assert_eq!(by_acceptor(&bytes), Ok(Some("ok.example".into())));
        }
        let nameless = hello(&[signature_algorithms()], WHOLE);
        assert_eq!((sniff(&nameless), by_acceptor(&nameless)), (SniffedProtocol::Tls(None), Ok(None)));
        assert_eq!(sniff(&by_client("192.0.2.2")), SniffedProtocol::Tls(None), "clients leave an address out");
    }

    /// Why rustls doesn't read hellos here. Should one of these change, think again.
    #[test]
    fn rustls_hides_an_address_and_rejects_old_clients() {
        let address = usual("192.0.2.9", WHOLE);
        assert_eq!((sniff(&address), by_acceptor(&address)), (tls("192.0.2.9"), Ok(None)));
        let old = hello(&[sni(&["ok.example"])], WHOLE);
        assert_eq!(sniff(&old), tls("ok.example"));
        assert!(by_acceptor(&old).is_err(), "without signature_algorithms");
    }

    #[test]
    fn what_servers_may_read_as_another_host_is_ambiguous() {
        for (case, extensions) in [
            ("two names", vec![sni(&["ok.example", "evil.example"])]),
            ("two extensions", vec![sni(&["ok.example"]), sni(&["evil.example"])]),
            ("the same name twice", vec![sni(&["ok.example"]), sni(&["ok.example"])]),
            ("no name", vec![sni(&[])]),
            ("another type of name", vec![extension(EXTENSION_SERVER_NAME, &vector(2, &[7, 0, 1, b'a']))]),
            ("bytes that are no text", vec![extension(EXTENSION_SERVER_NAME, &vector(2, &[0, 0, 1, 0xff]))]),
            ("a list cut short", vec![extension(EXTENSION_SERVER_NAME, &[0, 9, 0])]),
        ] {
            let bytes = hello(&[extensions.concat(), signature_algorithms()], WHOLE);
            assert_eq!(sniff(&bytes), SniffedProtocol::Ambiguous, "{case}");
            assert!(by_acceptor(&bytes).unwrap_or(None).is_none(), "rustls takes none of the names either: {case}");
        }
    }

    #[test]
    fn odd_names_are_told_as_they_are() {
        for name in ["ok.example.", "OK.example", "ok.example\0.evil", "", "under_score.example", "[2001:db8::1]"] {
            assert_eq!(sniff(&usual(name, WHOLE)), tls(name), "{name:?}");
        }
    }

    #[test]
    fn broken_tls_names_nobody_and_never_panics() {
        let whole = usual("ok.example", WHOLE);
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                sniff(&bytes);
            }
        }
        let cut_short = hello(&[sni(&["ok.example"]), vec![0, 16, 0, 9, 1]], WHOLE);
        assert_eq!(sniff(&cut_short), SniffedProtocol::Ambiguous, "an extension cut short");
        let server_hello = [CONTENT_TYPE_HANDSHAKE, 3, 1, 0, 4, 2, 0, 0, 0];
        assert_eq!(sniff(&server_hello), SniffedProtocol::Tls(None), "not a ClientHello");
    }
}
