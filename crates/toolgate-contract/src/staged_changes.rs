//! Changes that a command made in an overlay. They aren't in the workspace yet: like any other change they are
//! inspected, judged and recorded first, and then applied or dropped.

use std::fs::File;
use std::os::fd::BorrowedFd;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CancellationToken, Change, FileContent, Files, ToolError, WorkspacePath};

/// The staged changes of a command. Dropping this value drops the changes.
pub trait StagedChanges: ChangeSource {
    /// Everything that differs from the current workspace, ordered by path.
    fn differences(&self, files: &dyn Files) -> Result<Differences, ToolError>;
    /// From now on [`StagedChanges::differences`] fails once this is cancelled. Nothing is lost with that.
    fn stop_comparing(&mut self, stop: CancellationToken);
    /// Applies a new name of an existing file as a file of its own, not as a hard link.
    fn copy_instead_of_link(&self, place: &WorkspacePath);
    /// The new content of a path, if it has at most `most` bytes; none for something deleted or neither a file nor a
    /// link.
    fn content(&self, place: &WorkspacePath, most: u64) -> Result<Option<FileContent>, ToolError>;
    /// Moves whatever was made of a path under a name in a directory, without reading it.
    fn take_whole(&self, place: &WorkspacePath, directory: BorrowedFd<'_>, name: &str) -> std::io::Result<()>;
    /// Keeps the changes on disk when this value is dropped, so that they can be opened again by the returned name.
    /// `owner` is the run that may do so; none allows every run. `approval` is given back unread.
    fn keep(&mut self, owner: Option<&str>, approval: &[u8]) -> Result<String, ToolError>;
    /// The run that may apply the changes.
    fn owner(&self) -> Option<&str>;
    /// What was approved of the changes, as it was kept.
    fn approval(&self) -> &[u8];
    /// Revokes [`StagedChanges::keep`]: the changes are dropped with this value.
    fn discard(&mut self);
}

/// Staged changes that were kept, to be applied later.
pub trait Rehearsals: Send + Sync {
    /// Opens the changes with this name. They stay locked for others until they are dropped.
    fn open(&self, name: &str) -> Result<Box<dyn StagedChanges>, ToolError>;
}

/// Puts a content under a name in a directory.
pub type PlaceContent<'a> = dyn Fn(BorrowedFd<'_>, &[u8]) -> std::io::Result<()> + 'a;

/// Provides the new content of changes.
pub trait ChangeSource: Send + Sync {
    /// Writes a change's new file or link to a temporary name, if that is a separate step. Returns the file that has to
    /// be synced to disk before it is put in place.
    fn write_out(
        &self,
        _change: &Change,
        _directory: BorrowedFd<'_>,
        _temporary: &str,
    ) -> std::io::Result<Option<File>> {
        Ok(None)
    }
    /// Puts a change's new file or link under a name in a directory, as the kernel has it, atomically replacing
    /// existing content. `temporary` is the name that [`ChangeSource::write_out`] used.
    fn put(&self, change: &Change, directory: BorrowedFd<'_>, name: &[u8], temporary: &str) -> std::io::Result<()>;
    /// Whether it has the whole file also where only permission bits, time or owner change. Such a file replaces one that has
    /// other names, which the change isn't about.
    fn has_files_of_metadata_changes(&self) -> bool {
        false
    }
    /// Takes back the content of a change that was put in place and is about to be reverted, so that it isn't lost.
    /// `place_file` puts the content under a name in a directory. A source that gave a copy needs nothing back.
    fn take_back(&self, _change: &Change, _place_file: &PlaceContent<'_>) -> std::io::Result<()> {
        Ok(())
    }
    /// Learns that a change was reverted, so that the path is again what it was before.
    fn reverted(&self, _change: &Change, _files: &dyn Files) {}
    /// Finishes a created directory, after everything in it is in place.
    fn finish(&self, _change: &Change, _directory: BorrowedFd<'_>, _name: &[u8]) {}
}

/// The differences between staged changes and the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// Every path that differs.
    pub all: Vec<Difference>,
    /// Paths whose differences can't be told. They are never applied.
    pub unreadable: Vec<UnreadableChange>,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The current and the new state.
    pub change: Change,
    /// Whether something else changed the path while the command ran.
    pub is_stale: bool,
    /// The existing file, otherwise unchanged, that the path is a new name of.
    pub linked_to: Option<WorkspacePath>,
}

/// A path that the command changed, and that can't be read or compared: itself, and everything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableChange {
    /// The path, as a caller would write it.
    pub path: String,
    /// The resolved path.
    pub place: WorkspacePath,
    /// The mode of what the command made there, as [`FileState`](crate::FileState) has it; none if it removed it.
    pub mode: Option<u32>,
    /// Why it can't be read.
    pub reason: String,
}

/// What became of a command's changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettledChanges {
    /// How many files, links and directories are new.
    pub created: usize,
    /// How many have other content or another mode.
    pub changed: usize,
    /// How many are gone.
    pub deleted: usize,
    /// The first of them, as `+` created, `~` changed or `-` deleted, and the path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Directories of build output whose paths aren't listed, with how many of them changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folded: Vec<FoldedDirectory>,
    /// Paths that were quarantined (not written to the workspace), and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_aside: Vec<QuarantinedPath>,
    /// How many more paths were quarantined than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_kept_aside: usize,
    /// It couldn't change these.
    // Policy had read it as a command that changes nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Further remarks, such as what undo doesn't cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Of a rehearsal, the handle that `commit` takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<String>,
    /// Of a rehearsal, what would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

impl SettledChanges {
    /// How many changed paths are neither listed nor folded.
    pub fn unlisted(&self) -> usize {
        let folded = self.folded.iter().map(|folded| folded.created + folded.changed + folded.deleted).sum::<usize>();
        (self.created + self.changed + self.deleted).saturating_sub(folded + self.paths.len())
    }

    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

pub(crate) fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A directory of build output, such as `target/`: a list of changes has its counts instead of its paths. The record has
/// every path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoldedDirectory {
    /// Its path, with a `/` at the end.
    pub path: String,
    /// How many files, links and directories in it are new.
    pub created: usize,
    /// How many have other content or another mode.
    pub changed: usize,
    /// How many are gone.
    pub deleted: usize,
}

impl FoldedDirectory {
    /// A directory in which nothing has changed yet.
    pub fn new(directory: &str) -> Self {
        Self { path: format!("{directory}/"), created: 0, changed: 0, deleted: 0 }
    }

    /// Counts a change.
    pub fn add(&mut self, change: &Change) {
        match (&change.before, &change.after) {
            (None, _) => self.created += 1,
            (Some(_), Some(_)) => self.changed += 1,
            (Some(_), None) => self.deleted += 1,
        }
    }

    /// How many changes it stands for.
    pub fn count(&self) -> usize {
        self.created + self.changed + self.deleted
    }
}

/// One path that was quarantined: not written to the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuarantinedPath {
    /// The path it would have been written to.
    pub path: String,
    /// Why it was quarantined.
    pub reason: String,
}

/// Renders changes for people and models.
pub trait Differ: Send + Sync {
    /// A change as a unified diff. A side that exists but isn't given is too large to show, or has no bytes: then only
    /// its size is shown.
    fn diff(&self, change: &Change, before: Option<&FileContent>, after: Option<&FileContent>) -> String;
}
