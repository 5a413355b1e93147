//! Protocol sniffing: which host do the first bytes of a connection name? TLS names it in the ClientHello (SNI), HTTP in
//! the head of a request. The policy allowed one host; on a shared server another name would reach another host.

use super::{client_hello, http_head};

/// Bytes that may be buffered while a ClientHello or a request head is incomplete.
pub(super) const MAX_SNIFFED_BYTES: usize = 32 * 1024;

/// What the first bytes of a connection are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SniffedProtocol {
    /// More bytes are needed.
    Incomplete,
    /// A TLS ClientHello, and the host that it names.
    Tls(Option<String>),
    /// The head of an HTTP request, and the host that it names.
    Http(Option<String>),
    /// TLS or HTTP that different servers would read in different ways, or a request for a tunnel.
    Ambiguous,
    /// Any other protocol.
    Other,
}

/// Recognizes the protocol of a connection by its first bytes.
pub(super) fn sniff(bytes: &[u8]) -> SniffedProtocol {
    match bytes {
        [] => SniffedProtocol::Incomplete,
        [client_hello::CONTENT_TYPE_HANDSHAKE, ..] => client_hello::sniff(bytes),
        [first, ..] if first.is_ascii_uppercase() => http_head::sniff(bytes),
        _ => SniffedProtocol::Other,
    }
}

/// Whether the host that a client names is the host that was allowed. Case, a final dot and the brackets of an IPv6
/// address make no difference.
pub(super) fn is_same_host(named: &str, allowed: &str) -> bool {
    let bare = |text: &str| text.strip_suffix('.').unwrap_or(text).trim_matches(['[', ']']).to_ascii_lowercase();
    bare(named) == bare(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_protocols_are_told_apart_by_their_first_bytes() {
        for (bytes, expected) in [
            (&b""[..], SniffedProtocol::Incomplete),
            (b"\x03\0\0", SniffedProtocol::Other),
            (b"get / HTTP/1.1\r\n\r\n", SniffedProtocol::Other),
            (b"SSH-2.0-OpenSSH\r\n", SniffedProtocol::Other),
            (b"\x16", SniffedProtocol::Incomplete),
            (b"\x16\x03\x01\0\0\x17\x03\x01\0\0", SniffedProtocol::Other),
        ] {
            assert_eq!(sniff(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn hosts_are_the_same_in_spite_of_case_and_a_final_dot() {
        for (named, allowed, expected) in [
            ("Ok.Example.", "ok.example", true),
            ("ok.example.evil", "ok.example", false),
            ("evil.ok.example", "ok.example", false),
            ("", "ok.example", false),
            ("ok.example\0.evil", "ok.example", false),
        ] {
            assert_eq!(is_same_host(named, allowed), expected, "{named:?}");
        }
    }
}
