//! Hands on files: what a call may read and change, and the versions that its session has seen.

use crate::{
    Access, Change, ChangeSource, DirectoryEntry, EntryStatus, FileContent, FileEdit, FileState, OpenFile, SeenVersion,
    ToolError, VisitorFactory, WalkOptions, WorkspacePath,
};

/// Hands on files.
pub trait FileHands {
    /// The resolved path of a path that was declared for reading.
    fn place(&self, path: &str) -> Result<WorkspacePath, ToolError>;
    /// The resolved path of a path that was declared for writing or deleting.
    fn target(&self, access: Access, path: &str) -> Result<WorkspacePath, ToolError>;
    /// A path as the caller would write it.
    fn shown(&self, place: &WorkspacePath) -> String;

    /// Opens the file at a declared path.
    fn open(&self, path: &str) -> Result<OpenFile, ToolError>;
    /// Opens a file at or beneath a declared path.
    fn open_at(&self, place: &WorkspacePath) -> Result<OpenFile, ToolError>;
    /// The content of a file with at most `most` bytes, or of a link, at or beneath a declared path; none if nothing
    /// exists there.
    fn content_at(&self, place: &WorkspacePath, most: u64) -> Result<Option<FileContent>, ToolError>;
    /// The state of a path at or beneath a declared one; none if nothing exists there.
    fn state_at(&self, place: &WorkspacePath) -> Result<Option<FileState>, ToolError>;
    /// How many names the file at or beneath a declared path has (hard links), also outside of the workspace; 0 if it isn't there.
    fn names_at(&self, place: &WorkspacePath) -> Result<u64, ToolError>;
    /// What the file system says about the entry at a declared path, without following a link; none if there is none.
    fn status(&self, path: &str) -> Result<Option<EntryStatus>, ToolError>;
    /// The first of the directories above a declared path that is something else by now, such as a file or a link.
    fn replaced_ancestor(&self, place: &WorkspacePath) -> Result<Option<WorkspacePath>, ToolError>;
    /// Lists a directory at or beneath a declared path, without what policy hides.
    fn entries_at(&self, place: &WorkspacePath) -> Result<Vec<DirectoryEntry>, ToolError>;
    /// Visits everything beneath a declared path, on several threads. Hidden entries are neither visited nor entered.
    /// Returns how many directories couldn't be read.
    fn walk<'v>(&self, path: &str, options: &WalkOptions, visitors: &'v VisitorFactory<'v>) -> Result<u64, ToolError>;
    /// Whether policy hides anything in a directory.
    fn hides_something(&self, directory: &WorkspacePath) -> Result<bool, ToolError>;

    /// Makes one change, completely or not at all. The old content is kept for undo.
    fn change(&self, edits: Vec<FileEdit>) -> Result<Vec<Change>, ToolError>;
    /// Makes one change, completely or not at all, whose new content comes from a source. It can include directories
    /// and links.
    fn write_changes(&self, changes: Vec<Change>, source: &dyn ChangeSource) -> Result<(), ToolError>;
    /// Makes a directory at or beneath a declared path accessible that keeps its owner out, until
    /// [`FileHands::restore_mode`].
    fn suspend_mode(&self, directory: &WorkspacePath) -> Result<(), ToolError>;
    /// Gives a directory its mode back.
    fn restore_mode(&self, directory: &WorkspacePath);
    /// How many bytes of previous content one change can keep for undo.
    fn undo_room(&self) -> u64;

    /// Records that the session has seen this content at a path it may read.
    fn saw(&self, place: &WorkspacePath, sha256: &str);
    /// The version that the session last saw at a path.
    fn seen(&self, place: &WorkspacePath) -> Option<SeenVersion>;
    /// The call that wrote the content with this hash at a path, if it was a call.
    fn author(&self, place: &WorkspacePath, sha256: &str) -> Option<String>;
}
