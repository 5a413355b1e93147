//! Texts that aren't UTF-8: matched as UTF-8, changed in their own encoding.
//!
//! Bytes that are invalid in the encoding map to bytes that no search text can contain, so they never match and never
//! change.

use std::fmt;

use super::normalized_view::{NormalizedView, NormalizedViewBuilder};
use super::splice::{Splice, spliced};

pub use crate::support::encoding::Encoding;

/// Why a text can't be changed in its encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EncodingFault {
    /// The new text contains a character that the encoding lacks.
    Unmappable {
        /// The character.
        character: char,
        /// The encoding's name.
        encoding: &'static str,
    },
    /// The new text isn't valid UTF-8, so it can't be converted.
    NotText,
    /// The meaning of a byte in this encoding depends on all bytes before it.
    Stateful {
        /// The encoding's name.
        encoding: &'static str,
    },
}

impl fmt::Display for EncodingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmappable { character, encoding } => {
                write!(f, "The file is in {encoding}, which has no `{character}` (U+{:04X}).", u32::from(*character))
            }
            Self::NotText => f.write_str("The new text isn't valid UTF-8, and the file is in another encoding."),
            Self::Stateful { encoding } => write!(f, "A file in {encoding} can't be changed in place."),
        }
    }
}

impl std::error::Error for EncodingFault {}

impl Encoding {
    /// The bytes as UTF-8, with a mapping back.
    pub(crate) fn view(self, bytes: &[u8]) -> Result<NormalizedView<'_>, EncodingFault> {
        match self {
            Self::Utf8 => Ok(NormalizedView::plain(bytes)),
            Self::Utf16Le => Ok(view_utf16(bytes, u16::from_le_bytes)),
            Self::Utf16Be => Ok(view_utf16(bytes, u16::from_be_bytes)),
            Self::Other(encoding) => match Self::from(encoding) {
                Self::Other(_) if !encoding.is_ascii_compatible() => {
                    Err(EncodingFault::Stateful { encoding: encoding.name() })
                }
                Self::Other(_) => Ok(view_legacy(bytes, encoding)),
                unicode => unicode.view(bytes),
            },
        }
    }

    /// Applies splices to the bytes that were planned on their view.
    pub(crate) fn spliced(
        self,
        bytes: &[u8],
        view: &NormalizedView<'_>,
        splices: Vec<Splice>,
    ) -> Result<Vec<u8>, EncodingFault> {
        if self == Self::Utf8 {
            return Ok(spliced(bytes, &splices));
        }
        let mut own = Vec::with_capacity(splices.len());
        for splice in splices {
            let (start, end) = (view.source_offset(splice.range.start), view.source_offset(splice.range.end));
            let (Some(start), Some(end)) = (start, end) else { return Err(EncodingFault::NotText) };
            own.push(Splice { range: start..end, bytes: self.encode(&splice.bytes)? });
        }
        Ok(spliced(bytes, &own))
    }

    fn encode(self, text: &[u8]) -> Result<Vec<u8>, EncodingFault> {
        let text = std::str::from_utf8(text).map_err(|_| EncodingFault::NotText)?;
        match self {
            Self::Utf8 => Ok(text.as_bytes().to_vec()),
            Self::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Self::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Self::Other(encoding) => match Self::from(encoding) {
                Self::Other(_) => encode_legacy(text, encoding),
                unicode => unicode.encode(text.as_bytes()),
            },
        }
    }
}

/// An unpaired surrogate maps to three bytes that are invalid in UTF-8.
fn view_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> NormalizedView<'static> {
    let mut builder = NormalizedViewBuilder::default();
    let (pairs, odd) = bytes.as_chunks::<2>();
    let mut buffer = [0; 4];
    for decoded in char::decode_utf16(pairs.iter().map(|&pair| unit(pair))) {
        match decoded {
            Ok(character) => {
                builder.step(character.len_utf16() * 2, character.encode_utf8(&mut buffer).as_bytes());
            }
            Err(_) => builder.step(2, b"\xED\xA0\x80"),
        }
    }
    for _ in odd {
        builder.step(1, b"\xFF");
    }
    builder.finish()
}

