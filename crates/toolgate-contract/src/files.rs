//! The files of the workspace, as the sandbox provides them to the other crates.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;

use jiff::Timestamp;

use crate::{
    Access, Change, ChangeSource, Denial, Effect, ErrorCode, FileAttributes, FileContent, FileEdit, FileOwner,
    FileState, GuaranteeLevel, LocatedEffect, ToolError, VisitorFactory, WalkOptions, WorkspacePath,
};

/// Files beneath the workspace's roots. The implementation opens files atomically and follows no links.
pub trait Files: Send + Sync {
    /// Resolves the paths of a call's effects, or rejects what is outside every root. A call deletes by name: if that
    /// name is a link, every effect on it applies to the link itself.
    fn locate(&self, effects: Vec<Effect>) -> Result<Vec<LocatedEffect>, ToolError>;
    /// Opens a regular file for reading.
    fn open(&self, place: &WorkspacePath) -> Result<OpenFile, ToolError>;
    /// The content of a file with at most `most` bytes, or of a link; none if the path doesn't exist.
    fn content(&self, place: &WorkspacePath, most: u64) -> Result<Option<FileContent>, ToolError>;
    /// The number of roots: the workspace, and the other configured directories.
    fn roots(&self) -> usize;
    /// Reports the name and type of every entry of a directory, unless the directory still has the stamp `known`.
    fn look(
        &self,
        directory: &WorkspacePath,
        known: Option<&DirectoryStamp>,
        each: &mut dyn FnMut(&str, EntryKind),
    ) -> Result<DirectoryScan, ToolError>;
    /// Makes every directory of a root accessible that keeps its owner out, except these, until [`Files::restore_mode`]
    /// of each that is returned.
    fn suspend_closed_modes(&self, root: usize, except: &BTreeSet<WorkspacePath>) -> Vec<WorkspacePath>;
    /// Lists a directory, sorted by name.
    fn entries(&self, place: &WorkspacePath) -> Result<Vec<DirectoryEntry>, ToolError>;
    /// Visits everything beneath a directory, or the file itself. Returns how many directories couldn't be read.
    fn walk<'v>(
        &self,
        start: &WorkspacePath,
        options: &WalkOptions,
        visitors: &'v VisitorFactory<'v>,
    ) -> Result<u64, ToolError>;
    /// Begins to watch directories of the roots; none where the kernel doesn't offer that.
    fn watch(&self, of: WatchedChanges) -> Option<Box<dyn TreeWatch>>;
    /// Makes all edits, or none. The gate ensures that each is granted. `first` saves the old content; no part of the
    /// change is visible before it succeeds. `id` distinguishes this change from others.
    fn apply(&self, edits: &[FileEdit], id: &str, first: &mut BeforeApply<'_>) -> Result<(), ToolError>;
    /// The metadata of a path, with the hash of its content if `hashed`; none if the path doesn't exist.
    fn node(&self, place: &WorkspacePath, hashed: bool) -> Result<Option<FileMetadata>, ToolError>;
    /// What the file system says about the entry at a path, without following a link; none if there is none.
    fn status(&self, place: &WorkspacePath) -> Result<Option<EntryStatus>, ToolError>;
    /// Whether a process has the file open for writing, and so could change it through a mapping without updating its
    /// times. Also true if that can't be determined.
    fn has_writers(&self, file: &File) -> bool;
    /// Applies the new states of these changes, one after the other. If it fails midway, the caller restores the old
    /// content that it saved.
    fn write_changes(&self, changes: &[Change], source: &dyn ChangeSource, id: &str) -> Result<(), ToolError>;
    /// Links what is at a path into one of Toolgate's state directories, so that the content survives when the path is
    /// replaced. Copies it only where a hard link isn't possible.
    fn link_or_copy(&self, place: &WorkspacePath, directory: BorrowedFd<'_>, name: &[u8]) -> std::io::Result<()>;
    /// Makes a directory accessible that the current user owns, until [`Files::restore_mode`]. Meanwhile it is reported
    /// with the mode that it had.
    fn suspend_mode(&self, directory: &WorkspacePath) -> Result<(), ToolError>;
    /// Gives a directory its mode back, unless it got another one since.
    fn restore_mode(&self, directory: &WorkspacePath);
    /// Why nothing can be created or removed in a directory; none if it can, or if there is no such directory.
    fn is_closed(&self, directory: &WorkspacePath) -> Option<String>;
    /// Permission bits that new files and directories don't get (the umask).
    fn umask(&self) -> u32;
    /// Removes the temporary files that the change `id` of these paths left behind when its process was killed.
    fn clear_temporary(&self, places: &[WorkspacePath], id: &str) -> Result<(), ToolError>;
    /// A path as a caller would write it: relative in the workspace, absolute elsewhere.
    fn shown(&self, place: &WorkspacePath) -> String;
    /// How well access is confined to the roots on this kernel.
    fn holding(&self) -> GuaranteeLevel;
}

/// Watches directories by the kernel's notifications, which are there as soon as a change is made, so that an unchanged tree
/// needn't be walked to know that.
pub trait TreeWatch: Send + Sync {
    /// Watches a directory from now on, without those in it. False if not every change of its entries would be noticed.
    fn add(&self, directory: &WorkspacePath) -> bool;
    /// Where something changed since this was last asked.
    fn changes(&self) -> ChangedDirectories;
}

/// What a watch reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchedChanges {
    /// That an entry was made, renamed or removed, or that a directory got another mode.
    Names,
    /// The same, and that a file got another content or other attributes.
    NamesAndContents,
}

