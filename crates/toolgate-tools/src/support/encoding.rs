//! Detects a file's text encoding: by its byte order mark (BOM) if there is one, otherwise by its bytes.
//!
//! Every encoding except UTF-16 ends a line with the single byte 0A, which is part of no other character. So lines can
//! be counted before the encoding is known.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};

/// Bytes examined to tell one legacy encoding from another.
const DETECTED: usize = 256 * 1024;
/// Bytes examined to detect UTF-16 without a BOM, and binary content.
const SNIFFED: usize = 8_192;

/// A text encoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, or bytes that are mostly UTF-8.
    #[default]
    Utf8,
    /// UTF-16, little-endian.
    Utf16Le,
    /// UTF-16, big-endian.
    Utf16Be,
    /// A legacy encoding.
    Other(&'static encoding_rs::Encoding),
}

impl From<&'static encoding_rs::Encoding> for Encoding {
    fn from(encoding: &'static encoding_rs::Encoding) -> Self {
        match encoding {
            utf8 if utf8 == encoding_rs::UTF_8 => Self::Utf8,
            little if little == encoding_rs::UTF_16LE => Self::Utf16Le,
            big if big == encoding_rs::UTF_16BE => Self::Utf16Be,
            other => Self::Other(other),
        }
    }
}

/// Text decoded from some encoding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DecodedText {
    pub(crate) text: String,
    /// Places where bytes were invalid; each is shown as U+FFFD.
    pub(crate) replaced: u64,
}

impl Encoding {
    /// The encoding of these bytes, which are the entire content or a large sample.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match Self::from_bom(bytes) {
            Some((encoding, _)) => encoding,
            None => sniff_utf16(bytes).unwrap_or_else(|| Self::detect_byte_encoding(bytes)),
        }
    }

    /// The encoding that a BOM names, and the length of the BOM.
    pub(crate) fn from_bom(bytes: &[u8]) -> Option<(Self, usize)> {
        match bytes {
            [0xFF, 0xFE, 0, 0, ..] => None, // UTF-32, which files hardly ever use
            [0xEF, 0xBB, 0xBF, ..] => Some((Self::Utf8, 3)),
            [0xFF, 0xFE, ..] => Some((Self::Utf16Le, 2)),
            [0xFE, 0xFF, ..] => Some((Self::Utf16Be, 2)),
            _ => None,
        }
    }

    /// The encoding of bytes that aren't UTF-16: UTF-8 if they mostly are, otherwise the likeliest legacy encoding.
    pub(crate) fn detect_byte_encoding(bytes: &[u8]) -> Self {
        if std::str::from_utf8(bytes).is_ok() || is_damaged_utf8(bytes) {
            return Self::Utf8;
        }
        // The bytes before are ASCII and carry no information.
        let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(bytes.len());
        let sample = &bytes[first..bytes.len().min(first + DETECTED)];
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(sample, first + sample.len() == bytes.len());
        Self::from(detector.guess(None, Utf8Detection::Deny))
    }

    /// The encoding's name in lower case.
    pub(crate) fn name(self) -> String {
        self.codec().name().to_ascii_lowercase()
    }

    /// Decodes the bytes. A BOM is decoded like any other character.
    pub(crate) fn decode(self, bytes: &[u8]) -> DecodedText {
        match std::str::from_utf8(bytes) {
            Ok(text) if self == Self::Utf8 => return DecodedText { text: text.to_owned(), replaced: 0 },
            _ => {}
        }
        let (text, is_damaged) = self.codec().decode_without_bom_handling(bytes);
        let replaced = if is_damaged { replacements(&text) } else { 0 };
        DecodedText { text: text.into_owned(), replaced }
    }

    /// Decodes owned bytes; UTF-8 needs no copy.
    pub(crate) fn decode_all(self, bytes: Vec<u8>) -> DecodedText {
        match String::from_utf8(bytes) {
            Ok(text) if self == Self::Utf8 => DecodedText { text, replaced: 0 },
            Ok(text) => self.decode(text.as_bytes()),
            Err(fault) => self.decode(fault.as_bytes()),
        }
    }

    pub(crate) fn codec(self) -> &'static encoding_rs::Encoding {
        match self {
            Self::Utf8 => encoding_rs::UTF_8,
            Self::Utf16Le => encoding_rs::UTF_16LE,
            Self::Utf16Be => encoding_rs::UTF_16BE,
            Self::Other(encoding) => encoding,
        }
    }
}

