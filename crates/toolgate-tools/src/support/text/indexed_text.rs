//! A text as numbered lines, in which blocks of lines are looked up. Line numbers here start at 0.
//!
//! A text can be folded for a tier: the differences that the tier ignores are removed from every line. Folding never
//! adds or removes a line, so line numbers stay the same.

use std::borrow::Cow;
use std::cell::OnceCell;

use memchr::{memchr_iter, memmem};

use super::lines::{BOM, body, ending, trim, trim_end};
use super::match_tier::MatchTier;

/// Candidate positions are limited, so that a pathological text can't take forever.
const MAX_HITS: usize = 10_000;

/// A text and the offsets of its lines.
#[derive(Debug)]
pub(crate) struct IndexedText<'a> {
    text: Cow<'a, [u8]>,
    starts: Vec<usize>,
}

impl<'a> IndexedText<'a> {
    /// Indexes the lines of a text. A BOM is not part of the first line unless requested.
    pub(crate) fn new(text: &'a [u8], with_bom: bool) -> Self {
        let first = if !with_bom && text.starts_with(BOM) { BOM.len() } else { 0 };
        Self { starts: line_starts(text, first), text: Cow::Borrowed(text) }
    }

    fn folded(&self, tier: MatchTier) -> IndexedText<'static> {
        let mut text = Vec::with_capacity(self.text.len() + 1);
        let mut starts = Vec::with_capacity(self.starts.len());
        for number in 0..self.len() {
            starts.push(text.len());
            fold(tier, self.line(number), &mut text);
        }
        IndexedText { text: Cow::Owned(text), starts }
    }

    /// The complete text.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Number of lines.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Offset of a line; the end of the text for the line after the last.
    pub(crate) fn start(&self, number: usize) -> usize {
        self.starts.get(number).copied().unwrap_or(self.text.len())
    }

    /// A line with its ending.
    pub(crate) fn line(&self, number: usize) -> &[u8] {
        &self.text[self.start(number)..self.start(number + 1)]
    }

    /// Whether the text's last line lacks a newline.
    pub(crate) fn is_unterminated(&self) -> bool {
        self.len() > 0 && ending(self.line(self.len() - 1)).is_empty()
    }

    /// Whether the needle, made of entire lines, occurs at a line.
    pub(crate) fn matches_at(&self, number: usize, needle: &[u8]) -> bool {
        number < self.len()
            && self.text[self.start(number)..].starts_with(needle)
            && self.is_line_boundary(self.start(number) + needle.len())
    }

    /// The first lines, at most `limit`, at which the needle occurs and is accepted.
    pub(crate) fn find(&self, needle: &[u8], from: usize, limit: usize, accept: impl Fn(usize) -> bool) -> Vec<usize> {
        let finder = memmem::Finder::new(needle);
        let (mut found, mut at) = (Vec::new(), self.start(from));
        for _ in 0..MAX_HITS {
            let Some(hit) = finder.find(&self.text[at..]).map(|hit| hit + at) else { break };
            if let Ok(number) = self.starts.binary_search(&hit)
                && self.is_line_boundary(hit + needle.len())
                && accept(number)
            {
                found.push(number);
            }
            if found.len() == limit || hit >= self.text.len() {
                break;
            }
            at = hit + 1;
        }
        found
    }

    /// The lines nearest to `expected` at which the needle occurs and is accepted: two when they are equally near.
    pub(crate) fn nearest(&self, needle: &[u8], expected: usize, accept: impl Fn(usize) -> bool) -> Vec<usize> {
        let fits = |number: usize| self.matches_at(number, needle) && accept(number);
        let expected = expected.min(self.len());
        for distance in 0..=self.len() {
            let before = expected.checked_sub(distance).filter(|&number| fits(number));
            let after = Some(expected + distance).filter(|&number| distance > 0 && fits(number));
            let found: Vec<_> = before.into_iter().chain(after).collect();
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    fn is_line_boundary(&self, offset: usize) -> bool {
        offset == self.text.len() || offset > 0 && self.text[offset - 1] == b'\n'
    }
}

fn line_starts(text: &[u8], first: usize) -> Vec<usize> {
    let mut starts = Vec::with_capacity(text.len() / 32 + 1);
    if first < text.len() {
        starts.push(first);
    }
    starts.extend(memchr_iter(b'\n', text).map(|at| at + 1).filter(|&start| start < text.len()));
    starts
}

/// A text with its folded forms, each made on first use.
#[derive(Debug)]
pub(crate) struct TieredText<'a> {
    exact: IndexedText<'a>,
    folded: [OnceCell<IndexedText<'static>>; 4],
}

impl<'a> TieredText<'a> {
    /// Indexes a text.
    pub(crate) fn new(text: &'a [u8], with_bom: bool) -> Self {
        Self { exact: IndexedText::new(text, with_bom), folded: Default::default() }
    }

    /// The text unchanged.
    pub(crate) fn exact(&self) -> &IndexedText<'a> {
        &self.exact
    }

    /// The text as a tier sees it.
    pub(crate) fn at(&self, tier: MatchTier) -> &IndexedText<'_> {
        let cell = match tier {
            MatchTier::Exact => return &self.exact,
            MatchTier::LineEndings => &self.folded[0],
            MatchTier::TrailingWhitespace => &self.folded[1],
            MatchTier::Indentation => &self.folded[2],
            MatchTier::Punctuation => &self.folded[3],
        };
        cell.get_or_init(|| self.exact.folded(tier))
    }
}

