//! Applies a file's part of a patch to its old bytes.

use super::locate::{Locator, Placed};
use super::{FilePatch, Format, HunkFault, HunkReport, Operation, PatchFault};
use crate::text::block::{Block, joined};
use crate::text::encoding::{Encoding, EncodingFault};
use crate::text::lines::BOM;
use crate::text::nearest::spot;
use crate::text::page::{Page, Pages};
use crate::text::tier::Tier;

/// What a file's part of a patch came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The new content, for the path after the patch; none when the file is gone.
    pub after: Option<Vec<u8>>,
    /// How each hunk was applied.
    pub reports: Vec<HunkReport>,
}

/// The file after the patch, from what it holds before: nothing when there is no such file.
pub fn apply(file: &FilePatch<'_>, before: Option<&[u8]>) -> Result<Applied, PatchFault> {
    apply_in(file, before, Encoding::Utf8)
}

/// The same for a file in any encoding; the patch itself is UTF-8.
pub fn apply_in(file: &FilePatch<'_>, before: Option<&[u8]>, encoding: Encoding) -> Result<Applied, PatchFault> {
    let path = || file.path.clone();
    match (&file.operation, before) {
        (Operation::Create, Some(_)) => Err(PatchFault::Exists { path: path() }),
        (Operation::Create, None) => Ok(created(file)),
        (Operation::Update, None) if only_adds(file) => Ok(created(file)),
        (_, None) => Err(PatchFault::Missing { path: path() }),
        (Operation::Delete, Some(_)) if file.format == Format::Envelope => {
            Ok(Applied { after: None, reports: Vec::new() })
        }
        (Operation::Delete, Some(before)) => {
            let (left, reports) = changed(file, before, encoding)?;
            match left.is_empty() {
                true => Ok(Applied { after: None, reports }),
                false => Err(leftover(file, &left)),
            }
        }
        (Operation::Update | Operation::Move { .. } | Operation::Copy { .. }, Some(before)) => {
            let (after, reports) = changed(file, before, encoding)?;
            Ok(Applied { after: Some(after), reports })
        }
    }
}

/// A diff of an empty file doesn't always say that the file is new.
fn only_adds(file: &FilePatch<'_>) -> bool {
    file.format == Format::Unified && file.hunks.len() == 1 && file.hunks[0].old_count() == 0
}

fn created(file: &FilePatch<'_>) -> Applied {
    let rows = file.hunks.iter().flat_map(|hunk| hunk.block(file.format).after().collect::<Vec<_>>());
    let content = joined(rows, Tier::Exact);
    let report =
        |hunk: usize| HunkReport { hunk: hunk + 1, line: 1, offset: 0, fuzz: 0, tier: Tier::Exact, note: None };
    Applied { after: Some(content), reports: (0..file.hunks.len()).map(report).collect() }
}

fn leftover(file: &FilePatch<'_>, left: &[u8]) -> PatchFault {
    let page = Page::new(left, true);
    PatchFault::Leftover { path: file.path.clone(), spot: (page.len() > 0).then(|| spot(&page, 0)) }
}

/// Places every hunk, or says of each that can't be placed why not.
fn changed(file: &FilePatch<'_>, before: &[u8], encoding: Encoding) -> Result<(Vec<u8>, Vec<HunkReport>), PatchFault> {
    let in_encoding = |fault: EncodingFault| PatchFault::Encoding { path: file.path.clone(), fault };
    let view = encoding.view(before).map_err(in_encoding)?;
    let pages = Pages::new(view.text(), file.hunks.iter().any(|hunk| mentions_bom(&hunk.block(file.format))));
    let mut locator = Locator::new(&pages, file.format);
    let (mut splices, mut reports, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for (index, hunk) in file.hunks.iter().enumerate() {
        match locator.place(hunk) {
            Ok(placed) => {
                splices.extend(placed.block.splices(pages.exact(), &placed.fit));
                reports.push(report(index, &placed));
            }
            Err(why) => faults.push(HunkFault { hunk: index + 1, patch_line: hunk.patch_line, why }),
        }
    }
    if !faults.is_empty() {
        return Err(PatchFault::Hunks { path: file.path.clone(), total: file.hunks.len(), faults });
    }
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    let after = encoding.spliced(before, &view, splices).map_err(in_encoding)?;
    Ok((after, reports))
}

/// A patch that shows the mark at the start of a file means to keep or change it; any other leaves it alone.
fn mentions_bom(block: &Block<'_>) -> bool {
    block.before().chain(block.after()).any(|row| row.bytes.starts_with(BOM))
}

fn report(index: usize, placed: &Placed<'_>) -> HunkReport {
    HunkReport {
        hunk: index + 1,
        line: placed.fit.at + 1,
        offset: placed.offset,
        fuzz: placed.fuzz,
        tier: placed.fit.tier,
        note: (!placed.notes.is_empty()).then(|| placed.notes.join(" ")),
    }
}
