//! Reads UTF-16 as UTF-8, block by block, so that one paging code works for a file of any size and encoding.

use std::io::{self, BufRead, Read};

use encoding_rs::{CoderResult, Decoder};

use crate::support::encoding::Encoding;

/// Bytes of text decoded at a time.
const BLOCK: usize = 64 * 1024;

/// Decodes text from a reader. Invalid bytes become U+FFFD, and the BOM is skipped.
pub(crate) struct TranscodingReader<R> {
    from: R,
    decoder: Decoder,
    text: Vec<u8>,
    /// The unread part of `text`.
    start: usize,
    end: usize,
    is_done: bool,
}

impl<R: BufRead> TranscodingReader<R> {
    pub(crate) fn new(from: R, encoding: Encoding) -> Self {
        let decoder = encoding.codec().new_decoder_with_bom_removal();
        Self { from, decoder, text: vec![0; BLOCK], start: 0, end: 0, is_done: false }
    }
}

impl<R: BufRead> BufRead for TranscodingReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.start == self.end && !self.is_done {
            let bytes = self.from.fill_buf()?;
            let is_last = bytes.is_empty();
            let (result, read, written, _) = self.decoder.decode_to_utf8(bytes, &mut self.text, is_last);
            self.from.consume(read);
            (self.start, self.end) = (0, written);
            self.is_done = is_last && result == CoderResult::InputEmpty;
        }
        Ok(&self.text[self.start..self.end])
    }

    fn consume(&mut self, amount: usize) {
        self.start += amount;
    }
}

impl<R: BufRead> Read for TranscodingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let text = self.fill_buf()?;
        let length = text.len().min(into.len());
        into[..length].copy_from_slice(&text[..length]);
        self.consume(length);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn characters_may_cross_every_border() {
        let text = "aé🦀\n".repeat(40_000);
        let bytes: Vec<u8> = [b"\xFF\xFE".to_vec(), text.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat();
        for capacity in [1, 3, 100_000] {
            let from = BufReader::with_capacity(capacity, &bytes[..]);
            let read = io::read_to_string(TranscodingReader::new(from, Encoding::Utf16Le)).unwrap();
            assert!(read == text, "{capacity}");
        }
    }

    #[test]
    fn half_a_unit_at_the_end_is_shown() {
        let read = io::read_to_string(TranscodingReader::new(&b"a\0b"[..], Encoding::Utf16Le)).unwrap();
        assert_eq!(read, "a\u{FFFD}");
    }
}