/// Appends a line as a tier sees it. Every folded line ends in LF.
pub(crate) fn fold(tier: MatchTier, line: &[u8], out: &mut Vec<u8>) {
    match tier {
        MatchTier::Exact => return out.extend_from_slice(line),
        MatchTier::LineEndings => out.extend_from_slice(body(line)),
        MatchTier::TrailingWhitespace => out.extend_from_slice(trim_end(body(line))),
        MatchTier::Indentation => out.extend_from_slice(trim(body(line))),
        MatchTier::Punctuation => {
            let start = out.len();
            fold_punctuation(body(line), out);
            out.truncate(start + trim_end(&out[start..]).len());
        }
    }
    out.push(b'\n');
}

fn fold_punctuation(mut rest: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = rest.iter().position(|byte| !byte.is_ascii()) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let (length, plain) = ascii_lookalike(rest).unwrap_or((1, &rest[..1]));
        out.extend_from_slice(plain);
        rest = &rest[length..];
    }
    out.extend_from_slice(rest);
}

/// The length of the special character at the start, and its plain ASCII form.
pub(crate) fn ascii_lookalike(bytes: &[u8]) -> Option<(usize, &'static [u8])> {
    let plain: (usize, &'static [u8]) = match bytes {
        [0xC2, 0xA0, ..] => (2, b" "),                                       // no-break space
        [0xE2, 0x80, 0x80..=0x8A | 0xAF, ..] => (3, b" "),                   // spaces of many widths
        [0xE2, 0x81, 0x9F, ..] | [0xE3, 0x80, 0x80, ..] => (3, b" "),        // mathematical, ideographic
        [0xE2, 0x80, 0x90..=0x95, ..] | [0xE2, 0x88, 0x92, ..] => (3, b"-"), // hyphens, dashes, minus
        [0xE2, 0x80, 0x98..=0x9B, ..] => (3, b"'"),
        [0xE2, 0x80, 0x9C..=0x9F, ..] => (3, b"\""),
        [0xE2, 0x80, 0xA6, ..] => (3, b"..."),
        _ => return None,
    };
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_knows_its_lines() {
        let page = IndexedText::new(b"a\r\nb\n\nd", false);
        assert_eq!(
            (0..page.len()).map(|number| page.line(number)).collect::<Vec<_>>(),
            [&b"a\r\n"[..], b"b\n", b"\n", b"d"]
        );
        assert!(page.is_unterminated());
        assert_eq!(IndexedText::new(b"", false).len(), 0);
        assert_eq!(IndexedText::new(b"\xEF\xBB\xBFa\n", false).line(0), b"a\n");
        assert_eq!(IndexedText::new(b"\xEF\xBB\xBFa\n", true).line(0), b"\xEF\xBB\xBFa\n");
    }

    #[test]
    fn needles_are_found_on_whole_lines_only() {
        let page = IndexedText::new(b"xa\na\nab\na\na", false);
        assert_eq!(page.find(b"a\n", 0, 9, |_| true), [1, 3]);
        assert_eq!(page.find(b"a", 0, 9, |_| true), [4], "without newline only at the end");
        assert_eq!(page.find(b"a\n", 2, 9, |_| true), [3]);
        assert_eq!(page.find(b"a\n", 0, 1, |number| number > 1), [3]);
        assert_eq!(page.nearest(b"a\n", 2, |_| true), [1, 3], "equally near");
        assert_eq!(page.nearest(b"a\n", 900, |_| true), [3]);
    }

    #[test]
    fn folding_keeps_the_lines() {
        let text = "  “a” – b\u{a0}\t\r\n\r\n\tc…".as_bytes();
        let pages = TieredText::new(text, false);
        for (tier, expected) in [
            (MatchTier::LineEndings, "  “a” – b\u{a0}\t\n\n\tc…\n"),
            (MatchTier::TrailingWhitespace, "  “a” – b\u{a0}\n\n\tc…\n"),
            (MatchTier::Indentation, "“a” – b\u{a0}\n\nc…\n"),
            (MatchTier::Punctuation, "  \"a\" - b\n\n\tc...\n"),
        ] {
            assert_eq!(String::from_utf8_lossy(pages.at(tier).text()), expected, "{tier}");
            assert_eq!(pages.at(tier).len(), 3);
        }
    }
}
