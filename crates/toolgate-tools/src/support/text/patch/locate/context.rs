//! Locates hunks without a line number: by their lines, after the heading lines that their `@@` names.

use super::{HunkLocator, LISTED, PlacedHunk, placed};
use crate::support::text::line_block::BlockMatch;
use crate::support::text::lines::{body, indent, is_blank, trim};
use crate::support::text::match_tier::MatchTier;
use crate::support::text::nearest::{clipped, nearest};
use crate::support::text::patch::{Hunk, HunkFaultReason, PatchSemantics};

/// Maximum number of lines at which a heading may occur.
const MAX_HEADINGS: usize = 1_000;

impl<'p> HunkLocator<'p> {
    /// The only position of the hunk's lines after its headings and after the previous hunk. Hunks out of order are
    /// found too, if the match is unique.
    pub(super) fn by_context<'h>(&self, hunk: &'h Hunk<'_>) -> Result<PlacedHunk<'h>, HunkFaultReason> {
        let from = self.cursor.saturating_sub(hunk.leading());
        let found = match self.after(hunk, from) {
            Ok(None) | Err(HunkFaultReason::HeadingMissing { .. }) if from > 0 => self.after(hunk, 0)?,
            other => other?,
        };
        match found {
            Some(placed) => Ok(placed),
            None => Err(match self.already_at(hunk, None) {
                Some(line) => HunkFaultReason::AlreadyApplied { line: line + 1 },
                None => self.mismatch(hunk),
            }),
        }
    }

    /// New lines without context: after the line that the heading names, or at the end of the file when the hunk says
    /// so.
    pub(super) fn additions<'h>(&self, hunk: &'h Hunk<'_>) -> Result<PlacedHunk<'h>, HunkFaultReason> {
        let headings = self.lines_under_headings(hunk, self.cursor).or_else(|_| self.lines_under_headings(hunk, 0))?;
        let block = hunk.block(self.format);
        let at = match headings.as_slice() {
            [] if hunk.at_end => self.page().len(),
            [] if self.semantics == PatchSemantics::Codex => {
                let at = self.page().len();
                let mut placed = placed(block, BlockMatch { at, tier: MatchTier::Exact, shift: None }, at);
                placed
                    .notes
                    .push("No line around the new ones was given: they were added to the end of the file.".into());
                return Ok(placed);
            }
            [] => return Err(HunkFaultReason::NoContext),
            headings => self.only(MatchTier::Exact, headings)?.unwrap_or_default() + 1,
        };
        let there = super::lines_match(self.page(), at, block.after(), MatchTier::LineEndings);
        let before = at.checked_sub(hunk.steps.len()).filter(|_| hunk.at_end);
        let there_before =
            before.is_some_and(|at| super::lines_match(self.page(), at, block.after(), MatchTier::LineEndings));
        match (there, there_before, before) {
            (true, ..) => Err(HunkFaultReason::AlreadyApplied { line: at + 1 }),
            (_, true, Some(before)) => Err(HunkFaultReason::AlreadyApplied { line: before + 1 }),
            _ => {
                let mut placed = placed(block, BlockMatch { at, tier: MatchTier::Exact, shift: None }, at);
                placed.notes.push(format!("The new lines follow line {at}."));
                Ok(placed)
            }
        }
    }

