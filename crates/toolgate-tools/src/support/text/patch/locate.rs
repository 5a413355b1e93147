//! Locates a hunk: at the line its header names, near it, or by its context.
//!
//! Every hunk is matched against the old text. Lines that an earlier hunk changes are taken; context may be shared.

use std::ops::Range;

use super::{Hunk, HunkFaultReason, PatchFormat, PatchSemantics};
use crate::support::text::indexed_text::{IndexedText, TieredText, fold};
use crate::support::text::line_block::{BlockMatch, DiffLine, LineBlock, RawLine, joined};
use crate::support::text::lines::{body, is_blank};
use crate::support::text::match_tier::MatchTier;
use crate::support::text::nearest::{clipped, nearest, numbered_line};

mod context;

/// How many matches an ambiguity error lists.
const LISTED: usize = 10;
/// How many expected lines a mismatch error shows.
const SHOWN_LINES: usize = 12;
/// The tiers after the exact one that a numbered hunk tries, each with the number of context lines it ignores. An
/// already applied hunk is detected between the two lists: with less context, more would seem to match.
const STRICT_TIERS: [(MatchTier, usize); 2] = [(MatchTier::LineEndings, 0), (MatchTier::TrailingWhitespace, 0)];
const LENIENT_TIERS: [(MatchTier, usize); 4] =
    [(MatchTier::Exact, 1), (MatchTier::Exact, 2), (MatchTier::Indentation, 0), (MatchTier::Punctuation, 0)];

/// Where a hunk is applied.
#[derive(Debug)]
pub(super) struct PlacedHunk<'h> {
    /// The hunk's lines without the ignored context.
    pub(super) block: LineBlock<'h>,
    pub(super) fit: BlockMatch,
    pub(super) offset: i64,
    pub(super) fuzz: usize,
    pub(super) notes: Vec<String>,
}

/// Locates one hunk after the other.
pub(super) struct HunkLocator<'p> {
    pages: &'p TieredText<'p>,
    format: PatchFormat,
    semantics: PatchSemantics,
    /// The lines that earlier hunks change.
    taken: Vec<Range<usize>>,
    /// Where the last hunk's change ended.
    cursor: usize,
    /// Offset of the last numbered hunk from the line in its header.
    drift: i64,
}

impl<'p> HunkLocator<'p> {
    pub(super) fn new(pages: &'p TieredText<'p>, format: PatchFormat, semantics: PatchSemantics) -> Self {
        Self { pages, format, semantics, taken: Vec::new(), cursor: 0, drift: 0 }
    }

    /// Finds the hunk's position and marks its lines as taken.
    pub(super) fn place<'h>(&mut self, hunk: &'h Hunk<'_>) -> Result<PlacedHunk<'h>, HunkFaultReason> {
        let mut placed = match hunk.start {
            _ if hunk.old_count() == 0 => self.without_context(hunk)?,
            Some(start) => self.numbered(hunk, start)?,
            None => self.by_context(hunk)?,
        };
        placed.notes.extend(hunk.note.clone());
        placed.notes.extend(placed.fit.shift.as_ref().map(|shift| format!("Matched with other indentation; {shift}.")));
        let core = core(&placed.block, placed.fit.at);
        self.cursor = core.end;
        self.drift = placed.offset;
        self.taken.push(core);
        Ok(placed)
    }

