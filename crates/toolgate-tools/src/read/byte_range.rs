//! A part of a file by bytes, for files with very long lines. A part begins and ends between characters.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use schemars::JsonSchema;
use serde::Serialize;
use toolgate_contract::{Hands, OpenFile, ToolError, schemars, sha256};

use super::{Args, MAX_BYTES, named_encoding, not_text, unreadable};
use crate::support::encoding::{DecodedText, Encoding, is_binary, sniff_utf16, whole_characters};

/// Bytes at the start of a file that are examined for its encoding.
const HEAD: usize = 64 * 1024;
/// Files up to this size are hashed.
const MAX_HASHED_BYTES: u64 = 16 * 1024 * 1024;
/// A character has at most this many bytes.
const MAX_CHARACTER: usize = 4;
/// Bytes that are read beyond a part: it may begin inside a character or with a BOM, and has at least one character.
const EXTRA: usize = 2 * MAX_CHARACTER;

/// A part of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ByteRangePage {
    /// The text of the part. Bytes that are invalid in the file's encoding are shown as U+FFFD.
    content: String,
    /// The first byte, from 0: `offset_bytes`, or up to three more if that is inside a character.
    start_byte: u64,
    /// The byte after the last one.
    end_byte: u64,
    /// Whether more follows; use `offset_bytes` = `end_byte`.
    has_more: bool,
    /// Size of the file.
    bytes: u64,
    /// Hash of the file; null when it is too large to hash.
    sha256: Option<String>,
    /// The encoding, unless it is plain UTF-8; `content` is always UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    /// Places in `content` where bytes were invalid in the encoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<u64>,
}

/// Reads the part that the arguments name.
pub(super) async fn read(path: String, args: &Args, hands: &dyn Hands) -> Result<ByteRangePage, ToolError> {
    let start = args.offset_bytes.unwrap_or(0);
    let most = args.limit_bytes.map_or(MAX_BYTES, |limit| (limit as usize).min(MAX_BYTES));
    let opened = hands.open(&path)?;
    let work = move |hands: &dyn Hands| {
        let OpenFile { file, size, .. } = &opened;
        let part = FilePart::read(file, start, most).map_err(|error| unreadable(&path, &error, hands))?;
        let hash = match *size <= MAX_HASHED_BYTES {
            true => Some(whole_hash(file, *size).map_err(|error| unreadable(&path, &error, hands))?),
            false => None,
        };
        if let Some(sha256) = &hash {
            hands.saw(&hands.place(&path)?, sha256);
        }
        part.page(*size, hash).ok_or_else(|| not_text(&path))
    };
    hands.blocking(work).await
}

fn whole_hash(file: &File, size: u64) -> io::Result<String> {
    Ok(sha256(bytes_at(file, 0, size as usize)?))
}

