//! Lines to keep, remove and add, and the changes they make at a given line of a text.
//!
//! Kept lines are never rewritten, whatever differences the tier ignored. Added lines take the line endings of the
//! lines they replace or follow, and a file that didn't end in a newline still doesn't.

use super::indent::IndentShift;
use super::indexed_text::{IndexedText, TieredText, fold};
use super::lines::{body, ending};
use super::match_tier::MatchTier;
use super::splice::Splice;

/// A line of a request: its bytes without the newline, and whether it has a newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawLine<'a> {
    /// Without LF; a CR stays.
    pub(crate) bytes: &'a [u8],
    /// False only where the request says that the file ends here without a newline.
    pub(crate) newline: bool,
}

/// What happens to one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiffLine<'a> {
    /// An old line that stays.
    Keep(RawLine<'a>),
    /// An old line that is removed.
    Drop(RawLine<'a>),
    /// A new line.
    Add(RawLine<'a>),
}

/// A change of consecutive lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineBlock<'a> {
    /// The lines, in order.
    pub(crate) steps: &'a [DiffLine<'a>],
    /// Whether an exact match inserts added lines as written, including their endings.
    pub(crate) literal: bool,
}

/// How a block matches at a line.
#[derive(Debug, Clone)]
pub(crate) struct BlockMatch {
    /// The line of its first old line, from 0.
    pub(crate) at: usize,
    /// Which differences were ignored.
    pub(crate) tier: MatchTier,
    /// How to indent added lines.
    pub(crate) shift: Option<IndentShift>,
}

impl<'a> LineBlock<'a> {
    /// The old lines.
    pub(crate) fn before(&self) -> impl Iterator<Item = RawLine<'a>> + use<'a> {
        self.steps.iter().filter_map(|step| match step {
            DiffLine::Keep(row) | DiffLine::Drop(row) => Some(*row),
            DiffLine::Add(_) => None,
        })
    }

    /// The new lines.
    pub(crate) fn after(&self) -> impl Iterator<Item = RawLine<'a>> + use<'a> {
        self.steps.iter().filter_map(|step| match step {
            DiffLine::Keep(row) | DiffLine::Add(row) => Some(*row),
            DiffLine::Drop(_) => None,
        })
    }

    /// The old lines as a tier sees them.
    pub(crate) fn needle(&self, tier: MatchTier) -> Vec<u8> {
        joined(self.before(), tier)
    }

    /// Matches the block at a line where its needle occurs; the indentation may still not match.
    pub(crate) fn fit(&self, pages: &TieredText<'_>, at: usize, tier: MatchTier) -> Option<BlockMatch> {
        if tier != MatchTier::Indentation {
            return Some(BlockMatch { at, tier, shift: None });
        }
        let page = pages.exact();
        let pairs = self.before().enumerate().map(|(index, row)| (body(row.bytes), body(page.line(at + index))));
        let shift = IndentShift::between(pairs)?;
        let carries =
            |step: &DiffLine<'_>| !matches!(step, DiffLine::Add(row) if shift.apply(body(row.bytes)).is_none());
        self.steps.iter().all(carries).then_some(BlockMatch { at, tier, shift: Some(shift) })
    }

    /// The byte changes that the block makes where it matches.
    pub(crate) fn splices(&self, page: &IndexedText<'_>, fit: &BlockMatch) -> Vec<Splice> {
        let mut splices = Vec::new();
        let mut open: Option<ChangedLines<'_>> = None;
        let mut number = fit.at;
        for step in self.steps {
            match step {
                DiffLine::Keep(_) => {
                    splices.extend(open.take().map(|group| self.spliced(page, fit, &group)));
                    number += 1;
                }
                DiffLine::Drop(_) => {
                    open.get_or_insert_with(|| ChangedLines::new(number)).dropped += 1;
                    number += 1;
                }
                DiffLine::Add(row) => open.get_or_insert_with(|| ChangedLines::new(number)).added.push(*row),
            }
        }
        splices.extend(open.map(|group| self.spliced(page, fit, &group)));
        splices
    }