/// How often the replacement character U+FFFD occurs in a text.
pub(crate) fn replacements(text: &str) -> u64 {
    memchr::memmem::find_iter(text.as_bytes(), "\u{FFFD}").count() as u64
}

/// Whether valid non-ASCII characters outnumber the invalid places. In other encodings, such characters occur by
/// chance, at most one in seven.
fn is_damaged_utf8(bytes: &[u8]) -> bool {
    let (mut fitting, mut broken) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        fitting += chunk.valid().bytes().filter(|byte| byte & 0xC0 == 0xC0).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    fitting > broken
}

/// Detects UTF-16 without a BOM where most of the text is ASCII: then every other byte is zero.
pub(crate) fn sniff_utf16(bytes: &[u8]) -> Option<Encoding> {
    let head = &bytes[..bytes.len().min(SNIFFED)];
    memchr::memchr(0, head)?;
    let (pairs, _) = head.as_chunks::<2>();
    let is_text = |unit: fn([u8; 2]) -> u16| {
        let units = || pairs.iter().map(|&pair| unit(pair));
        let plain = units().filter(|unit| matches!(unit, 0x09 | 0x0A | 0x0D | 0x20..=0x7E)).count();
        let odd = units().any(|unit| matches!(unit, 0..=0x08 | 0x0E..=0x1A | 0xFFFE | 0xFFFF));
        pairs.len() > 1 && 2 * plain > pairs.len() && !odd
    };
    if is_text(u16::from_le_bytes) {
        Some(Encoding::Utf16Le)
    } else if is_text(u16::from_be_bytes) {
        Some(Encoding::Utf16Be)
    } else {
        None
    }
}

/// Whether bytes that aren't UTF-16 are binary: a zero byte near the start, or too many control characters. UTF-8 text
/// may have many control characters (some logs use them as separators), other text hardly any.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(SNIFFED)];
    memchr::memchr(0, head).is_some() || is_mostly_control(head)
}

/// Whether the share of control characters is too high for text.
pub(crate) fn is_mostly_control(bytes: &[u8]) -> bool {
    // Counted without branches and in small chunks, so that the compiler can vectorise it.
    let control =
        |byte: u8| (byte < 0x08) | (byte.wrapping_sub(0x0E) < 13) | (byte.wrapping_sub(0x1C) < 4) | (byte == 0x7F);
    let count = |chunk: &[u8]| usize::from(chunk.iter().map(|&byte| u8::from(control(byte))).sum::<u8>());
    let controls: usize = bytes.chunks(255).map(count).sum();
    let is_utf8 = || std::str::from_utf8(&bytes[..whole_characters(bytes)]).is_ok();
    match controls * 100 / bytes.len().max(1) {
        0..5 => false,
        5..30 => !is_utf8(),
        _ => true,
    }
}

