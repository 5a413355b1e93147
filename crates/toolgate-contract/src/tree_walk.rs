//! Walking a directory: everything beneath it is visited, on several threads at once and in no promised order. Ignore files
//! and dot names are understood here, so that every tool that searches leaves out the same things; what was left out can
//! be visited at the end, for the tool that found nothing and wants to say why.

use std::fs::File;

use crate::{EntryKind, ToolError, WorkspacePath};

/// What a walk visits.
#[derive(Debug, Clone, Default)]
pub struct WalkOptions {
    /// Whether `.gitignore`, `.ignore`, `.rgignore` and `.git/info/exclude` count. Then `.git` itself is left out too.
    pub gitignore: bool,
    /// Whether names that begin with a dot are visited.
    pub hidden: bool,
    /// How deep to go; 1 is the directory's own entries.
    pub max_depth: Option<usize>,
    /// Globs, relative to the start, that say what is visited whatever else says; `!` in front takes out.
    pub globs: Vec<String>,
    /// File types by ripgrep's names, such as `rust`.
    pub types: Vec<String>,
    /// Whether to visit, after everything else, what ignore files and dot names left out.
    pub then_left_out: bool,
}

/// What to do after a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkStep {
    /// Go on; a directory is entered.
    On,
    /// Go on, but not into this directory.
    Past,
    /// End the walk.
    Stop,
}

/// Why something wasn't visited with the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// An ignore file names it.
    Ignored,
    /// Its name begins with a dot.
    Hidden,
}

/// What the file system says about a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryMetadata {
    /// Size in bytes.
    pub size: u64,
    /// When it was last changed, in nanoseconds since 1970.
    pub modified: i64,
}

/// One thing that a walk came by.
pub struct VisitedEntry<'a> {
    /// Where it is. A name that isn't UTF-8 is shown with `\xNN` here, and only [`VisitedEntry::open`] can open it.
    pub place: &'a WorkspacePath,
    /// What it is.
    pub kind: EntryKind,
    /// How deep it lies; 0 is the start itself, when that is a file.
    pub depth: usize,
    /// Why it wasn't visited with the rest, when it wasn't.
    pub left_out: Option<SkipReason>,
    /// How to touch it.
    pub handle: &'a dyn WalkHandle,
}

/// Touches the thing that a walk came by, beneath its root and with no link followed.
pub trait WalkHandle {
    /// Opens it, if it is a regular file.
    fn open(&self) -> Result<File, ToolError>;
    /// What is known of it; none when it is gone.
    fn facts(&self) -> Option<EntryMetadata>;
}

impl VisitedEntry<'_> {
    /// Opens it, if it is a regular file.
    pub fn open(&self) -> Result<File, ToolError> {
        self.handle.open()
    }

    /// What is known of it without opening it; none when it is gone.
    pub fn facts(&self) -> Option<EntryMetadata> {
        self.handle.facts()
    }
}

/// Called for each thing. Every thread of a walk has one of its own.
pub type Visitor<'a> = Box<dyn FnMut(&VisitedEntry<'_>) -> WalkStep + 'a>;

/// Makes a visitor for each thread.
pub type VisitorFactory<'a> = dyn Fn() -> Visitor<'a> + Sync + 'a;
