//! Names as text. The kernel's names are bytes and needn't be UTF-8, but a path is a `String` everywhere here: in
//! arguments, replies, events, rules and [`WorkspacePath`](crate::WorkspacePath). So there is one text for every name: a
//! byte that isn't part of valid UTF-8 is written `\xNN`. A backslash stands for itself, unless what follows it would
//! read as such an escape; then it is written `\x5c`. Whatever takes names from the kernel or hands names to it converts
//! with these two functions, and nothing else does.

use std::borrow::Cow;

/// What begins an escape.
const ESCAPE: &str = "\\x";
/// Characters of an escape: the backslash, the `x` and two hexadecimal digits.
const ESCAPE_LENGTH: usize = 4;

/// The text of a name, or of a path, as the kernel has it.
pub fn escape_path(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(ESCAPE) => text.into(),
        _ => bytes.utf8_chunks().fold(String::with_capacity(bytes.len() + ESCAPE_LENGTH), escape_chunk).into(),
    }
}

fn escape_chunk(mut text: String, chunk: std::str::Utf8Chunk<'_>) -> String {
    for (at, letter) in chunk.valid().char_indices() {
        text.push(letter);
        if escaped_byte(&chunk.valid().as_bytes()[at..]).is_some() {
            text.push_str("x5c");
        }
    }
    chunk.invalid().iter().for_each(|byte| text.push_str(&format!("{ESCAPE}{byte:02x}")));
    text
}

/// The name or path that a text stands for, as the kernel has it. A caller may escape more than it has to: bytes that
/// are valid UTF-8 together, or any backslash. No `/`, `.` or NUL can be escaped.
pub fn unescape_path(text: &str) -> Cow<'_, [u8]> {
    let mut rest = text.as_bytes();
    if !text.contains(ESCAPE) {
        return rest.into();
    }
    let mut bytes = Vec::with_capacity(rest.len());
    while let [first, others @ ..] = rest {
        match escaped_byte(rest) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[ESCAPE_LENGTH..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    bytes.into()
}

/// The byte that an escape at the beginning of a text stands for: one beyond ASCII, or the backslash itself.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let [b'\\', b'x', high, low, ..] = text else { return None };
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
    (!byte.is_ascii() || byte == b'\\').then_some(byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_escaped_and_a_name_that_reads_like_it_is_told_apart() {
        for (bytes, text) in [
            (&b"plain.rs"[..], "plain.rs"),
            ("ä/€".as_bytes(), "ä/€"),
            (b"a\xff", r"a\xff"),
            (br"a\xff", r"a\x5cxff"),
            (br"a\xFF", r"a\x5cxFF"),
            (br"a\x5c", r"a\x5cx5c"),
            (br"a\x41\n\", r"a\x41\n\"),
            (b"\\\xff", r"\\xff"),
            (b"\\x\xff", r"\x\xff"),
            (b"\\xf\xff", r"\xf\xff"),
            (b"\xc3/\xa9", r"\xc3/\xa9"),
            (b"", ""),
        ] {
            assert_eq!(escape_path(bytes), text);
            assert_eq!(*unescape_path(text), *bytes, "{text}");
        }
    }

    #[test]
    fn more_escapes_than_needed_mean_the_same_and_never_a_separator() {
        for (text, bytes) in [
            (r"\xc3\xa9", "é".as_bytes()),
            (r"a\xFF", b"a\xff"),
            (r"a\x5cb", br"a\b"),
            (r"a\x2fb\x2e\x00", br"a\x2fb\x2e\x00"),
        ] {
            assert_eq!(*unescape_path(text), *bytes, "{text}");
        }
    }

    /// Names that are hard: few different bytes, so that escapes and half of escapes are frequent.
    fn hard_names() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(proptest::sample::select(&b"\\\\xx5cCfF8e/\xc3\xa9\xff\x80"[..]), 0..24)
    }

    proptest! {
        #[test]
        fn every_name_has_one_text(bytes in prop_oneof![hard_names(), proptest::collection::vec(any::<u8>(), 0..40)]) {
            let text = escape_path(&bytes);
            prop_assert_eq!(&*unescape_path(&text), &bytes[..]);
        }

        #[test]
        fn every_text_means_one_name(text in prop_oneof![r"[\\x5cfF8é/]{0,24}", any::<String>()]) {
            let bytes = unescape_path(&text);
            let normal = escape_path(&bytes);
            prop_assert_eq!(&*unescape_path(&normal), &*bytes);
            prop_assert_eq!(text.matches('/').count(), bytes.iter().filter(|byte| **byte == b'/').count());
        }
    }
}
