//! The diff of a recorded change, from the content that is kept for undo.

use toolgate_contract::{Blob, Change, FileState, LINK_MODE};
use toolgate_journal::{BlobStore, JournalError};
use toolgate_tools::text::{Diff, DiffSide, between};

/// What can be shown of a change.
pub enum ChangeDiff {
    /// Both versions are kept.
    Shown(Diff),
    /// The old content was evicted, so the change can't be undone.
    OldEvicted,
    /// The new content isn't stored; the change can be undone.
    NewMissing,
}

impl ChangeDiff {
    /// Compares both versions of a change.
    pub fn of(change: &Change, contents: &BlobStore) -> Result<Self, JournalError> {
        let version = |state| FileVersion::of(state, contents);
        Ok(match (version(&change.before)?, version(&change.after)?) {
            (Some(before), Some(after)) => Self::Shown(between(before.side(&change.path), after.side(&change.path))),
            (None, _) => Self::OldEvicted,
            (Some(_), None) => Self::NewMissing,
        })
    }
}

/// A file before or after a change: its bytes and mode, or `None` if there is no file. Directories and pipes have no
/// bytes.
struct FileVersion(Option<(Blob, u32)>);

impl FileVersion {
    /// `None` when the content was evicted.
    fn of(state: &Option<FileState>, contents: &BlobStore) -> Result<Option<Self>, JournalError> {
        let Some(state) = state else { return Ok(Some(Self(None))) };
        if !state.is_file() && !state.is_link() {
            return Ok(Some(Self(Some((Blob::from(Vec::new()), state.mode)))));
        }
        let mode = if state.mode == LINK_MODE { LINK_MODE } else { 0o100_000 | state.mode };
        Ok(contents.get(&state.sha256)?.map(|bytes| Self(Some((bytes, mode)))))
    }

    fn side<'a>(&'a self, path: &'a str) -> Option<DiffSide<'a>> {
        self.0.as_ref().map(|(content, mode)| DiffSide { path, mode: *mode, content })
    }
}
