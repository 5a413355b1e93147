//! Reads a page of a text file of any size. A small file is read completely, so that its lines can be counted and its
//! content hashed; of a large file only the page is kept, and everything before it is skipped at memory speed.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use toolgate_contract::sha256;

use crate::support::encoding::{
    DecodedText, Encoding, is_binary, is_mostly_control, replacements, sniff_utf16, whole_characters,
};
use crate::support::line_page::{LinePage, LineWindow, count, tail, take};
use crate::support::transcoding_reader::TranscodingReader;

/// Files up to this size are read completely.
const MAX_COMPLETE_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes at the start of a large file that are examined for its encoding.
const HEAD: usize = 64 * 1024;
/// Bytes per read: large enough for few system calls, small enough for the processor's cache.
const BLOCK: usize = 256 * 1024;

/// The requested lines.
pub(crate) struct PageRequest {
    /// The first line, from 1; negative numbers count from the end.
    pub(crate) offset: i64,
    /// Maximum number of lines.
    pub(crate) lines: u64,
    /// Maximum number of bytes, for the page and for a single line.
    pub(crate) bytes: usize,
}

/// The content of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PagedContent {
    /// Text, and a page of it.
    Text(TextPage),
    /// Binary content: its first bytes.
    Binary(Vec<u8>),
}

/// A page of text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TextPage {
    /// The lines.
    pub(crate) content: String,
    /// Number of the first line; 0 if there is none, negative if it is only known from the end.
    pub(crate) first: i64,
    /// Number of the last line, in the same way.
    pub(crate) last: i64,
    /// Whether more lines follow.
    pub(crate) has_more: bool,
    /// Lines in the file, if it was read completely.
    pub(crate) total: Option<u64>,
    /// Hash of the file, if it was read completely.
    pub(crate) sha256: Option<String>,
    /// Size of the file.
    pub(crate) size: u64,
    /// The file's encoding.
    pub(crate) encoding: Encoding,
    /// Whether the file begins with a BOM.
    pub(crate) has_bom: bool,
    /// Places on the page where bytes were invalid in the encoding.
    pub(crate) replaced: u64,
    /// Bytes cut from very long lines.
    pub(crate) cut: u64,
}

/// Reads a page of a file of this size. `is_stopped` is checked before each block; it ends the read with an error.
pub(crate) fn find(
    file: &File,
    size: u64,
    wanted: &PageRequest,
    is_stopped: &dyn Fn() -> bool,
) -> io::Result<PagedContent> {
    let source = CancellableFile { file, is_stopped };
    if size <= MAX_COMPLETE_BYTES {
        let bytes = source.read_all(size)?;
        if bytes.len() as u64 <= MAX_COMPLETE_BYTES {
            return page_of_small_file(&bytes, wanted);
        }
        // The file has grown since.
    }
    page_of_large_file(&source, size, wanted)
}

fn page_of_small_file(bytes: &[u8], wanted: &PageRequest) -> io::Result<PagedContent> {
    let Some(sniffed) = SniffedEncoding::of(bytes) else { return Ok(PagedContent::Binary(magic_bytes(bytes))) };
    let text = match sniffed.utf16() {
        Some(encoding) => Cow::Owned(encoding.decode(&bytes[sniffed.bom_length..]).text.into_bytes()),
        None => Cow::Borrowed(&bytes[sniffed.bom_length..]),
    };
    let total = count(&mut &*text)?;
    let first = match u64::try_from(wanted.offset) {
        Ok(offset) => offset.max(1),
        Err(_) => (total + 1).saturating_sub(wanted.offset.unsigned_abs()).max(1),
    };
    let taken = match first == 1 && total <= wanted.lines && text.len() < wanted.bytes {
        true => LinePage { content: text.into_owned(), lines: total, ..LinePage::default() },
        false => take(&mut &*text, &wanted.page(first))?,
    };
    let encoding = Encoding::of(bytes);
    let (total, sha256) = (Some(total), Some(sha256(bytes)));
    let page = text_of(taken, first as i64, encoding);
    Ok(PagedContent::Text(TextPage {
        total,
        sha256,
        size: bytes.len() as u64,
        has_bom: sniffed.bom_length > 0,
        ..page
    }))
}

