//! DNS messages (RFC 1035), as far as a sandbox needs them: one question, answered with one address, with none, or with an
//! error.

use std::net::Ipv4Addr;

/// Bytes of the header, which comes before the question.
const HEADER_LENGTH: usize = 12;
/// Where the header has its two bytes of flags, its count of questions and its count of answers.
const FLAGS_AT: usize = 2;
const QDCOUNT_AT: usize = 4;
const ANCOUNT_AT: usize = 6;

/// In the first byte of flags: the message is a response.
const QR: u8 = 0x80;
/// In the first byte of flags: the kind of query. A standard query is 0.
const OPCODE: u8 = 0x78;
/// In the first byte of flags: the answer is authoritative.
const AA: u8 = 0x04;
/// In the first byte of flags: the client wants recursion.
const RD: u8 = 0x01;
/// In the second byte of flags: recursion is available.
const RA: u8 = 0x80;

/// Response codes, in the second byte of flags.
const RCODE_NO_ERROR: u8 = 0;
const RCODE_SERVER_FAILURE: u8 = 2;
const RCODE_NAME_ERROR: u8 = 3;

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const CLASS_IN: u16 = 1;
/// Seconds for which an answer may be cached.
const TTL: u32 = 60;

/// The first byte of a compressed name; the second is where the name begins.
const NAME_POINTER: u8 = 0xc0;
const MAX_LABEL_LENGTH: usize = 63;
/// The longest name on the wire has 255 bytes, one of which ends it.
const MAX_LABELS_LENGTH: usize = 254;

/// A query with one question.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DnsQuestion<'a> {
    /// Header and question as they came; an answer repeats them.
    query: &'a [u8],
    /// The name in lower case; none if it has characters that no host name has.
    pub(super) name: Option<String>,
    query_type: u16,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DnsAnswer {
    /// The name has this address.
    Address(Ipv4Addr),
    /// The name doesn't exist (`NXDOMAIN`).
    NameError,
    /// The name can't be answered now (`SERVFAIL`).
    ServerFailure,
}

impl<'a> DnsQuestion<'a> {
    /// Reads a message; none if it isn't a standard query with one question of class IN.
    pub(super) fn read(message: &'a [u8]) -> Option<Self> {
        let header = message.get(..HEADER_LENGTH)?;
        if header[FLAGS_AT] & (QR | OPCODE) != 0
            || number(message, QDCOUNT_AT)? != 1
            || number(message, ANCOUNT_AT)? != 0
        {
            return None;
        }
        let (name, name_end) = read_name(message)?;
        let (query_type, class) = (number(message, name_end)?, number(message, name_end + 2)?);
        (class == CLASS_IN).then_some(Self { query: &message[..name_end + 4], name, query_type })
    }

    /// Whether the question is for an address, IPv4 or IPv6.
    pub(super) fn wants_address(&self) -> bool {
        matches!(self.query_type, TYPE_A | TYPE_AAAA)
    }

    /// The message that answers the question. Only a question for an IPv4 address gets a record; to any other, a name that
    /// exists has none.
    pub(super) fn answer(&self, answer: DnsAnswer) -> Vec<u8> {
        let (code, address) = match answer {
            DnsAnswer::Address(address) => (RCODE_NO_ERROR, (self.query_type == TYPE_A).then_some(address)),
            DnsAnswer::ServerFailure => (RCODE_SERVER_FAILURE, None),
            DnsAnswer::NameError => (RCODE_NAME_ERROR, None),
        };
        let mut message = self.query.to_vec();
        message[FLAGS_AT] = QR | AA | message[FLAGS_AT] & RD;
        message[FLAGS_AT + 1] = RA | code;
        // One question, an answer or none, no authorities, nothing additional.
        message[QDCOUNT_AT..HEADER_LENGTH].copy_from_slice(&[0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
        if let Some(address) = address {
            let data = address.octets();
            // The name is the one in the question.
            message.extend([NAME_POINTER, HEADER_LENGTH as u8]);
            message.extend([TYPE_A.to_be_bytes(), CLASS_IN.to_be_bytes()].as_flattened());
            message.extend(TTL.to_be_bytes());
            message.extend((data.len() as u16).to_be_bytes());
            message.extend(data);
        }
        message
    }
}

fn number(message: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]))
}

