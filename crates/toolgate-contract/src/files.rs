//! The files of the workspace, as whoever keeps them offers them to the rest.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::path::Path;

use jiff::Timestamp;

use crate::{
    Access, Change, ChangeSource, Denial, Effect, ErrorCode, FileContent, FileEdit, FileState, GuaranteeLevel,
    LocatedEffect, ToolError, VisitorFactory, WalkOptions, WorkspacePath,
};

/// Files beneath the workspace's roots. The implementation opens in one step and follows no link.
pub trait Files: Send + Sync {
    /// Finds where the paths of a call's effects lead, or refuses what is outside every root. What a call removes it
    /// removes by name: where that name is a link, every effect on it is on the link itself.
    fn locate(&self, effects: Vec<Effect>) -> Result<Vec<LocatedEffect>, ToolError>;
    /// Opens a regular file for reading.
    fn open(&self, place: &WorkspacePath) -> Result<OpenFile, ToolError>;
    /// All of a file, if it has at most so many bytes, or the link that is there; none when nothing is.
    fn content(&self, place: &WorkspacePath, most: u64) -> Result<Option<FileContent>, ToolError>;
    /// How many roots there are: the workspace, and the directories beside it.
    fn roots(&self) -> usize;
    /// Tells the name and kind of everything in a directory of a root, unless that still has this mark.
    fn look(
        &self,
        root: usize,
        directory: &Path,
        known: Option<&DirectoryStamp>,
        each: &mut dyn FnMut(&OsStr, EntryKind),
    ) -> Result<DirectoryScan, ToolError>;
    /// Opens the directories of a root that only their owner's own choice keeps us from reading, except these.
    fn open_up(&self, root: usize, except: &BTreeSet<WorkspacePath>) -> Result<(), ToolError>;
    /// Lists a directory, sorted by name.
    fn entries(&self, place: &WorkspacePath) -> Result<Vec<DirectoryEntry>, ToolError>;
    /// Visits what is beneath a directory, or the file itself. Returns how many directories couldn't be read.
    fn walk<'v>(
        &self,
        start: &WorkspacePath,
        options: &WalkOptions,
        visitors: &'v VisitorFactory<'v>,
    ) -> Result<u64, ToolError>;
    /// Makes all edits, or none. The gate sees to it that each is granted; `first` keeps the way back, and nothing can be
    /// seen of the change before that is done, or if it fails. `id` tells this change from others.
    fn apply(&self, edits: &[FileEdit], id: &str, first: &mut BeforeApply<'_>) -> Result<(), ToolError>;
    /// What is at a place, its bytes hashed unless that isn't wanted; none when nothing is.
    fn node(&self, place: &WorkspacePath, hashed: bool) -> Result<Option<FileMetadata>, ToolError>;
    /// Whether somebody has it open for writing, and so could change it through memory without giving it another time of
    /// change. Also where that can't be known.
    fn has_writers(&self, opened: &OpenFile) -> bool;
    /// Puts the new sides of these changes in place, one after the other. When it fails half-way, whoever asked puts back
    /// what it has kept.
    fn arrange(&self, changes: &[Change], source: &dyn ChangeSource, id: &str) -> Result<(), ToolError>;
    /// Gives what is at a place another name in a directory of the state's, so that it is still there when the place gets something
    /// else. It is copied only where it can't have two names.
    fn link_or_copy(&self, place: &WorkspacePath, directory: BorrowedFd<'_>, name: &str) -> std::io::Result<()>;
    /// Gives a file another time of change.
    fn touch(&self, place: &WorkspacePath, modified: Timestamp) -> Result<(), ToolError>;
    /// Removes the temporary files that the change `id` of these places left behind when it was killed.
    fn clear_temporary(&self, places: &[WorkspacePath], id: &str) -> Result<(), ToolError>;
    /// Removes a directory and the directories in it, as far as they are empty.
    fn remove_empty_directories(&self, directory: &WorkspacePath) -> Result<(), ToolError>;
    /// A place as a caller would write it: relative in the workspace, absolute elsewhere.
    fn shown(&self, place: &WorkspacePath) -> String;
    /// How well access stays beneath the roots on this kernel.
    fn holding(&self) -> GuaranteeLevel;
}

/// What has to be done before files change.
pub type BeforeApply<'a> = dyn FnMut() -> Result<(), ToolError> + 'a;

/// A regular file, open for reading, and what was known of it then.
#[derive(Debug)]
pub struct OpenFile {
    /// The file.
    pub file: File,
    /// Its size in bytes.
    pub size: u64,
    /// Its permission bits.
    pub mode: u32,
}

impl Read for OpenFile {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.file.read(into)
    }
}

/// What is at a place.
#[derive(Debug)]
pub struct FileMetadata {
    /// What it is and holds.
    pub state: FileState,
    /// When it was last changed in any way, by the file system's clock.
    pub changed: Timestamp,
    /// When its content was last changed; anybody can set this.
    pub modified: Timestamp,
    /// How many names it has.
    pub links: u64,
    /// Which file it is, for files.
    pub number: u64,
    /// The file system that it lies on.
    pub device: u64,
    /// The file itself, open for reading, where it was hashed.
    pub file: Option<File>,
}

/// What policy hides inside directories that a tool may otherwise look into.
pub trait HiddenPaths: Send + Sync {
    /// Whether this place must not be seen with this access.
    fn hides(&self, access: Access, place: &WorkspacePath) -> bool;

    /// What to tell of a command that opened a place which is hidden from it, and which is written like this.
    fn denial(&self, _place: &WorkspacePath, shown: &str) -> Denial {
        Denial::of_decoy(shown, ErrorCode::SensitivePath, "Policy hides it from tools.", None)
    }
}

/// A directory as it was when it was looked into. As long as it has the same mark, it holds the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryStamp {
    /// The file system that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// When it was last changed, in seconds and nanoseconds. Nobody can set this.
    pub changed: (i64, i64),
}

/// What came of looking into a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryScan {
    /// It has the mark that it had, so it wasn't looked into.
    AsBefore,
    /// Everything in it was told. It has this mark; none if that says nothing.
    Anew(Option<DirectoryStamp>),
    /// It can't be looked into, and a command could get at what is in it all the same.
    Closed,
    /// It isn't there any more, isn't a directory, or is closed to commands too.
    Nothing,
}

/// What kind of thing a directory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    #[serde(rename = "folder", alias = "directory")]
    Directory,
    /// A symbolic link; it isn't followed.
    Link,
    /// A pipe, socket or device.
    Other,
}

/// One thing in a directory.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectoryEntry {
    /// Its name; bytes that aren't UTF-8 are shown as `\xNN`.
    pub name: String,
    /// Where it is.
    pub place: WorkspacePath,
    /// What it is.
    pub kind: EntryKind,
    /// Size in bytes.
    pub size: u64,
}