/// The length of the bytes without a UTF-8 character that is cut off at the end.
pub(crate) fn whole_characters(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let Some(lead) = tail.iter().rposition(|byte| !matches!(byte, 0x80..=0xBF)) else { return bytes.len() };
    let wanted = match tail[lead] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    let left = tail.len() - lead;
    if left < wanted { bytes.len() - left } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The encoding's name, the text, and the number of invalid places.
    fn seen(bytes: &[u8]) -> (String, String, u64) {
        let encoding = Encoding::of(bytes);
        let bom_length = Encoding::from_bom(bytes).map_or(0, |(_, length)| length);
        let DecodedText { text, replaced } = encoding.decode(&bytes[bom_length..]);
        (encoding.name(), text, replaced)
    }

    #[test]
    fn bytes_are_shown_as_the_text_they_spell() {
        let little = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let big = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
        let russian = "Съешь же ещё этих мягких французских булок, да выпей чаю.";
        let japanese = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。";
        let chinese = "学而时习之，不亦说乎？有朋自远方来，不亦乐乎？人不知而不愠，不亦君子乎？";
        let german = "Die Größe der Straße läßt sich nicht über die Brücke schätzen.";
        for (bytes, encoding, text, replaced) in [
            (b"plain".to_vec(), "utf-8", "plain", 0),
            (b"".to_vec(), "utf-8", "", 0),
            ("é 🦀".as_bytes().to_vec(), "utf-8", "é 🦀", 0),
            (b"\xEF\xBB\xBFmarked".to_vec(), "utf-8", "marked", 0),
            (b"\xC3\xA9\xC3\xA9 \xFF \xC3\xA9".to_vec(), "utf-8", "éé \u{FFFD} é", 1),
            ([b"\xFF\xFE".to_vec(), little("a🦀\r\n")].concat(), "utf-16le", "a🦀\r\n", 0),
            ([b"\xFE\xFF".to_vec(), big("a🦀\r\n")].concat(), "utf-16be", "a🦀\r\n", 0),
            (little("no mark\n"), "utf-16le", "no mark\n", 0),
            (big("no mark\n"), "utf-16be", "no mark\n", 0),
            (b"\xFF\xFEa\0\x00\xD8b\0".to_vec(), "utf-16le", "a\u{FFFD}b", 1),
            (encoding_rs::WINDOWS_1252.encode(german).0.into_owned(), "windows-1252", german, 0),
            (encoding_rs::WINDOWS_1251.encode(russian).0.into_owned(), "windows-1251", russian, 0),
            (encoding_rs::KOI8_R.encode(russian).0.into_owned(), "koi8-u", russian, 0),
            (encoding_rs::SHIFT_JIS.encode(japanese).0.into_owned(), "shift_jis", japanese, 0),
            (encoding_rs::EUC_JP.encode(japanese).0.into_owned(), "euc-jp", japanese, 0),
            (encoding_rs::GBK.encode(chinese).0.into_owned(), "gbk", chinese, 0),
        ] {
            assert_eq!(seen(&bytes), (encoding.to_owned(), text.to_owned(), replaced), "{bytes:x?}");
        }
    }

    #[test]
    fn what_holds_no_text_is_told_from_what_does() {
        for (bytes, expected) in [
            (&b"text\n"[..], false),
            (b"", false),
            (b"\x1b[31mred\x1b[0m and b\x08bo\x08ol\x08ld\x08d\n", false),
            (b"8=FIX.4.2\x019=61\x0135=A\x0134=1\x0149=BANK\x01", false),
            (b"caf\xE9\n", false),
            (b"text\0more", true),
            (b"\x01\x02\x03\x04abc", true),
            (b"\x89PNG\r\n\x1a\n", true),
            (b"\xFF\xFE\0\0t\0\0\0", true),
        ] {
            assert_eq!(is_binary(bytes), expected, "{bytes:x?}");
        }
    }

    #[test]
    fn a_character_that_was_cut_off_is_dropped() {
        for (bytes, left) in [
            (&b"ab"[..], 2),
            (b"", 0),
            ("aé".as_bytes(), 3),
            (b"a\xC3", 1),
            ("🦀".as_bytes(), 4),
            (b"a\xF0\x9F\xA6", 1),
            (b"a\x80\x80\x80", 4),
            (b"a\xFF", 2),
        ] {
            assert_eq!(whole_characters(bytes), left, "{bytes:x?}");
        }
    }
}
