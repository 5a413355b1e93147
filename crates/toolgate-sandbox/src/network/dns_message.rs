//! Questions for names, in the bytes of DNS: what is asked, and the answer that goes back. Only what a sandbox needs: one
//! question, answered with one address, with none, or with "no such name".

use std::net::Ipv4Addr;

/// How many bytes come before the question.
const HEADER: usize = 12;
/// The kind of question that asks for an IPv4 address, and for an IPv6 one.
const ADDRESS: u16 = 1;
const ADDRESS_OF_SIX: u16 = 28;
/// The only class of names in use.
const INTERNET: u16 = 1;
/// Seconds that an answer is good for.
const GOOD_FOR: u32 = 60;

/// A question that could be understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DnsQuestion<'a> {
    /// Header and question as they came; an answer repeats them.
    asked: &'a [u8],
    /// The name in plain form; none if it has characters that no host has.
    pub(super) name: Option<String>,
    kind: u16,
}

/// What becomes of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DnsAnswer {
    /// The name has this address.
    Address(Ipv4Addr),
    /// There is no such name.
    NoSuchName,
    /// There is, or may be, but not now.
    NotNow,
}

impl<'a> DnsQuestion<'a> {
    /// Reads a message; none if it isn't one plain question.
    pub(super) fn read(message: &'a [u8]) -> Option<Self> {
        let header = message.get(..HEADER)?;
        let (is_answer, operation) = (header[2] & 0x80 != 0, header[2] >> 3 & 0xf);
        if is_answer || operation != 0 || header[4..8] != [0, 1, 0, 0] {
            return None;
        }
        let (name, end) = read_name(message)?;
        let number = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
        let (kind, class) = (number(end)?, number(end + 2)?);
        (class == INTERNET).then_some(Self { asked: &message[..end + 4], name, kind })
    }

    /// Whether it asks for an address, of whatever kind.
    pub(super) fn wants_address(&self) -> bool {
        matches!(self.kind, ADDRESS | ADDRESS_OF_SIX)
    }

    /// The message that answers it. For another kind of question than for an IPv4 address, nothing is known of the name.
    pub(super) fn answer(&self, answer: DnsAnswer) -> Vec<u8> {
        let address = match answer {
            DnsAnswer::Address(address) if self.kind == ADDRESS => Some(address),
            _ => None,
        };
        let code = match answer {
            DnsAnswer::Address(_) => 0,
            DnsAnswer::NotNow => 2,
            DnsAnswer::NoSuchName => 3,
        };
        let mut message = self.asked.to_vec();
        message[2] = 0x84 | message[2] & 1;
        message[3] = 0x80 | code;
        message[4..HEADER].copy_from_slice(&[0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
        if let Some(address) = address {
            // The name stands where the question has it.
            message.extend([0xc0, HEADER as u8]);
            message.extend([ADDRESS.to_be_bytes(), INTERNET.to_be_bytes()].as_flattened());
            message.extend(GOOD_FOR.to_be_bytes());
            message.extend([0, 4]);
            message.extend(address.octets());
        }
        message
    }
}

/// The name in a question, and where it ends. A name that points elsewhere makes no sense in a question.
fn read_name(message: &[u8]) -> Option<(Option<String>, usize)> {
    let (mut labels, mut at, mut is_plain) = (Vec::new(), HEADER, true);
    loop {
        let length = usize::from(*message.get(at)?);
        if length > 63 || at - HEADER > 254 {
            return None;
        }
        let label = message.get(at + 1..at + 1 + length)?;
        at += 1 + length;
        if length == 0 {
            break;
        }
        is_plain &= label.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
    }
    let name = labels.join(".");
    Some(((is_plain && !name.is_empty()).then_some(name), at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(labels: &[&[u8]], kind: u16) -> Vec<u8> {
        let mut message = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in labels {
            message.push(label.len() as u8);
            message.extend(*label);
        }
        message.push(0);
        message.extend([kind.to_be_bytes(), INTERNET.to_be_bytes()].as_flattened());
        message
    }

    #[test]
    fn a_question_is_answered_in_its_own_words() {
        let message = asked(&[b"Ok", b"example"], ADDRESS);
        let question = DnsQuestion::read(&message).unwrap();
        assert_eq!(question.name.as_deref(), Some("ok.example"));
        let answer = question.answer(DnsAnswer::Address(Ipv4Addr::new(198, 18, 0, 2)));
        assert_eq!(answer[..2], [7, 7], "the same number");
        assert_eq!((answer[3] & 0xf, answer[7]), (0, 1));
        assert_eq!(answer[12..message.len()], message[12..], "the same question, letter by letter");
        assert!(answer.ends_with(&[0, 4, 198, 18, 0, 2]));
        let refused = question.answer(DnsAnswer::NoSuchName);
        assert_eq!((refused[3] & 0xf, refused[7], refused.len()), (3, 0, message.len()));
    }

    #[test]
    fn there_is_no_ipv6_but_the_name_exists() {
        let message = asked(&[b"ok", b"example"], ADDRESS_OF_SIX);
        let answer = DnsQuestion::read(&message).unwrap().answer(DnsAnswer::Address(Ipv4Addr::new(198, 18, 0, 2)));
        assert_eq!((answer[3] & 0xf, answer[7], answer.len()), (0, 0, message.len()));
    }

    #[test]
    fn what_no_host_has_is_no_name() {
        for label in [&b"evil\0"[..], b"a b", b"a.b", b"\xc3\xbc", b"a\n"] {
            let message = asked(&[label, b"ok", b"com"], ADDRESS);
            assert_eq!(DnsQuestion::read(&message).unwrap().name, None, "{label:?}");
        }
        assert_eq!(DnsQuestion::read(&asked(&[], ADDRESS)).unwrap().name, None, "the root");
    }

    #[test]
    fn nonsense_is_no_question_and_never_panics() {
        let whole = asked(&[b"ok", b"example"], ADDRESS);
        for length in 0..whole.len() {
            assert_eq!(DnsQuestion::read(&whole[..length]), None, "{length}");
        }
        for at in 0..whole.len() {
            for byte in [0, 1, 0x3f, 0x40, 0xc0, 0xff] {
                let mut message = whole.clone();
                message[at] = byte;
                if let Some(question) = DnsQuestion::read(&message) {
                    question.answer(DnsAnswer::NoSuchName);
                }
            }
        }
        let long: Vec<&[u8]> = std::iter::repeat_n(&[b'a'; 63][..], 5).collect();
        assert_eq!(DnsQuestion::read(&asked(&long, ADDRESS)), None, "longer than any name");
    }
}