    fn page(&self) -> &IndexedText<'p> {
        self.pages.exact()
    }

    /// Tries the line that the header names, then nearby lines, then more leniency.
    fn numbered<'h>(&self, hunk: &'h Hunk<'_>, start: usize) -> Result<PlacedHunk<'h>, HunkFaultReason> {
        let stated = start.saturating_sub(1).min(self.page().len());
        let expected = stated.saturating_add_signed(self.drift as isize).min(self.page().len());
        let block = hunk.block(self.format);
        let needle = block.needle(MatchTier::Exact);
        let free = |at| self.is_free(&block, at);
        if self.page().matches_at(expected, &needle) && free(expected) && self.is_anchored(hunk, start, expected) {
            return Ok(placed(block, BlockMatch { at: expected, tier: MatchTier::Exact, shift: None }, stated));
        }
        let usable = |at: usize| free(at) && !self.is_already_added(hunk, at);
        let at_expected = self.page().matches_at(expected, &needle) && usable(expected);
        let found = match hunk.trusted {
            true => self.page().nearest(&needle, expected, usable),
            false if at_expected => vec![expected],
            false => self.page().find(&needle, 0, LISTED + 1, usable),
        };
        if let Some(at) = self.only(MatchTier::Exact, &found)? {
            let mut placed = placed(block, BlockMatch { at, tier: MatchTier::Exact, shift: None }, stated);
            if at != expected && self.page().find(&needle, 0, 2, usable).len() > 1 {
                placed
                    .notes
                    .push("Its lines are in other places too; the nearest to the stated line was taken.".into());
            }
            if !self.is_anchored(hunk, start, at) {
                placed
                    .notes
                    .push("It was made for the start or the end of a file, but its lines are further in.".into());
            }
            return Ok(placed);
        }
        if let Some(placed) = self.leniently(hunk, expected, stated, &STRICT_TIERS)? {
            return Ok(placed);
        }
        if let Some(line) = self.already_at(hunk, Some(expected)) {
            return Err(HunkFaultReason::AlreadyApplied { line: line + 1 });
        }
        let placed = self.leniently(hunk, expected, stated, &LENIENT_TIERS)?;
        placed.ok_or_else(|| self.mismatch(hunk))
    }

    /// Tries tiers at the expected line, and elsewhere when the match is unique.
    fn leniently<'h>(
        &self,
        hunk: &'h Hunk<'_>,
        expected: usize,
        stated: usize,
        attempts: &[(MatchTier, usize)],
    ) -> Result<Option<PlacedHunk<'h>>, HunkFaultReason> {
        for &(tier, fuzz) in attempts {
            let Some((steps, skipped)) = shortened(hunk, fuzz) else { continue };
            let block = LineBlock { steps, literal: self.format == PatchFormat::Unified };
            if block.before().all(|row| is_blank(row.bytes)) {
                continue;
            }
            let fit = |at: usize| match self.is_free(&block, at)
                && !self.is_already_added(hunk, at.saturating_sub(skipped))
            {
                true => block.fit(self.pages, at, tier),
                false => None,
            };
            let here = Some(expected + skipped).filter(|&at| lines_match(self.page(), at, block.before(), tier));
            let found = match here.and_then(fit) {
                Some(fit) => Some(fit),
                None => {
                    let page = self.pages.at(tier);
                    let found = page.find(&block.needle(tier), 0, LISTED + 1, |at| fit(at).is_some());
                    self.only(tier, &found)?.and_then(fit)
                }
            };
            if let Some(fit) = found {
                return Ok(Some(PlacedHunk { fuzz, ..placed(block, fit, stated + skipped) }));
            }
        }
        Ok(None)
    }

    /// Added lines without context can only go into an empty file, or to the end of one where the semantics say so.
    fn without_context<'h>(&self, hunk: &'h Hunk<'_>) -> Result<PlacedHunk<'h>, HunkFaultReason> {
        match hunk.start {
            _ if self.page().len() == 0 => {
                Ok(placed(hunk.block(self.format), BlockMatch { at: 0, tier: MatchTier::Exact, shift: None }, 0))
            }
            Some(_) => match self.already_at(hunk, None) {
                Some(line) => Err(HunkFaultReason::AlreadyApplied { line: line + 1 }),
                None => Err(HunkFaultReason::NoContext),
            },
            None => self.additions(hunk),
        }
    }

    /// Whether a hunk is where git requires it: one from line 1 at the start, one without trailing context at the end.
    fn is_anchored(&self, hunk: &Hunk<'_>, start: usize, at: usize) -> bool {
        let at_start = start > 1 || at == 0;
        let at_end = hunk.trailing() > 0 || at + hunk.old_count() == self.page().len();
        at_start && at_end
    }

    /// Whether no earlier hunk changes the same lines, and a hunk for the end of the file is at the end.
    fn is_free(&self, block: &LineBlock<'_>, at: usize) -> bool {
        let core = core(block, at);
        let clashes = |taken: &Range<usize>| {
            core.start < taken.end && taken.start < core.end || core == *taken && !core.is_empty()
        };
        let ends_file = block.steps.iter().any(|step| matches!(step, DiffLine::Add(row) if !row.newline));
        !self.taken.iter().any(clashes) && (!ends_file || at + block.before().count() == self.page().len())
    }

    /// Whether the hunk's new lines are already there. A hunk that only adds lines, with context on one side, still
    /// matches after it was applied.
    fn is_already_added(&self, hunk: &Hunk<'_>, at: usize) -> bool {
        let drops = hunk.steps.iter().any(|step| matches!(step, DiffLine::Drop(_)));
        if drops || hunk.leading() > 0 && hunk.trailing() > 0 {
            return false;
        }
        let added_first = hunk.steps.iter().take_while(|step| matches!(step, DiffLine::Add(_))).count();
        let candidates = [Some(at), at.checked_sub(added_first)];
        let block = hunk.block(self.format);
        candidates.into_iter().flatten().any(|at| lines_match(self.page(), at, block.after(), MatchTier::LineEndings))
    }

    /// The line at which the hunk's result already occurs.
    fn already_at(&self, hunk: &Hunk<'_>, expected: Option<usize>) -> Option<usize> {
        let block = hunk.block(self.format);
        if block.after().all(|row| is_blank(row.bytes)) {
            return None;
        }
        let here = expected.filter(|&at| lines_match(self.page(), at, block.after(), MatchTier::LineEndings));
        let brings_text = hunk.steps.iter().any(|step| matches!(step, DiffLine::Add(row) if !is_blank(row.bytes)));
        let needle = joined(block.after(), MatchTier::LineEndings);
        let anywhere = || self.pages.at(MatchTier::LineEndings).find(&needle, 0, 1, |_| true).first().copied();
        here.or_else(|| brings_text.then(anywhere).flatten())
    }

    /// The only line found, `None`, or an ambiguity error.
    fn only(&self, tier: MatchTier, found: &[usize]) -> Result<Option<usize>, HunkFaultReason> {
        match found {
            [] => Ok(None),
            [at] => Ok(Some(*at)),
            many => {
                let matches = many.iter().take(LISTED).map(|&at| numbered_line(self.page(), at)).collect();
                Err(HunkFaultReason::Ambiguous { tier, matches })
            }
        }
    }

    fn mismatch(&self, hunk: &Hunk<'_>) -> HunkFaultReason {
        let rows: Vec<_> = hunk.block(self.format).before().map(|row| body(row.bytes)).collect();
        let expected = rows.iter().take(SHOWN_LINES).map(|line| clipped(line)).collect();
        HunkFaultReason::Mismatch { expected, nearest: nearest(self.page(), &rows) }
    }
}

