//! Base64: a text that is nothing but base64 may be a file with a secret in it, which no rule sees.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// A shorter text is a word or a number; what it could encode is too short to be told from other text.
const SHORTEST: usize = 16;

/// What a text encodes, if all of it is base64: on one line or several, padded or not, also as a `data:` URL.
pub(crate) fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let text = without_data_url(text.trim_ascii());
    if text.len() < SHORTEST || !text.iter().all(|byte| is_base64(*byte) || byte.is_ascii_whitespace()) {
        return None;
    }
    let text: Cow<'_, [u8]> = match text.iter().any(u8::is_ascii_whitespace) {
        true => text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect::<Vec<_>>().into(),
        false => text.into(),
    };
    [STANDARD, URL_SAFE].iter().find_map(|alphabet| engine(alphabet).decode(&text).ok())
}

fn without_data_url(text: &[u8]) -> &[u8] {
    const MARK: &[u8] = b";base64,";
    let is_url = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:"));
    match memchr::memmem::find(&text[..text.len().min(200)], MARK).filter(|_| is_url) {
        Some(at) => &text[at + MARK.len()..],
        None => text,
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}

fn engine(alphabet: &Alphabet) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(alphabet, config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nothing_but_base64_is_decoded() {
        for (text, expected) in [
            ("UEFTU1dPUkQ9aHVudGVyMg==", Some("PASSWORD=hunter2")),
            ("UEFTU1dPUkQ9aHVudGVyMg", Some("PASSWORD=hunter2")),
            ("UEFTU1dPUkQ9\r\naHVudGVyMg==\n", Some("PASSWORD=hunter2")),
            ("data:text/plain;base64,UEFTU1dPUkQ9aHVudGVyMg==", Some("PASSWORD=hunter2")),
            ("Pz8_Pz8_Pz8_Pz8_", Some("????????????")),
            ("fn main() { let x = 1; }", None),
            ("UEFTU1dPUkQ9", None),
            ("UEFTU1dPUkQ9aHVudGVyMg==.", None),
            ("", None),
        ] {
            assert_eq!(decoded(text.as_bytes()).as_deref(), expected.map(str::as_bytes), "{text}");
        }
    }
}
