//! Replaces entire lines: the tiers in which whitespace may differ.
//!
//! The request is read as lines to keep, remove and add, so that lines it doesn't change keep the file's bytes.

use similar::{Algorithm, DiffTag, capture_diff_slices};

use super::{EditFault, EditPlan, LISTED};
use crate::support::text::indexed_text::TieredText;
use crate::support::text::line_block::{DiffLine, LineBlock, RawLine};
use crate::support::text::lines::is_blank;
use crate::support::text::match_tier::MatchTier;
use crate::support::text::nearest::numbered_line;

/// The changes, if the lines match in exactly one place.
pub(super) fn plan(text: &[u8], tier: MatchTier, find: &str, replace: &str) -> Result<Option<EditPlan>, EditFault> {
    let Some((old, new)) = as_lines(find, replace) else { return Ok(None) };
    if old.iter().all(|row| is_blank(row.bytes)) {
        return Ok(None);
    }
    let pages = TieredText::new(text, false);
    let steps = steps(&old, &new);
    let block = LineBlock { steps: &steps, literal: false };
    let fits = |at| block.fit(&pages, at, tier);
    let found = pages.at(tier).find(&block.needle(tier), 0, LISTED + 1, |at| fits(at).is_some());
    let Some(fit) = found.first().and_then(|&at| fits(at)) else { return Ok(None) };
    if found.len() > 1 {
        let matches = found.iter().take(LISTED).map(|&at| numbered_line(pages.exact(), at)).collect();
        return Err(EditFault::Ambiguous { tier, matches, more: found.len() > LISTED });
    }
    let note = match &fit.shift {
        Some(shift) => format!("Matched with other indentation; {shift}."),
        None => "Matched although trailing whitespace differs.".to_owned(),
    };
    let splices = block.splices(pages.exact(), &fit);
    Ok(Some(EditPlan { splices, replacements: 1, tier, note: Some(note), start: pages.exact().start(fit.at) }))
}

/// Both texts as entire lines. `None` when the new text would join the line after it.
fn as_lines<'a>(find: &'a str, replace: &'a str) -> Option<(Vec<RawLine<'a>>, Vec<RawLine<'a>>)> {
    let rows = |text: &'a str| text.split('\n').map(|line| RawLine { bytes: line.as_bytes(), newline: true }).collect();
    match (find.strip_suffix('\n'), replace.strip_suffix('\n')) {
        (Some(find), Some(replace)) => Some((rows(find), rows(replace))),
        (Some(find), None) if replace.is_empty() => Some((rows(find), Vec::new())),
        (Some(_), None) => None,
        (None, _) => Some((rows(find), rows(replace))),
    }
}

fn steps<'a>(old: &[RawLine<'a>], new: &[RawLine<'a>]) -> Vec<DiffLine<'a>> {
    let bytes = |rows: &[RawLine<'a>]| rows.iter().map(|row| row.bytes).collect::<Vec<_>>();
    let mut steps = Vec::with_capacity(old.len() + new.len());
    for change in capture_diff_slices(Algorithm::Myers, &bytes(old), &bytes(new)) {
        let (tag, old_range, new_range) = change.as_tag_tuple();
        if tag == DiffTag::Equal {
            steps.extend(old[old_range].iter().map(|&row| DiffLine::Keep(row)));
        } else {
            steps.extend(old[old_range].iter().map(|&row| DiffLine::Drop(row)));
            steps.extend(new[new_range].iter().map(|&row| DiffLine::Add(row)));
        }
    }
    steps
}