/// Decodes step by step: a character takes one to four bytes, and only the decoder knows how many.
fn view_legacy(bytes: &[u8], encoding: &'static encoding_rs::Encoding) -> NormalizedView<'static> {
    let mut builder = NormalizedViewBuilder::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let ascii = rest.iter().position(|byte| !byte.is_ascii()).unwrap_or(rest.len());
        builder.copy(&rest[..ascii]);
        rest = &rest[ascii..];
        if rest.is_empty() {
            break;
        }
        let decoded = (1..=rest.len().min(4)).find_map(|length| {
            let text = encoding.decode_without_bom_handling_and_without_replacement(&rest[..length])?;
            (!text.is_empty()).then_some((length, text))
        });
        let length = match decoded {
            Some((length, text)) => {
                builder.step(length, text.as_bytes());
                length
            }
            None => {
                builder.step(1, b"\xFF");
                1
            }
        };
        rest = &rest[length..];
    }
    builder.finish()
}

fn encode_legacy(text: &str, encoding: &'static encoding_rs::Encoding) -> Result<Vec<u8>, EncodingFault> {
    let holds = |text: &str| !encoding.encode(text).2;
    match text.chars().find(|character| !holds(character.encode_utf8(&mut [0; 4]))) {
        Some(character) => Err(EncodingFault::Unmappable { character, encoding: encoding.name() }),
        None => Ok(encoding.encode(text).0.into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(encoding: Encoding, bytes: &[u8], from: &str, to: &str) -> Result<Vec<u8>, EncodingFault> {
        let view = encoding.view(bytes)?;
        let start = memchr::memmem::find(view.text(), from.as_bytes()).expect("the text is there");
        let splice = Splice { range: start..start + from.len(), bytes: to.as_bytes().to_vec() };
        encoding.spliced(bytes, &view, vec![splice])
    }

    #[test]
    fn utf16_changes_in_its_own_units_and_keeps_broken_ones() {
        let mut bytes = b"\xFF\xFE".to_vec();
        bytes.extend("a🦀b\r\n".encode_utf16().flat_map(u16::to_le_bytes));
        bytes.extend_from_slice(b"\x00\xD8c\x00!"); // half a pair, `c`, and an odd byte
        let after = replaced(Encoding::Utf16Le, &bytes, "🦀b", "Ünï").unwrap();
        let mut expected = b"\xFF\xFE".to_vec();
        expected.extend("aÜnï\r\n".encode_utf16().flat_map(u16::to_le_bytes));
        expected.extend_from_slice(b"\x00\xD8c\x00!");
        assert_eq!(after, expected);
        assert_eq!(replaced(Encoding::Utf16Be, b"\0a\0b", "b", "ü").unwrap(), b"\0a\0\xFC");
    }

    #[test]
    fn legacy_encodings_change_in_their_own_bytes_and_keep_what_they_do_not_know() {
        let latin = Encoding::Other(encoding_rs::WINDOWS_1252);
        assert_eq!(replaced(latin, b"caf\xE9 x", "é x", "ü").unwrap(), b"caf\xFC");
        let japanese = Encoding::Other(encoding_rs::SHIFT_JIS);
        assert_eq!(replaced(japanese, b"\xFD\x83e\x83X\xFD", "ス", "テ").unwrap(), b"\xFD\x83e\x83e\xFD");
        let chinese = Encoding::Other(encoding_rs::GB18030);
        assert_eq!(replaced(chinese, b"\x81\x30\x81\x30\xD6\xD0", "中", "x").unwrap(), b"\x81\x30\x81\x30x");
    }

    #[test]
    fn what_an_encoding_cannot_hold_is_named() {
        let latin = Encoding::Other(encoding_rs::WINDOWS_1252);
        let fault = replaced(latin, b"abc", "b", "中").unwrap_err();
        assert_eq!(fault, EncodingFault::Unmappable { character: '中', encoding: "windows-1252" });
        let stateful = Encoding::Other(encoding_rs::ISO_2022_JP).view(b"abc").unwrap_err();
        assert_eq!(stateful, EncodingFault::Stateful { encoding: "ISO-2022-JP" });
    }

    #[test]
    fn unicode_encodings_are_recognised_behind_their_names() {
        assert_eq!(Encoding::from(encoding_rs::UTF_8), Encoding::Utf8);
        assert_eq!(replaced(Encoding::Other(encoding_rs::UTF_16LE), b"a\0b\0", "b", "c").unwrap(), b"a\0c\0");
    }
}