    fn spliced(&self, page: &IndexedText<'_>, fit: &BlockMatch, group: &ChangedLines<'_>) -> Splice {
        let range = page.start(group.at)..page.start(group.at + group.dropped);
        let as_written = self.literal && fit.tier == MatchTier::Exact;
        let mut bytes = Vec::new();
        let mut last_ending: &[u8] = b"";
        for (index, row) in group.added.iter().enumerate() {
            last_ending = if as_written { b"\n" } else { ending_for(page, group, index) };
            // A CR belongs to the line ending only when a newline follows it.
            let line = if as_written || !row.newline { row.bytes } else { body(row.bytes) };
            match fit.shift.as_ref().and_then(|shift| shift.apply(line)) {
                Some(shifted) => bytes.extend_from_slice(&shifted),
                None => bytes.extend_from_slice(line),
            }
            bytes.extend_from_slice(last_ending);
        }
        if range.end == page.text().len() && !bytes.is_empty() {
            if range.is_empty() && page.is_unterminated() {
                bytes.splice(0..0, last_ending.iter().copied());
            }
            if self.ends_unterminated(page, group) {
                bytes.truncate(bytes.len() - last_ending.len());
            }
        }
        Splice { range, bytes }
    }

    /// Whether a group at the end of the file leaves it without a newline: as the request says, else as before.
    fn ends_unterminated(&self, page: &IndexedText<'_>, group: &ChangedLines<'_>) -> bool {
        let says_so = self.before().chain(self.after()).any(|row| !row.newline);
        match group.added.last() {
            Some(row) if says_so => !row.newline,
            _ => page.is_unterminated(),
        }
    }
}

/// The lines as a tier sees them, joined.
pub(crate) fn joined<'a>(rows: impl Iterator<Item = RawLine<'a>>, tier: MatchTier) -> Vec<u8> {
    let mut needle = Vec::new();
    for row in rows {
        fold(tier, row.bytes, &mut needle);
        if tier == MatchTier::Exact && row.newline {
            needle.push(b'\n');
        }
    }
    needle
}

/// Adjacent removed and added lines.
struct ChangedLines<'a> {
    at: usize,
    dropped: usize,
    added: Vec<RawLine<'a>>,
}

impl ChangedLines<'_> {
    fn new(at: usize) -> Self {
        Self { at, dropped: 0, added: Vec::new() }
    }
}

/// The ending for an added line: that of the line it replaces, else of its neighbours.
fn ending_for(page: &IndexedText<'_>, group: &ChangedLines<'_>, index: usize) -> &'static [u8] {
    let replaced = (group.dropped > 0).then(|| group.at + index.min(group.dropped - 1));
    let neighbours = [group.at.checked_sub(1), Some(group.at + group.dropped), group.at.checked_sub(2)];
    std::iter::once(replaced)
        .chain(neighbours)
        .flatten()
        .filter(|&number| number < page.len())
        .map(|number| ending(page.line(number)))
        .find(|ending| !ending.is_empty())
        .unwrap_or(b"\n")
}

#[cfg(test)]
mod tests {
    use super::super::splice::spliced;
    use super::*;

    fn steps(request: &'static str) -> Vec<DiffLine<'static>> {
        request
            .lines()
            .map(|line| {
                let row = RawLine { bytes: &line.as_bytes()[1..], newline: true };
                match line.as_bytes()[0] {
                    b'-' => DiffLine::Drop(row),
                    b'+' => DiffLine::Add(row),
                    _ => DiffLine::Keep(row),
                }
            })
            .collect()
    }

    fn applied(text: &str, request: &'static str, tier: MatchTier) -> Option<String> {
        let pages = TieredText::new(text.as_bytes(), false);
        let steps = steps(request);
        let block = LineBlock { steps: &steps, literal: false };
        let at = *pages.at(tier).find(&block.needle(tier), 0, 2, |_| true).first()?;
        let fit = block.fit(&pages, at, tier)?;
        let after = spliced(text.as_bytes(), &block.splices(pages.exact(), &fit));
        Some(String::from_utf8(after).unwrap())
    }

    #[test]
    fn added_lines_take_the_endings_around_them() {
        let after = applied("a\r\nb\nc\r\n", " a\n-b\n+B\n+BB\n c\n+d\n", MatchTier::LineEndings).unwrap();
        assert_eq!(after, "a\r\nB\nBB\nc\r\nd\r\n");
    }

    #[test]
    fn a_file_without_a_last_newline_stays_so() {
        for (request, expected) in [(" b\n+c\n", "a\nb\nc"), ("-b\n+c\n", "a\nc"), ("-b\n+c\n+d\n", "a\nc\nd")] {
            assert_eq!(applied("a\nb", request, MatchTier::LineEndings).unwrap(), expected);
        }
    }

    #[test]
    fn kept_lines_keep_their_bytes_in_every_tier() {
        let text = "\tone  \n\ttwo\n\tthree\n";
        let after = applied(text, " one\n-two\n+2\n+  2b\n three\n", MatchTier::Indentation).unwrap();
        assert_eq!(after, "\tone  \n\t2\n\t  2b\n\tthree\n");
    }
}
