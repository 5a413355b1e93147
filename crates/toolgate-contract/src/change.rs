//! A change to files: the old and the new content. One call makes one change, of one file or many, completely or not at
//! all; a change is also the unit of undo.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Blob, ChangeSource, ToolError, WorkspacePath};

/// The mode of a symbolic link, as git writes it. A link's bytes are its target path.
pub const LINK_MODE: u32 = 0o120_000;

/// The mode of a directory, without its permission bits. A directory has no bytes.
pub const DIRECTORY_MODE: u32 = 0o040_000;

/// The mode of a named pipe, without its permission bits. A pipe has no bytes.
pub const PIPE_MODE: u32 = 0o010_000;

/// The bits of a mode that contain the file type; all zero for a regular file.
const KIND: u32 = 0o170_000;

/// A file's bytes and permission bits, or a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// The bytes.
    pub bytes: Blob,
    /// Permission bits, or [`LINK_MODE`]. None keeps those of the replaced file, or uses the default ones for a new
    /// file.
    pub mode: Option<u32>,
}

impl FileContent {
    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.mode == Some(LINK_MODE)
    }
}

/// One path and its intended content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The path.
    pub place: WorkspacePath,
    /// The content that the tool based its work on; none if the path didn't exist. If the content has changed since,
    /// nothing is written.
    pub before: Option<FileContent>,
    /// The new content; none removes the file.
    pub after: Option<FileContent>,
    /// The path that the file comes from, where it is moved: another edit of the same change removes it there. As after
    /// `rename`, the file keeps its time, owner and attributes.
    pub moved_from: Option<WorkspacePath>,
}

/// A file's state at some moment. The bytes are in the content store, under their hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Hash of its bytes.
    pub sha256: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Permission bits, or [`LINK_MODE`]; for directories and pipes also the file type.
    pub mode: u32,
    /// The modification time of a regular file, or of a directory that a command made or gave a time; none where it isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<Timestamp>,
    /// Who owns it; none if that is the user who runs Toolgate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<FileOwner>,
    /// The extended attributes of a regular file, where a change is about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<FileAttributes>,
}

/// Extended attributes that commands can set (`user.*`, and access control lists), by name; values are hexadecimal.
pub type FileAttributes = BTreeMap<String, String>;

/// The user and the group that own a file, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOwner {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
}

impl FileState {
    /// A state whose time isn't known, of a file that belongs to the user who runs Toolgate.
    pub fn new(sha256: impl Into<String>, bytes: u64, mode: u32) -> Self {
        Self { sha256: sha256.into(), bytes, mode, modified: None, owner: None, attributes: None }
    }

    /// Whether one of them isn't what the other is: by type, content, permission bits, or by a time or attributes that both
    /// know.
    pub fn differs_from(&self, other: &Self) -> bool {
        let is_other_time = self.modified.zip(other.modified).is_some_and(|(one, other)| one != other);
        let has_others =
            self.attributes.as_ref().zip(other.attributes.as_ref()).is_some_and(|(one, other)| one != other);
        !self.is(other) || self.mode != other.mode || is_other_time || has_others
    }

    /// Whether both states have the same type and content, ignoring permission bits.
    pub fn is(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.sha256 == other.sha256
    }

    /// Whether both states have the same type and content, or both are absent.
    pub fn same(one: Option<&Self>, other: Option<&Self>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) => one.is(other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.kind() == LINK_MODE
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind() == DIRECTORY_MODE
    }

    /// Whether it is a regular file. The content store can keep the bytes of files and links.
    pub fn is_file(&self) -> bool {
        self.kind() == 0
    }

    /// The file type: 0 for a file, otherwise [`LINK_MODE`], [`DIRECTORY_MODE`], [`PIPE_MODE`] or the kernel's value.
    pub fn kind(&self) -> u32 {
        self.mode & KIND
    }

    /// Its permission bits.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

/// The old and the new state of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path, as a caller would write it.
    pub path: String,
    /// The resolved path.
    pub place: WorkspacePath,
    /// The old state; none if the path didn't exist.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<FileState>,
    /// The new state; none if the path was removed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<FileState>,
}

impl Change {
    /// Whether the path is afterwards what it was before.
    pub fn is_nothing(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => !before.differs_from(after),
            (before, after) => before.is_none() && after.is_none(),
        }
    }

    /// Whether only permission bits, time or owner change: the content stays where it is.
    pub fn is_metadata_only(&self) -> bool {
        self.before.as_ref().zip(self.after.as_ref()).is_some_and(|(before, after)| before.is(after))
    }

    /// Merges a later change of the same path into this one. If something else changed the content in between, only the
    /// later change counts. Permission bits that were set in between are nobody's here, so they don't go back either.
    pub fn followed_by(&mut self, later: &Self) {
        match (&mut self.before, &self.after, &later.before) {
            (before, left, found) if !FileState::same(left.as_ref(), found.as_ref()) => before.clone_from(found),
            (Some(before), Some(left), Some(found)) if left.mode != found.mode && before.kind() == found.kind() => {
                before.mode = found.mode;
            }
            _ => {}
        }
        self.after.clone_from(&later.after);
    }
}

/// A content that the session has seen at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenVersion {
    /// Its hash.
    pub sha256: String,
    /// The call that read or wrote it.
    pub tool_call_id: String,
}

/// Changes files, and tracks which versions of them a session has seen.
pub trait Changes: Send + Sync {
    /// Makes one change, completely or not at all, and keeps the old content for undo.
    fn make(&self, edits: Vec<FileEdit>) -> Result<Vec<Change>, ToolError>;
    /// Makes one change, completely or not at all, whose new content comes from a source. It can include directories
    /// and links.
    fn write_changes(&self, changes: Vec<Change>, source: &dyn ChangeSource) -> Result<(), ToolError>;
    /// How many bytes of previous content one change can keep for undo.
    fn undo_room(&self) -> u64;
    /// The run that this change belongs to.
    fn run(&self) -> &str;
    /// Records that the session has seen this content at a path.
    fn saw(&self, place: &WorkspacePath, sha256: &str);
    /// The version that the session last saw at a path.
    fn seen(&self, place: &WorkspacePath) -> Option<SeenVersion>;
    /// The call that wrote the content with this hash at a path, if it was a call.
    fn author(&self, place: &WorkspacePath, sha256: &str) -> Option<String>;
}
