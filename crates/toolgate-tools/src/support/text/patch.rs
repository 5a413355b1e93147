//! Patches: unified diffs with git's extensions, and the `*** Begin Patch` format. [`parse`] reads the text into one
//! record per file; [`apply()`] turns a file's old bytes into its new ones.
//!
//! Every hunk is matched against the old bytes, and reports how lenient the match was. A hunk that matches in more than
//! one place is refused.

mod apply;
mod envelope;
mod fault;
mod header_paths;
mod locate;
mod unified;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::LINK_MODE;

pub use self::apply::{PatchedContent, apply, apply_in};
pub use self::fault::{HunkFault, HunkFaultReason, PatchFault};
use super::line_block::{DiffLine, LineBlock, RawLine};
use super::match_tier::MatchTier;

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch<'a> {
    /// The file's path before the patch.
    pub path: String,
    /// What happens to it.
    pub operation: FileOperation,
    /// Its mode before and after, in git's notation, where the patch says so.
    pub mode: ModeChange,
    /// Which format it came in.
    pub format: PatchFormat,
    /// The line of the patch where it begins, from 1.
    pub patch_line: usize,
    /// The changes, in order.
    pub hunks: Vec<Hunk<'a>>,
}

/// What happens to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileOperation {
    /// Created.
    Create,
    /// Changed.
    Update,
    /// Deleted.
    Delete,
    /// Moved, and perhaps changed.
    Move {
        /// Its new path.
        to: String,
    },
    /// Copied, and the copy perhaps changed.
    Copy {
        /// The copy's path.
        to: String,
    },
}

impl FilePatch<'_> {
    /// Whether it is about a symbolic link itself, whose content is its target.
    pub fn is_link(&self) -> bool {
        self.mode.before == Some(LINK_MODE) || self.mode.after == Some(LINK_MODE)
    }
}

/// What a patch means where its format leaves it open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchSemantics {
    /// Refuses it.
    #[default]
    Strict,
    /// As the client Codex does: lines added without context follow the last line, and a file that is added or moved
    /// replaces what is there.
    Codex,
}

/// A file's mode before and after, such as `0o100755`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModeChange {
    /// Before.
    pub before: Option<u32>,
    /// After.
    pub after: Option<u32>,
}

/// The two patch formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchFormat {
    /// `---`, `+++` and numbered hunks.
    Unified,
    /// `*** Begin Patch`, with hunks located by their context.
    Envelope,
}

/// One change of consecutive lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// The line of the patch where it begins, from 1.
    pub patch_line: usize,
    /// The line number in its header.
    pub(crate) start: Option<usize>,
    /// Whether its header's counts are correct, so that the line number can be trusted.
    pub(crate) trusted: bool,
    /// Lines that occur before it, outermost first.
    pub(crate) headings: Vec<&'a [u8]>,
    /// Whether it must match at the end of the file.
    pub(crate) at_end: bool,
    /// Its lines.
    pub(crate) steps: Vec<DiffLine<'a>>,
    /// Irregularities found while parsing.
    pub(crate) note: Option<String>,
}

/// How a hunk was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HunkReport {
    /// Which hunk of the file, from 1.
    pub hunk: usize,
    /// The line of the old file where it begins, from 1.
    pub line: usize,
    /// Distance from the line that its header names.
    pub offset: i64,
    /// How many context lines at its ends were ignored.
    pub fuzz: usize,
    /// Differences that were ignored.
    pub tier: MatchTier,
    /// Further remarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Parses a patch in either format, whichever begins first. Text before it is skipped.
pub fn parse(patch: &[u8]) -> Result<Vec<FilePatch<'_>>, PatchFault> {
    let lines = PatchLines::new(patch);
    let begins = |at: usize| lines.trimmed(at) == envelope::BEGIN || unified::begins_file(&lines, at);
    let files = match (0..lines.len()).find(|&at| begins(at)) {
        Some(at) if lines.trimmed(at) == envelope::BEGIN => envelope::parse(&lines, at)?,
        _ => unified::parse(&lines)?,
    };
    match files.is_empty() {
        true => Err(PatchFault::Nothing),
        false => Ok(files),
    }
}

/// The lines of a patch, without newlines. Indices count from 0, messages from 1.
pub(crate) struct PatchLines<'a>(Vec<&'a [u8]>);

impl<'a> PatchLines<'a> {
    fn new(patch: &'a [u8]) -> Self {
        Self(super::lines::lines(patch).map(|line| line.strip_suffix(b"\n").unwrap_or(line)).collect())
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// A line unchanged; `None` past the end.
    fn raw(&self, at: usize) -> Option<&'a [u8]> {
        self.0.get(at).copied()
    }

    /// A line without surrounding whitespace; empty past the end.
    fn trimmed(&self, at: usize) -> &'a [u8] {
        self.raw(at).unwrap_or_default().trim_ascii()
    }

    /// A header line, without a trailing CR; empty past the end.
    fn header(&self, at: usize) -> &'a [u8] {
        let line = self.raw(at).unwrap_or_default();
        line.strip_suffix(b"\r").unwrap_or(line)
    }
}

impl<'a> Hunk<'a> {
    fn new(patch_line: usize) -> Self {
        Self { patch_line, start: None, trusted: true, headings: vec![], at_end: false, steps: vec![], note: None }
    }

    fn block(&self, format: PatchFormat) -> LineBlock<'_> {
        LineBlock { steps: &self.steps, literal: format == PatchFormat::Unified }
    }

    fn old_count(&self) -> usize {
        self.steps.iter().filter(|step| !matches!(step, DiffLine::Add(_))).count()
    }

    fn new_count(&self) -> usize {
        self.steps.iter().filter(|step| !matches!(step, DiffLine::Drop(_))).count()
    }

    /// Number of context lines before its first change.
    fn leading(&self) -> usize {
        self.steps.iter().take_while(|step| matches!(step, DiffLine::Keep(_))).count()
    }

    /// Number of context lines after its last change.
    fn trailing(&self) -> usize {
        self.steps.iter().rev().take_while(|step| matches!(step, DiffLine::Keep(_))).count()
    }
}

fn row(bytes: &[u8]) -> RawLine<'_> {
    RawLine { bytes, newline: true }
}

#[cfg(test)]
mod tests;
