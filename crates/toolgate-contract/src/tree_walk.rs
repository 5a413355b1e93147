//! Walks a directory tree: visits everything beneath it, on several threads and in no particular order. Ignore files
//! and dot files are handled here, so that every tool that searches skips the same entries. Skipped entries can be
//! visited at the end, so that a tool that found nothing can say why.

use std::fs::File;

use crate::{EntryKind, ToolError, WorkspacePath};

/// What a walk visits.
#[derive(Debug, Clone, Default)]
pub struct WalkOptions {
    /// Whether to respect `.gitignore`, `.ignore`, `.rgignore` and `.git/info/exclude`. Then `.git` itself is skipped
    /// too.
    pub gitignore: bool,
    /// Whether to visit names that begin with a dot.
    pub hidden: bool,
    /// The maximum depth; 1 is the directory's own entries.
    pub max_depth: Option<usize>,
    /// Globs, relative to the start, that override everything else; a leading `!` excludes.
    pub globs: Vec<String>,
    /// File types by ripgrep's names, such as `rust`.
    pub types: Vec<String>,
    /// Whether to visit, after everything else, the entries that ignore files and dot names excluded.
    pub then_left_out: bool,
}

/// How to continue after a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkStep {
    /// Continue, and enter the directory.
    On,
    /// Continue, but don't enter this directory.
    Past,
    /// End the walk.
    Stop,
}

/// Why an entry was skipped at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// An ignore file matches it.
    Ignored,
    /// Its name begins with a dot.
    Hidden,
}

/// A file's metadata, known without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryMetadata {
    /// Size in bytes.
    pub size: u64,
    /// The time of the last modification, in nanoseconds since 1970.
    pub modified: i64,
    /// The time of the last change of content or metadata, which no program can set.
    pub changed: i64,
    /// The device of its file system.
    pub device: u64,
    /// Its inode number.
    pub inode: u64,
    /// The number of hard links.
    pub links: u64,
}

/// One entry that a walk visits.
pub struct VisitedEntry<'a> {
    /// Its path.
    pub place: &'a WorkspacePath,
    /// Its type.
    pub kind: EntryKind,
    /// Its depth; 0 is the start itself, if that is a file.
    pub depth: usize,
    /// Why it was skipped at first; none if it wasn't.
    pub left_out: Option<SkipReason>,
    /// Access to the entry.
    pub handle: &'a dyn WalkHandle,
}

/// Access to an entry of a walk, beneath its root and without following links.
pub trait WalkHandle {
    /// Opens the entry, if it is a regular file.
    fn open(&self) -> Result<File, ToolError>;
    /// The entry's metadata; none if it no longer exists.
    fn facts(&self) -> Option<EntryMetadata>;
}

impl VisitedEntry<'_> {
    /// Opens the entry, if it is a regular file.
    pub fn open(&self) -> Result<File, ToolError> {
        self.handle.open()
    }

    /// The entry's metadata; none if it no longer exists.
    pub fn facts(&self) -> Option<EntryMetadata> {
        self.handle.facts()
    }
}

/// Called for each entry. Every thread of a walk has one of its own.
pub type Visitor<'a> = Box<dyn FnMut(&VisitedEntry<'_>) -> WalkStep + 'a>;

/// Creates a visitor for each thread.
pub type VisitorFactory<'a> = dyn Fn() -> Visitor<'a> + Sync + 'a;
