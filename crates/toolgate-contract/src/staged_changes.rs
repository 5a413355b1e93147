//! Changes that a command made on a layer of its own. The workspace doesn't have them yet: they are looked at, judged and
//! recorded first, like any other change, and then put in place, or let go.

use std::fs::File;
use std::os::fd::BorrowedFd;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Change, FileContent, Files, ToolError, WorkspacePath};

/// What a command changed, kept apart. Dropping it drops the changes.
pub trait StagedChanges: ChangeSource {
    /// Everything that differs from the workspace as it is now, in the order of their places.
    fn differences(&self, files: &dyn Files) -> Result<Differences, ToolError>;
    /// The new side of a place, if it has at most so many bytes; none for what is gone or neither file nor link.
    fn content(&self, place: &WorkspacePath, most: u64) -> Result<Option<FileContent>, ToolError>;
    /// Gives files that were only touched the time that the command gave them.
    fn touch(&self, files: &dyn Files);
    /// Leaves everything where it is when this is dropped, so that it can be opened again by the name that is given back.
    /// The owner is the run that may do so; none lets everybody.
    fn keep(&mut self, owner: Option<&str>) -> Result<String, ToolError>;
    /// The run that may put it in place.
    fn owner(&self) -> Option<&str>;
    /// Drops the changes after all, when this is dropped.
    fn let_go(&mut self);
}

/// Changes that were kept, to be put in place later.
pub trait Rehearsals: Send + Sync {
    /// Opens those with this name. Nobody else can until they are dropped.
    fn open(&self, name: &str) -> Result<Box<dyn StagedChanges>, ToolError>;
}

/// Where the new side of changes comes from.
pub trait ChangeSource: Send + Sync {
    /// Writes a change's new file or link out under a temporary name, where it has to be written out first. Returns the file
    /// that has to reach the disk before it is put in place.
    fn write_out(
        &self,
        _change: &Change,
        _directory: BorrowedFd<'_>,
        _temporary: &str,
    ) -> std::io::Result<Option<File>> {
        Ok(None)
    }
    /// Puts a change's new file or link under a name in a directory, in one step, in the place of what is there. What was
    /// written out has the temporary name until then.
    fn put(&self, change: &Change, directory: BorrowedFd<'_>, name: &str, temporary: &str) -> std::io::Result<()>;
    /// The last touch for a directory that was made, when everything in it is in place.
    fn finish(&self, _change: &Change, _directory: BorrowedFd<'_>, _name: &str) {}
}

/// What differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// Every place that differs.
    pub all: Vec<Difference>,
    /// Names that aren't text, as they can be shown. No tool could reach them, so they are never put in place.
    pub unspeakable: Vec<String>,
}

/// One place that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What is there and what would be.
    pub change: Change,
    /// Whether somebody else changed it while the command ran.
    pub is_stale: bool,
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
    /// What was not put in place, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_aside: Vec<QuarantinedPath>,
    /// How many more were not put in place than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_kept_aside: usize,
    /// What else there is to know, such as what undo doesn't cover.
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
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// One thing that was not put in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuarantinedPath {
    /// Where it would have been.
    pub path: String,
    /// Why it isn't there.
    pub reason: String,
}

/// Shows changes to people and models.
pub trait Differ: Send + Sync {
    /// A change as a unified diff. A side that isn't given though it is there was too large to be shown, or has no bytes:
    /// then it is named with its size.
    fn diff(&self, change: &Change, before: Option<&FileContent>, after: Option<&FileContent>) -> String;
}
