//! Applies a file's part of a patch to its old bytes.

use super::locate::{HunkLocator, PlacedHunk};
use super::{FileOperation, FilePatch, HunkFault, HunkReport, PatchFault, PatchFormat, PatchSemantics};
use crate::support::text::indexed_text::{IndexedText, TieredText};
use crate::support::text::line_block::{LineBlock, joined};
use crate::support::text::lines::BOM;
use crate::support::text::match_tier::MatchTier;
use crate::support::text::nearest::numbered_line;
use crate::support::text::reencode::{Encoding, EncodingFault};

/// The result of one file's part of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedContent {
    /// The new content, for the path after the patch; `None` when the file is deleted.
    pub after: Option<Vec<u8>>,
    /// How each hunk was applied.
    pub reports: Vec<HunkReport>,
}

/// The file after the patch. `before` is `None` when there is no such file.
pub fn apply(file: &FilePatch<'_>, before: Option<&[u8]>) -> Result<PatchedContent, PatchFault> {
    apply_in(file, before, Encoding::Utf8, PatchSemantics::Strict)
}

/// Like [`apply`], for a file in any encoding, with semantics to choose; the patch itself is UTF-8.
pub fn apply_in(
    file: &FilePatch<'_>,
    before: Option<&[u8]>,
    encoding: Encoding,
    semantics: PatchSemantics,
) -> Result<PatchedContent, PatchFault> {
    let mut applied = content_after(file, before, encoding, semantics)?;
    // A link's target has no newline, whether or not the patch says so.
    if let Some(target) = applied.after.as_mut().filter(|target| file.is_link() && target.ends_with(b"\n")) {
        target.pop();
    }
    Ok(applied)
}

fn content_after(
    file: &FilePatch<'_>,
    before: Option<&[u8]>,
    encoding: Encoding,
    semantics: PatchSemantics,
) -> Result<PatchedContent, PatchFault> {
    let path = || file.path.clone();
    match (&file.operation, before) {
        (FileOperation::Create, Some(_)) if semantics == PatchSemantics::Codex => {
            let mut replaced = created(file);
            let note = "The file existed and was replaced.".to_owned();
            replaced.reports.iter_mut().take(1).for_each(|report| report.note = Some(note.clone()));
            Ok(replaced)
        }
        (FileOperation::Create, Some(_)) => Err(PatchFault::Exists { path: path(), from: None, format: file.format }),
        (FileOperation::Create, None) => Ok(created(file)),
        (FileOperation::Update, None) if only_adds(file) => Ok(created(file)),
        (_, None) => Err(PatchFault::Missing { path: path() }),
        (FileOperation::Delete, Some(_)) if file.format == PatchFormat::Envelope => {
            Ok(PatchedContent { after: None, reports: Vec::new() })
        }
        (FileOperation::Delete, Some(before)) => {
            let (left, reports) = changed(file, before, encoding, semantics)?;
            match left.is_empty() {
                true => Ok(PatchedContent { after: None, reports }),
                false => Err(leftover(file, &left)),
            }
        }
        (FileOperation::Update | FileOperation::Move { .. } | FileOperation::Copy { .. }, Some(before)) => {
            let (after, reports) = changed(file, before, encoding, semantics)?;
            Ok(PatchedContent { after: Some(after), reports })
        }
    }
}

/// Whether the patch only adds lines. A diff of an empty file doesn't always say that the file is new.
fn only_adds(file: &FilePatch<'_>) -> bool {
    file.format == PatchFormat::Unified && file.hunks.len() == 1 && file.hunks[0].old_count() == 0
}

fn created(file: &FilePatch<'_>) -> PatchedContent {
    let rows = file.hunks.iter().flat_map(|hunk| hunk.block(file.format).after().collect::<Vec<_>>());
    let content = joined(rows, MatchTier::Exact);
    let report =
        |hunk: usize| HunkReport { hunk: hunk + 1, line: 1, offset: 0, fuzz: 0, tier: MatchTier::Exact, note: None };
    PatchedContent { after: Some(content), reports: (0..file.hunks.len()).map(report).collect() }
}

fn leftover(file: &FilePatch<'_>, left: &[u8]) -> PatchFault {
    let page = IndexedText::new(left, true);
    PatchFault::Leftover { path: file.path.clone(), line: (page.len() > 0).then(|| numbered_line(&page, 0)) }
}

/// Locates every hunk, or reports why each failing hunk doesn't match.
fn changed(
    file: &FilePatch<'_>,
    before: &[u8],
    encoding: Encoding,
    semantics: PatchSemantics,
) -> Result<(Vec<u8>, Vec<HunkReport>), PatchFault> {
    let in_encoding = |fault: EncodingFault| PatchFault::Encoding { path: file.path.clone(), fault };
    let view = encoding.view(before).map_err(in_encoding)?;
    let pages = TieredText::new(view.text(), file.hunks.iter().any(|hunk| mentions_bom(&hunk.block(file.format))));
    let mut locator = HunkLocator::new(&pages, file.format, semantics);
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

/// Whether the patch contains a BOM, and so keeps or changes it; otherwise the file's BOM is left alone.
fn mentions_bom(block: &LineBlock<'_>) -> bool {
    block.before().chain(block.after()).any(|row| row.bytes.starts_with(BOM))
}

fn report(index: usize, placed: &PlacedHunk<'_>) -> HunkReport {
    HunkReport {
        hunk: index + 1,
        line: placed.fit.at + 1,
        offset: placed.offset,
        fuzz: placed.fuzz,
        tier: placed.fit.tier,
        note: (!placed.notes.is_empty()).then(|| placed.notes.join(" ")),
    }
}