/// The bytes from an offset, fewer where the file ends.
fn bytes_at(file: &File, at: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let mut filled = 0;
    while filled < most {
        match file.read_at(&mut bytes[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// The raw bytes of a part, and the start of the file, which tells the encoding.
struct FilePart {
    head: Vec<u8>,
    /// Where the bytes begin in the file.
    start: u64,
    /// The bytes, and a few more, in case the part ends inside its first character.
    bytes: Vec<u8>,
    /// How many bytes were asked for.
    most: usize,
}

impl FilePart {
    fn read(file: &File, start: u64, most: usize) -> io::Result<Self> {
        let bytes = bytes_at(file, start, most + EXTRA)?;
        Ok(Self { head: bytes_at(file, 0, HEAD)?, start, bytes, most })
    }

    /// The part as text; none if the file isn't text.
    fn page(self, size: u64, sha256: Option<String>) -> Option<ByteRangePage> {
        let (encoding, bom) = self.encoding()?;
        let part = self.whole_characters(encoding, bom);
        let (start_byte, end_byte) = (self.start + part.start as u64, self.start + part.end as u64);
        let DecodedText { text, replaced } = encoding.decode(&self.bytes[part]);
        Some(ByteRangePage {
            content: text,
            start_byte,
            end_byte,
            has_more: end_byte < size,
            bytes: size,
            sha256,
            encoding: named_encoding(encoding, bom > 0),
            replaced: Some(replaced).filter(|&places| places > 0),
        })
    }

    /// The encoding of the file and the length of its BOM; none if the file isn't text.
    fn encoding(&self) -> Option<(Encoding, usize)> {
        if let Some(found) = Encoding::from_bom(&self.head) {
            return Some(found);
        }
        match sniff_utf16(&self.head) {
            Some(encoding) => Some((encoding, 0)),
            None if is_binary(&self.head) || is_binary(&self.bytes) => None,
            None => {
                let head = &self.head[..whole_characters(&self.head)];
                // A start in plain ASCII says nothing about the encoding of later text.
                let sample = if head.is_ascii() { &self.bytes[continuation(&self.bytes)..] } else { head };
                Some((Encoding::detect_byte_encoding(&sample[..whole_characters(sample)]), 0))
            }
        }
    }

    /// The part of the bytes that is asked for, without characters that begin before it or end behind it. At least one
    /// character is in it, so that reading on always advances. A BOM isn't.
    fn whole_characters(&self, encoding: Encoding, bom: usize) -> Range<usize> {
        let length = self.bytes.len();
        let after_bom = (bom as u64).saturating_sub(self.start).min(length as u64) as usize;
        // Other encodings than UTF-8 grow when they are decoded.
        let most = if encoding == Encoding::Utf8 { self.most } else { self.most.min(MAX_BYTES / 2) };
        let (start, is_whole): (usize, &dyn Fn(usize) -> bool) = match encoding {
            Encoding::Utf8 if self.start > 0 => {
                (continuation(&self.bytes), &|end| whole_characters(&self.bytes[..end]) == end)
            }
            Encoding::Utf8 => (0, &|end| whole_characters(&self.bytes[..end]) == end),
            Encoding::Utf16Le | Encoding::Utf16Be => {
                let odd = usize::from(!self.start.is_multiple_of(2)).min(length);
                let is_low = self.unit(odd, encoding).is_some_and(|unit| (0xDC00..0xE000).contains(&unit));
                let start = if is_low { odd + 2 } else { odd };
                let is_high =
                    move |at: usize| self.unit(at, encoding).is_some_and(|unit| (0xD800..0xDC00).contains(&unit));
                let whole = move |end: usize| (end - odd).is_multiple_of(2) && (end < odd + 2 || !is_high(end - 2));
                return self.cut(start.max(after_bom), most, &whole);
            }
            Encoding::Other(_) => (0, &|_| true),
        };
        self.cut(start.max(after_bom), most, is_whole)
    }

    /// From `start`, as much as was asked for, but so that it ends where `is_whole` allows.
    fn cut(&self, start: usize, most: usize, is_whole: &dyn Fn(usize) -> bool) -> Range<usize> {
        let (length, most) = (self.bytes.len(), most.min(self.bytes.len()));
        let within = (start + 1..=most).rev().take(MAX_CHARACTER).find(|&end| is_whole(end));
        let beyond = || (most.max(start + 1)..length).find(|&end| is_whole(end));
        start.min(length)..within.or_else(beyond).unwrap_or(length)
    }

    /// A code unit of UTF-16.
    fn unit(&self, at: usize, encoding: Encoding) -> Option<u16> {
        let bytes: [u8; 2] = self.bytes.get(at..at + 2)?.try_into().ok()?;
        Some(if encoding == Encoding::Utf16Le { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }
}

/// How many bytes at the start continue a character of UTF-8.
fn continuation(bytes: &[u8]) -> usize {
    bytes.iter().take(MAX_CHARACTER - 1).take_while(|byte| **byte & 0xC0 == 0x80).count()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn pages(bytes: &[u8], most: usize) -> Vec<ByteRangePage> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let (mut pages, mut at) = (Vec::new(), 0);
        loop {
            let page = FilePart::read(&file, at, most).unwrap().page(bytes.len() as u64, None).unwrap();
            assert!(page.end_byte > at || !page.has_more, "reading on advances");
            at = page.end_byte;
            let has_more = page.has_more;
            pages.push(page);
            if !has_more {
                return pages;
            }
        }
    }

    proptest! {
        #[test]
        fn pages_of_any_size_make_up_the_text(text in "[a-zé€🦀\n]{0,60}", most in 1_usize..20, form in 0..4) {
            let bytes: Vec<u8> = match form {
                0 => text.clone().into_bytes(),
                1 => format!("\u{FEFF}{text}").into_bytes(),
                2 => format!("\u{FEFF}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect(),
                _ => format!("\u{FEFF}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect(),
            };
            let pages = pages(&bytes, most);
            prop_assert_eq!(pages.iter().map(|page| page.content.as_str()).collect::<String>(), text);
            prop_assert!(pages.iter().all(|page| page.replaced.is_none()));
        }
    }

    #[test]
    fn an_offset_inside_a_character_begins_at_the_next_one() {
        let text = "a€b".as_bytes();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        for (offset, start, content) in [(0, 0, "a€b"), (1, 1, "€b"), (2, 4, "b"), (3, 4, "b"), (4, 4, "b"), (9, 9, "")]
        {
            let page = FilePart::read(&file, offset, 100).unwrap().page(5, None).unwrap();
            assert_eq!((page.start_byte, page.content.as_str(), page.has_more), (start, content, false), "{offset}");
        }
    }

    #[test]
    fn invalid_bytes_are_shown_and_counted_and_binary_files_are_not_text() {
        let long = [b"fine \xFF\xFE and \xE2\x82 fine, ".as_slice(), "more text é ".repeat(40).as_bytes()].concat();
        let pages = pages(&long, 17);
        assert_eq!(pages.iter().filter_map(|page| page.replaced).sum::<u64>(), 3);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"\x7FELF\x02\0\0\0\0").unwrap();
        assert!(FilePart::read(&file, 0, 10).unwrap().page(9, None).is_none());
    }
}