fn placed(block: LineBlock<'_>, fit: BlockMatch, stated: usize) -> PlacedHunk<'_> {
    let offset = fit.at as i64 - stated as i64;
    PlacedHunk { block, fit, offset, fuzz: 0, notes: Vec::new() }
}

/// The lines that a block changes, without its context.
fn core(block: &LineBlock<'_>, at: usize) -> Range<usize> {
    let kept = |step: &&DiffLine<'_>| matches!(step, DiffLine::Keep(_));
    let leading = block.steps.iter().take_while(kept).count();
    let trailing = block.steps.iter().rev().take_while(kept).count();
    at + leading..at + block.before().count() - trailing
}

/// The hunk without some context lines, the longer side first, and how many were removed from its start. `None` when
/// there is no context to remove.
fn shortened<'h>(hunk: &'h Hunk<'_>, fuzz: usize) -> Option<(&'h [DiffLine<'h>], usize)> {
    let (leading, trailing) = (hunk.leading(), hunk.trailing());
    let longer = leading.max(trailing);
    let less = |context: usize| (fuzz + context).saturating_sub(longer).min(context);
    let (first, last) = (less(leading), less(trailing));
    (fuzz == 0 || fuzz <= longer).then(|| (&hunk.steps[first..hunk.steps.len() - last], first))
}

/// Whether the lines of the text from a position on equal the given ones, as a tier sees them.
fn lines_match<'r>(
    page: &IndexedText<'_>,
    at: usize,
    rows: impl Iterator<Item = RawLine<'r>>,
    tier: MatchTier,
) -> bool {
    let (mut wanted, mut found) = (Vec::new(), Vec::new());
    rows.enumerate().all(|(index, row)| {
        wanted.clear();
        found.clear();
        fold(tier, row.bytes, &mut wanted);
        if at + index < page.len() {
            fold(tier, page.line(at + index), &mut found);
        }
        if tier == MatchTier::Exact && row.newline {
            wanted.push(b'\n');
        }
        wanted == found
    })
}
