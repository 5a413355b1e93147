//! A change to files: what was there, what comes instead. One call makes one change, of one file or many, whole or not
//! at all; a change is also the unit of undo.

use serde::{Deserialize, Serialize};

use crate::{Blob, ChangeSource, ToolError, WorkspacePath};

/// The mode of a symbolic link, as git writes it. A link's bytes are the path that it holds.
pub const LINK_MODE: u32 = 0o120_000;

/// The mode of a directory, without its permission bits. A directory has no bytes.
pub const DIRECTORY_MODE: u32 = 0o040_000;

/// The mode of a named pipe, without its permission bits. A pipe has no bytes.
pub const PIPE_MODE: u32 = 0o010_000;

/// The bits of a mode that say what it is; none of them are set for a file.
const KIND: u32 = 0o170_000;

/// A file's bytes and permission bits, or a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// What is in it.
    pub bytes: Blob,
    /// Permission bits, or [`LINK_MODE`]; none for those of the file that is replaced, or the usual ones for a new file.
    pub mode: Option<u32>,
}

impl FileContent {
    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.mode == Some(LINK_MODE)
    }
}

/// One place and what it should hold afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// Where.
    pub place: WorkspacePath,
    /// What the tool saw there when it worked this out; none when nothing was there. If something else is there by
    /// now, nothing is changed.
    pub before: Option<FileContent>,
    /// What should be there; none removes the file.
    pub after: Option<FileContent>,
}

/// A file as it was at some moment, by its hash; the bytes are in the content store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Hash of its bytes.
    pub sha256: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Permission bits, or [`LINK_MODE`]; for directories and pipes what they are as well.
    pub mode: u32,
}

impl FileState {
    /// Whether this is what it was, permission bits aside.
    pub fn is(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.sha256 == other.sha256
    }

    /// Whether both are the same, or nothing at all.
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

    /// Whether it is a file, whose bytes the content store can keep; a link's can be kept too.
    pub fn is_file(&self) -> bool {
        self.kind() == 0
    }

    /// What it is: nothing for a file, else [`LINK_MODE`], [`DIRECTORY_MODE`], [`PIPE_MODE`] or what the kernel says.
    pub fn kind(&self) -> u32 {
        self.mode & KIND
    }

    /// Its permission bits.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

/// A file's before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path, as a caller would write it.
    pub path: String,
    /// Where it is.
    pub place: WorkspacePath,
    /// What was there; none when nothing was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<FileState>,
    /// What came instead; none when it was removed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<FileState>,
}

impl Change {
    /// Joins a later change of the same place to this one. Where somebody else changed it in between, only what came after that
    /// counts: the rest lies under their work.
    pub fn followed_by(&mut self, later: &Self) {
        if !FileState::same(self.after.as_ref(), later.before.as_ref()) {
            self.before.clone_from(&later.before);
        }
        self.after.clone_from(&later.after);
    }
}

/// A content that the session knows a place to have had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenVersion {
    /// Its hash.
    pub sha256: String,
    /// The call that read or wrote it.
    pub tool_call_id: String,
}

/// Changes files, and knows which versions of them a session has seen.
pub trait Changes: Send + Sync {
    /// Makes one change, whole or not at all, with what was there kept for undo.
    fn make(&self, edits: Vec<FileEdit>) -> Result<Vec<Change>, ToolError>;
    /// The same for changes whose new side comes from a source: of any number, of directories and links too.
    fn arrange(&self, changes: Vec<Change>, source: &dyn ChangeSource) -> Result<(), ToolError>;
    /// The run that this change belongs to.
    fn run(&self) -> &str;
    /// The session has now seen this content there.
    fn saw(&self, place: &WorkspacePath, sha256: &str);
    /// What the session last saw there.
    fn seen(&self, place: &WorkspacePath) -> Option<SeenVersion>;
    /// Who made the content with this hash there, if it was a call.
    fn author(&self, place: &WorkspacePath, sha256: &str) -> Option<String>;
}
