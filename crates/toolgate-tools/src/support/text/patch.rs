//! Patches: unified diffs, with git's extensions, and the `*** Begin Patch` format. [`parse`] reads the text into one
//! record per file; [`apply()`] turns a file's old bytes into its new ones.
//!
//! Every hunk is matched against the old bytes, and reports how it had to be stretched. A hunk that could go to more
//! than one place goes to none.

mod apply;
mod envelope;
mod fault;
mod header_paths;
mod locate;
mod unified;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::apply::{PatchedContent, apply, apply_in};
pub use self::fault::{HunkFault, HunkFaultReason, PatchFault};
use super::line_block::{DiffLine, LineBlock, RawLine};
use super::match_tier::MatchTier;

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch<'a> {
    /// The file as it is called before.
    pub path: String,
    /// What happens to it.
    pub operation: FileOperation,
    /// Its mode before and after, as git writes them, where the patch says so.
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
    /// It is new.
    Create,
    /// It changes.
    Update,
    /// It goes.
    Delete,
    /// It moves, and may change on the way.
    Move {
        /// Its path afterwards.
        to: String,
    },
    /// It stays, and a copy, perhaps changed, is made.
    Copy {
        /// The copy's path.
        to: String,
    },
}

/// A file's mode before and after, such as `0o100755`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModeChange {
    /// Before.
    pub before: Option<u32>,
    /// After.
    pub after: Option<u32>,
}

/// The two ways to write a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchFormat {
    /// `---`, `+++` and numbered hunks.
    Unified,
    /// `*** Begin Patch`, and hunks placed by their context.
    Envelope,
}

/// One change of consecutive lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// The line of the patch where it begins, from 1.
    pub patch_line: usize,
    /// The line where it belongs, as its header counts.
    pub(crate) start: Option<usize>,
    /// Whether its header's counts are right, so that the line number is worth something.
    pub(crate) trusted: bool,
    /// Lines that come somewhere before it, outermost first.
    pub(crate) headings: Vec<&'a [u8]>,
    /// Whether it ends where the file ends.
    pub(crate) at_end: bool,
    /// Its lines.
    pub(crate) steps: Vec<DiffLine<'a>>,
    /// What was odd about it.
    pub(crate) note: Option<String>,
}

/// How a hunk was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HunkReport {
    /// Which hunk of the file, from 1.
    pub hunk: usize,
    /// The line of the old file where it begins, from 1.
    pub line: usize,
    /// How far that is from the line that its header names.
    pub offset: i64,
    /// How many lines of context at its ends were given up.
    pub fuzz: usize,
    /// What was overlooked in its lines.
    pub tier: MatchTier,
    /// More, for the reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Reads a patch in either format, told apart by whichever begins first. Text before that is skipped.
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

/// The lines of a patch, without their newlines. Indices count from 0, messages from 1.
pub(crate) struct PatchLines<'a>(Vec<&'a [u8]>);

impl<'a> PatchLines<'a> {
    fn new(patch: &'a [u8]) -> Self {
        Self(super::lines::lines(patch).map(|line| line.strip_suffix(b"\n").unwrap_or(line)).collect())
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// A line as it is; nothing past the end.
    fn raw(&self, at: usize) -> Option<&'a [u8]> {
        self.0.get(at).copied()
    }

    /// A line without blanks at its ends; empty past the end.
    fn trimmed(&self, at: usize) -> &'a [u8] {
        self.raw(at).unwrap_or_default().trim_ascii()
    }

    /// A header line: without a CR at its end; empty past the end.
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

    /// How many lines it keeps before its first change.
    fn leading(&self) -> usize {
        self.steps.iter().take_while(|step| matches!(step, DiffLine::Keep(_))).count()
    }

    /// How many lines it keeps after its last change.
    fn trailing(&self) -> usize {
        self.steps.iter().rev().take_while(|step| matches!(step, DiffLine::Keep(_))).count()
    }
}

fn row(bytes: &[u8]) -> RawLine<'_> {
    RawLine { bytes, newline: true }
}

#[cfg(test)]
mod tests;