/// Where something changed in watched directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedDirectories {
    /// In these; nowhere if there are none.
    These(HashSet<WorkspacePath>),
    /// That isn't known: anything may have changed.
    Unknown,
}

impl ChangedDirectories {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::These(directories) if directories.is_empty())
    }

    /// Whether something may have changed in a directory.
    pub fn contains(&self, directory: &WorkspacePath) -> bool {
        match self {
            Self::These(directories) => directories.contains(directory),
            Self::Unknown => true,
        }
    }
}

/// Runs before files change.
pub type BeforeApply<'a> = dyn FnMut() -> Result<(), ToolError> + 'a;

/// A regular file, open for reading, with its metadata.
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

/// The metadata of a path.
#[derive(Debug)]
pub struct FileMetadata {
    /// Its type and content.
    pub state: FileState,
    /// The inode change time (ctime), by the file system's clock.
    pub changed: Timestamp,
    /// The modification time (mtime), which any process can set.
    pub modified: Timestamp,
    /// The number of hard links.
    pub links: u64,
    /// The inode number, for files.
    pub number: u64,
    /// The device of its file system.
    pub device: u64,
    /// The file itself, open for reading, if it was hashed.
    pub file: Option<File>,
    /// Its extended attributes, if it was hashed.
    pub attributes: FileAttributes,
}

/// What the file system says about an entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryStatus {
    /// Its type.
    pub kind: EntryKind,
    /// Size in bytes, as the file system counts it.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Who owns it.
    pub owner: FileOwner,
    /// The number of hard links.
    pub links: u64,
    /// When its content last changed (mtime).
    pub modified: Timestamp,
    /// When it was last read (atime), as far as the file system keeps track.
    pub accessed: Timestamp,
    /// When its content, mode, owner or name last changed (ctime).
    pub changed: Timestamp,
    /// When it was made (btime), where the file system knows.
    pub created: Option<Timestamp>,
    /// Where it leads, if it is a symbolic link.
    pub target: Option<String>,
}

/// What policy hides inside directories that a tool may otherwise read.
pub trait HiddenPaths: Send + Sync {
    /// Whether this path is hidden for this access.
    fn hides(&self, access: Access, place: &WorkspacePath) -> bool;

    /// Whether the answer depends on what the file contains, and so may be another one the next time.
    fn depends_on_content(&self, _place: &WorkspacePath) -> bool {
        false
    }

    /// Whether this path is hidden only because files of such a name hold secrets: nobody has said that tools must not write
    /// there, and nothing runs or loads it.
    fn hides_as_secret(&self, _place: &WorkspacePath) -> bool {
        false
    }

    /// The denial to report for a command that opened a hidden path, which is displayed as `shown`.
    fn denial(&self, _place: &WorkspacePath, shown: &str) -> Denial {
        Denial::of_decoy(shown, ErrorCode::SensitivePath, "Policy hides it from tools.", None)
    }
}

/// Identifies a state of a directory. As long as the stamp is the same, the directory contains the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryStamp {
    /// The device of its file system.
    pub device: u64,
    /// Its inode number.
    pub inode: u64,
    /// The inode change time (ctime), in seconds and nanoseconds. No process can set it.
    pub changed: (i64, i64),
}

/// The result of scanning a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryScan {
    /// The directory still has the known stamp, so it wasn't scanned.
    Unchanged,
    /// All entries were reported. This is the new stamp; none if it isn't reliable.
    Scanned(Option<DirectoryStamp>),
    /// The directory can't be read here, but a command could access its content.
    Closed,
    /// The directory no longer exists, isn't a directory, or isn't accessible to commands either.
    Absent,
}

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    #[serde(rename = "folder", alias = "directory")]
    Directory,
    /// A symbolic link, which isn't followed.
    Link,
    /// A pipe, socket or device.
    Other,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectoryEntry {
    /// Its name; bytes that aren't UTF-8 are escaped as `\xNN`.
    pub name: String,
    /// Its path.
    pub place: WorkspacePath,
    /// Its type.
    pub kind: EntryKind,
    /// Size in bytes.
    pub size: u64,
}