    fn after<'h>(&self, hunk: &'h Hunk<'_>, from: usize) -> Result<Option<PlacedHunk<'h>>, HunkFaultReason> {
        let headings = self.lines_under_headings(hunk, from)?;
        let block = hunk.block(self.format);
        if block.before().all(|row| is_blank(row.bytes)) && headings.is_empty() && !hunk.at_end {
            return Err(HunkFaultReason::NoContext);
        }
        for tier in [self.first_tier(), MatchTier::TrailingWhitespace, MatchTier::Indentation, MatchTier::Punctuation] {
            let fit = |at: usize| match self.is_free(&block, at) && !self.is_already_added(hunk, at) {
                true => block.fit(self.pages, at, tier),
                false => None,
            };
            let needle = block.needle(tier);
            let search = |from, limit| self.pages.at(tier).find(&needle, from, limit, |at| fit(at).is_some());
            let mut found = match hunk.headings.is_empty() {
                true => search(from, LISTED + 1),
                false => self.first_after_each(&headings, hunk.old_count(), |from| search(from, 2)),
            };
            let last = self.page().len().checked_sub(hunk.old_count()).filter(|_| hunk.at_end);
            let ends_file = |&at: &usize| self.pages.at(tier).matches_at(at, &needle) && fit(at).is_some();
            if let Some(last) = last.filter(ends_file) {
                found = vec![last];
            }
            if let Some(mut fit) = self.only(tier, &found)?.and_then(fit) {
                let at = fit.at;
                if self.page().matches_at(at, &block.needle(MatchTier::Exact)) {
                    fit.tier = MatchTier::Exact;
                }
                let mut placed = placed(block, fit, at);
                if hunk.at_end && last != Some(at) {
                    placed.notes.push("It was to end the file, but its lines are further up.".into());
                }
                return Ok(Some(placed));
            }
        }
        Ok(None)
    }

    /// The first tier to try. Different line endings look the same to the author of the hunk, so in a file with mixed
    /// endings they are ignored from the start.
    fn first_tier(&self) -> MatchTier {
        match self.page().is_unterminated() || memchr::memchr(b'\r', self.page().text()).is_some() {
            true => MatchTier::LineEndings,
            false => MatchTier::Exact,
        }
    }

    /// For each heading the first match after it, and a second one if it is in the same block of code.
    fn first_after_each(&self, headings: &[usize], count: usize, search: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
        let mut found = Vec::new();
        for &heading in headings {
            let places = search(heading);
            found.extend(places.first());
            if let [first, second] = places[..] {
                let depth = indent(body(self.page().line(heading))).len();
                let leaves = |number: usize| {
                    let line = body(self.page().line(number));
                    !is_blank(line) && indent(line).len() <= depth
                };
                if !(first + count..second).any(leaves) {
                    found.push(second);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The lines that the innermost heading may mean: every match of the first heading, then the next match of each
    /// further one.
    fn lines_under_headings(&self, hunk: &Hunk<'_>, from: usize) -> Result<Vec<usize>, HunkFaultReason> {
        let Some((first, inner)) = hunk.headings.split_first() else { return Ok(Vec::new()) };
        let mut lines = self.lines_like(first, from, MAX_HEADINGS)?;
        for heading in inner {
            let next = |&line: &usize| self.lines_like(heading, line, 1).ok()?.first().copied();
            let inside: Vec<usize> = lines.iter().filter_map(next).collect();
            lines = match inside.is_empty() {
                true => return Err(self.heading_missing(heading)),
                false => inside,
            };
            lines.dedup();
        }
        Ok(lines)
    }

    /// The lines equal to a heading, ignoring indentation; else those that begin with it, as `class A(B):` does with
    /// `class A`.
    fn lines_like(&self, heading: &[u8], from: usize, limit: usize) -> Result<Vec<usize>, HunkFaultReason> {
        let heading = trim(heading);
        let all = |fits: &dyn Fn(&[u8]) -> bool| -> Vec<usize> {
            (from..self.page().len()).filter(|&number| fits(trim(body(self.page().line(number))))).take(limit).collect()
        };
        let whole = all(&|line| line == heading);
        let lines = if whole.is_empty() { all(&|line| begins_with(line, heading)) } else { whole };
        match lines.is_empty() {
            true => Err(self.heading_missing(heading)),
            false => Ok(lines),
        }
    }

    fn heading_missing(&self, heading: &[u8]) -> HunkFaultReason {
        HunkFaultReason::HeadingMissing { heading: clipped(heading), nearest: nearest(self.page(), &[heading]) }
    }
}

/// Whether a line begins with a heading, and not in the middle of a word.
fn begins_with(line: &[u8], heading: &[u8]) -> bool {
    line.strip_prefix(heading)
        .is_some_and(|rest| rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_'))
}