fn page_of_large_file(source: &CancellableFile<'_>, size: u64, wanted: &PageRequest) -> io::Result<PagedContent> {
    let mut head = vec![0; HEAD];
    let length = source.fill_at(&mut head, 0)?;
    head.truncate(length);
    let Some(sniffed) = SniffedEncoding::of(&head) else { return Ok(PagedContent::Binary(magic_bytes(&head))) };
    let (first, total, taken) = match sniffed.utf16() {
        Some(encoding) => in_utf16(source, encoding, wanted)?,
        None => in_single_bytes(source, sniffed.bom_length as u64..size, wanted)?,
    };
    if is_mostly_control(&taken.content) {
        return Ok(PagedContent::Binary(magic_bytes(&head)));
    }
    let encoding = sniffed.encoding.unwrap_or_else(|| {
        // A start in plain ASCII says nothing about the encoding of later text.
        let head = &head[..whole_characters(&head)];
        Encoding::detect_byte_encoding(if head.is_ascii() { &taken.content } else { head })
    });
    let page = text_of(taken, first, encoding);
    Ok(PagedContent::Text(TextPage { total, size, has_bom: sniffed.bom_length > 0, ..page }))
}

/// Number of the first line, lines in the file if they were counted, and the page.
type NumberedPage = (i64, Option<u64>, LinePage);

fn in_single_bytes(source: &CancellableFile<'_>, range: Range<u64>, wanted: &PageRequest) -> io::Result<NumberedPage> {
    let from = |start| BufReader::with_capacity(BLOCK, source.from(start));
    if wanted.offset >= 0 {
        let first = wanted.offset.max(1);
        return Ok((first, None, take(&mut from(range.start), &wanted.page(first as u64))?));
    }
    let read_at = |block: &mut [u8], at: u64| source.fill_at(block, at);
    let tail = tail(read_at, range.clone(), wanted.offset.unsigned_abs(), &mut vec![0; BLOCK])?;
    let taken = take(&mut from(tail.start), &wanted.page(1))?;
    // The search reached the start of the file, so the total is known after all.
    let is_whole = tail.start == range.start;
    Ok(if is_whole { (1, Some(tail.lines), taken) } else { (-(tail.lines as i64), None, taken) })
}

/// UTF-16 can only be read forwards here: lines from the end are counted first.
fn in_utf16(source: &CancellableFile<'_>, encoding: Encoding, wanted: &PageRequest) -> io::Result<NumberedPage> {
    let text = || TranscodingReader::new(BufReader::with_capacity(BLOCK, source.from(0)), encoding);
    let total = if wanted.offset < 0 { Some(count(&mut text())?) } else { None };
    let first = match total {
        Some(total) => (total + 1).saturating_sub(wanted.offset.unsigned_abs()).max(1),
        None => wanted.offset.max(1) as u64,
    };
    Ok((first as i64, total, take(&mut text(), &wanted.page(first))?))
}

/// Decodes a page. UTF-16 was converted to UTF-8 while reading.
fn text_of(taken: LinePage, first: i64, encoding: Encoding) -> TextPage {
    let DecodedText { text: content, replaced } = match encoding {
        Encoding::Utf16Le | Encoding::Utf16Be => {
            let text = String::from_utf8_lossy(&taken.content).into_owned();
            DecodedText { replaced: replacements(&text), text }
        }
        other => other.decode_all(taken.content),
    };
    let (first, last) = if taken.lines == 0 { (0, 0) } else { (first, first + taken.lines as i64 - 1) };
    TextPage {
        content,
        first,
        last,
        has_more: taken.has_more,
        encoding,
        replaced,
        cut: taken.cut,
        ..TextPage::default()
    }
}

impl PageRequest {
    fn page(&self, first: u64) -> LineWindow {
        // A line that was cut gets its ending back.
        LineWindow { first, lines: self.lines, bytes: self.bytes, line_bytes: self.bytes.saturating_sub(1) }
    }
}

/// What the start of a file says about its encoding.
struct SniffedEncoding {
    /// `None` when the start isn't enough to tell; then it isn't UTF-16.
    encoding: Option<Encoding>,
    /// Length of the BOM.
    bom_length: usize,
}

impl SniffedEncoding {
    /// `None` when the file is binary.
    fn of(head: &[u8]) -> Option<Self> {
        if let Some((encoding, bom_length)) = Encoding::from_bom(head) {
            return Some(Self { encoding: Some(encoding), bom_length });
        }
        let encoding = sniff_utf16(head);
        if encoding.is_none() && is_binary(head) { None } else { Some(Self { encoding, bom_length: 0 }) }
    }

    fn utf16(&self) -> Option<Encoding> {
        self.encoding.filter(|&encoding| encoding != Encoding::Utf8)
    }
}