/// The name in a question, and where it ends. A compressed name makes no sense there: there is none before it.
fn read_name(message: &[u8]) -> Option<(Option<String>, usize)> {
    let (mut labels, mut at, mut is_host_name) = (Vec::new(), HEADER_LENGTH, true);
    loop {
        let length = usize::from(*message.get(at)?);
        if length > MAX_LABEL_LENGTH || at - HEADER_LENGTH > MAX_LABELS_LENGTH {
            return None;
        }
        let label = message.get(at + 1..at + 1 + length)?;
        at += 1 + length;
        if length == 0 {
            break;
        }
        is_host_name &= label.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
    }
    let name = labels.join(".");
    Some(((is_host_name && !name.is_empty()).then_some(name), at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the second byte of flags: the response code.
    const RCODE: u8 = 0x0f;

    fn query(labels: &[&[u8]], query_type: u16) -> Vec<u8> {
        let mut message = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in labels {
            message.push(label.len() as u8);
            message.extend(*label);
        }
        message.push(0);
        message.extend([query_type.to_be_bytes(), CLASS_IN.to_be_bytes()].as_flattened());
        message
    }

    #[test]
    fn an_answer_repeats_the_question() {
        let message = query(&[b"Ok", b"example"], TYPE_A);
        let question = DnsQuestion::read(&message).unwrap();
        assert_eq!(question.name.as_deref(), Some("ok.example"));
        let answer = question.answer(DnsAnswer::Address(Ipv4Addr::new(198, 18, 0, 2)));
        assert_eq!(answer[..2], [7, 7], "the same number");
        assert_eq!((answer[3] & RCODE, answer[7]), (0, 1));
        assert_eq!(answer[12..message.len()], message[12..], "the same question, letter by letter");
        assert!(answer.ends_with(&[0, 4, 198, 18, 0, 2]));
        let refused = question.answer(DnsAnswer::NameError);
        assert_eq!((refused[3] & RCODE, refused[7], refused.len()), (3, 0, message.len()));
    }

    #[test]
    fn a_name_exists_but_has_no_ipv6_address() {
        let message = query(&[b"ok", b"example"], TYPE_AAAA);
        let answer = DnsQuestion::read(&message).unwrap().answer(DnsAnswer::Address(Ipv4Addr::new(198, 18, 0, 2)));
        assert_eq!((answer[3] & RCODE, answer[7], answer.len()), (0, 0, message.len()));
    }

    #[test]
    fn characters_that_no_host_name_has_make_no_name() {
        for label in [&b"evil\0"[..], b"a b", b"a.b", b"\xc3\xbc", b"a\n"] {
            let message = query(&[label, b"ok", b"com"], TYPE_A);
            assert_eq!(DnsQuestion::read(&message).unwrap().name, None, "{label:?}");
        }
        assert_eq!(DnsQuestion::read(&query(&[], TYPE_A)).unwrap().name, None, "the root");
    }

    #[test]
    fn a_malformed_query_is_no_question_and_never_panics() {
        let whole = query(&[b"ok", b"example"], TYPE_A);
        for length in 0..whole.len() {
            assert_eq!(DnsQuestion::read(&whole[..length]), None, "{length}");
        }
        for at in 0..whole.len() {
            for byte in [0, 1, 0x3f, 0x40, 0xc0, 0xff] {
                let mut message = whole.clone();
                message[at] = byte;
                if let Some(question) = DnsQuestion::read(&message) {
                    question.answer(DnsAnswer::NameError);
                }
            }
        }
        let long: Vec<&[u8]> = std::iter::repeat_n(&[b'a'; MAX_LABEL_LENGTH][..], 5).collect();
        assert_eq!(DnsQuestion::read(&query(&long, TYPE_A)), None, "longer than any name");
    }
}