/// The first bytes, enough to recognise a file format.
fn magic_bytes(bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len().min(64)].to_vec()
}

/// A file that can be read at any offset, until the call is cancelled.
struct CancellableFile<'a> {
    file: &'a File,
    is_stopped: &'a dyn Fn() -> bool,
}

impl CancellableFile<'_> {
    fn from(&self, at: u64) -> CancellableReader<'_> {
        CancellableReader { source: self, at }
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        if (self.is_stopped)() { Err(io::Error::other("stopped")) } else { self.file.read_at(into, at) }
    }

    /// Reads everything, up to slightly more than the limit for complete reads.
    fn read_all(&self, size: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; size as usize + 1];
        let length = self.read_at(&mut bytes, 0)?;
        bytes.truncate(length);
        // The read filled the stated size exactly and left room in the buffer: that is the end of the file.
        if length == 0 || length as u64 != size {
            self.from(length as u64).take(MAX_COMPLETE_BYTES + 1 - length as u64).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// Reads until the block is full or the file ends.
    fn fill_at(&self, block: &mut [u8], at: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < block.len() {
            match self.read_at(&mut block[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

struct CancellableReader<'a> {
    source: &'a CancellableFile<'a>,
    at: u64,
}

impl Read for CancellableReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read_at(into, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    const ROOMY: PageRequest = PageRequest { offset: 1, lines: 2_000, bytes: 10_000 };

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn complete(bytes: &[u8], wanted: &PageRequest) -> TextPage {
        text(find(&file_of(bytes), bytes.len() as u64, wanted, &|| false))
    }

    /// Reads a page as if the file were large.
    fn part(bytes: &[u8], wanted: &PageRequest) -> TextPage {
        text(page_of_large_file(
            &CancellableFile { file: &file_of(bytes), is_stopped: &|| false },
            bytes.len() as u64,
            wanted,
        ))
    }

    fn text(found: io::Result<PagedContent>) -> TextPage {
        match found.unwrap() {
            PagedContent::Text(text) => text,
            PagedContent::Binary(start) => panic!("no text: {start:x?}"),
        }
    }

    #[test]
    fn pages_by_offset_and_limit() {
        let bytes = b"one\ntwo\nthree\nfour\nfive\n";
        for ((offset, lines), (content, whole_numbers, part_numbers, has_more)) in [
            ((1, 2), ("one\ntwo\n", (1, 2), (1, 2), true)),
            ((0, 1), ("one\n", (1, 1), (1, 1), true)),
            ((5, 9), ("five\n", (5, 5), (5, 5), false)),
            ((6, 9), ("", (0, 0), (0, 0), false)),
            ((i64::MAX, 9), ("", (0, 0), (0, 0), false)),
            ((-1, 9), ("five\n", (5, 5), (-1, -1), false)),
            ((-3, 2), ("three\nfour\n", (3, 4), (-3, -2), true)),
            ((-5, 1), ("one\n", (1, 1), (1, 1), true)),
            ((i64::MIN, 1), ("one\n", (1, 1), (1, 1), true)),
        ] {
            let wanted = PageRequest { offset, lines, ..ROOMY };
            for (found, numbers) in [(complete(bytes, &wanted), whole_numbers), (part(bytes, &wanted), part_numbers)] {
                let is = (found.content.as_str(), (found.first, found.last), found.has_more);
                assert_eq!(is, (content, numbers, has_more), "{offset} {lines}");
            }
        }
    }

    #[test]
    fn a_small_file_is_counted_and_hashed_and_a_large_one_is_not() {
        let bytes = b"one\ntwo\n";
        let found = complete(bytes, &ROOMY);
        assert_eq!((found.total, found.sha256, found.size), (Some(2), Some(sha256(bytes)), 8));
        let found = part(bytes, &ROOMY);
        assert_eq!((found.total, found.sha256, found.size), (None, None, 8));
        let found = part(bytes, &PageRequest { offset: -9, ..ROOMY });
        assert_eq!(found.total, Some(2), "the way from the end led over all of it");
    }

    #[test]
    fn spelling_is_told_and_marks_are_not_shown() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        for (bytes, encoding, has_bom, content) in [
            (b"".to_vec(), "utf-8", false, ""),
            (b"\xEF\xBB\xBFa\n".to_vec(), "utf-8", true, "a\n"),
            (utf16("\u{FEFF}é\nb\n"), "utf-16le", true, "é\nb\n"),
            (utf16("plain\n"), "utf-16le", false, "plain\n"),
            (b"r\xE9sum\xE9\n".to_vec(), "windows-1252", false, "résumé\n"),
        ] {
            for found in [complete(&bytes, &ROOMY), part(&bytes, &ROOMY)] {
                let is = (found.encoding.name(), found.has_bom, found.content.as_str());
                assert_eq!(is, (encoding.to_owned(), has_bom, content), "{bytes:x?}");
            }
        }
    }

    #[test]
    fn broken_bytes_are_counted_on_the_page_that_shows_them() {
        let bytes = ["äöü ß\n".as_bytes(), b"\xFF\n"].concat();
        for offset in [1, 2] {
            let found = complete(&bytes, &PageRequest { offset, lines: 1, ..ROOMY });
            assert_eq!((found.encoding, found.replaced), (Encoding::Utf8, offset as u64 - 1));
        }
    }

    #[test]
    fn a_page_far_behind_a_plain_start_is_spelt_by_itself() {
        let mut bytes = b"plain\n".repeat(HEAD / 6 + 1);
        bytes.extend_from_slice(b"na\xEFve caf\xE9\n");
        let found = part(&bytes, &PageRequest { offset: -1, ..ROOMY });
        assert_eq!((found.content.as_str(), found.encoding.name().as_str()), ("naïve café\n", "windows-1252"));
    }

    #[test]
    fn binary_is_recognised_at_the_start_and_on_the_page() {
        let found = find(&file_of(b"\x7FELF\x02\0\0"), 7, &ROOMY, &|| false).unwrap();
        assert_eq!(found, PagedContent::Binary(b"\x7FELF\x02\0\0".to_vec()));
        let bytes = [b"text\n".repeat(20_000), vec![0; 1_000]].concat();
        let file = file_of(&bytes);
        let source = CancellableFile { file: &file, is_stopped: &|| false };
        let found = page_of_large_file(&source, bytes.len() as u64, &PageRequest { offset: -1, ..ROOMY }).unwrap();
        assert!(matches!(found, PagedContent::Binary(_)), "{found:?}");
    }

    #[test]
    fn an_over_long_line_is_cut() {
        let bytes = [b"x".repeat(1_000_000), b"\nend\n".to_vec()].concat();
        for found in [complete(&bytes, &ROOMY), part(&bytes, &ROOMY)] {
            assert_eq!((found.content.len(), found.cut), (10_000, 990_001));
            assert!(found.has_more);
        }
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_gives_what_it_got() {
        let bytes = b"line\n".repeat(400_000);
        for offset in [1, 100_000, -10, -390_000] {
            for length in [0, 7, 1_000_000, 50_000_000] {
                let file = file_of(&bytes);
                let blocks = Cell::new(0);
                let change = || {
                    blocks.set(blocks.get() + 1);
                    if blocks.get() == 2 {
                        file.set_len(length).unwrap();
                    }
                    false
                };
                let wanted = PageRequest { offset, ..ROOMY };
                find(&file, bytes.len() as u64, &wanted, &change).unwrap();
                blocks.set(0);
                page_of_large_file(&CancellableFile { file: &file, is_stopped: &change }, bytes.len() as u64, &wanted)
                    .unwrap();
            }
        }
    }

    #[test]
    fn a_stopped_call_reads_no_further() {
        let file = file_of(b"text\n");
        assert!(find(&file, 5, &ROOMY, &|| true).is_err());
    }

    proptest! {
        #[test]
        fn a_large_file_reads_like_a_small_one(
            lines in prop::collection::vec("[a-z é🦀\r]{0,12}", 0..30),
            is_ended: bool,
            sniffed in 0..3,
            offset in -35_i64..35,
            limit in 1_u64..35,
            bytes in 20_usize..200,
        ) {
            let text = lines.join("\n") + if is_ended { "\n" } else { "" };
            let spelt: Vec<u8> = match sniffed {
                0 => text.into_bytes(),
                1 => format!("\u{FEFF}{text}").into_bytes(),
                _ => format!("\u{FEFF}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect(),
            };
            let wanted = PageRequest { offset, lines: limit, bytes };
            let (small, large) = (complete(&spelt, &wanted), part(&spelt, &wanted));
            let from_start = |number: i64| if number < 0 { number + 1 + small.total.unwrap() as i64 } else { number };
            prop_assert_eq!((from_start(large.first), from_start(large.last)), (small.first, small.last));
            prop_assert_eq!(TextPage { first: 0, last: 0, total: None, sha256: None, ..large },
                            TextPage { first: 0, last: 0, total: None, sha256: None, ..small });
        }
    }
}
