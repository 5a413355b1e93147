//! What was at a place when a snapshot was taken of it, and how to tell whether it still is.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_contract::{FileMetadata, FileState, sha256, sha256_of};

/// Stands for the content of a file that was more than could be kept.
const NOT_KEPT: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What was at a place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SnapshotEntry {
    mode: u32,
    bytes: u64,
    device: u64,
    number: u64,
    changed: FileTime,
    modified: FileTime,
    /// Changed so shortly before that another change could bear the same time: only its content tells.
    is_young: bool,
    /// Nobody could change it without giving it another time of change.
    is_lasting: bool,
    pub(super) copy: Option<FileCopy>,
    /// What a link held.
    pub(super) target: Option<Vec<u8>>,
}

/// Seconds and nanoseconds.
type FileTime = (i64, i32);

/// A copy of a file. Which file it is and when it was last changed tell it from what anybody else put there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FileCopy {
    number: u64,
    bytes: u64,
    inode: u64,
    modified: FileTime,
}

impl SnapshotEntry {
    pub(super) fn new(node: &FileMetadata, copy: Option<FileCopy>, target: Option<Vec<u8>>) -> Self {
        let FileMetadata { state, device, number, changed, modified, .. } = node;
        let (mode, bytes, device, number) = (state.mode, state.bytes, *device, *number);
        let (changed, modified) = (time(changed), time(modified));
        Self { mode, bytes, device, number, changed, modified, is_young: true, is_lasting: false, copy, target }
    }

    /// Says how far its time of change can be relied on.
    #[must_use]
    pub(super) fn known(mut self, is_young: bool, is_lasting: bool) -> Self {
        (self.is_young, self.is_lasting) = (is_young, is_lasting);
        self
    }

    /// Whether the command did nothing to it. The time of change is the file system's own, and nobody can set it.
    pub(super) fn is_still(&self, now: &FileMetadata) -> bool {
        let has_to_be_read = self.is_young && self.copy.is_some();
        self.mode == now.state.mode && (self.bare().is_directory() || self.is_the_same(now) && !has_to_be_read)
    }

    /// Whether a copy that was made long ago is still a copy of what is there.
    pub(super) fn is_reusable(&self, now: &FileMetadata) -> bool {
        self.is_lasting && self.copy.is_some() && self.mode == now.state.mode && self.is_the_same(now)
    }

    fn is_the_same(&self, now: &FileMetadata) -> bool {
        let times = (self.changed, self.modified) == (time(&now.changed), time(&now.modified));
        times && (self.device, self.number, self.bytes) == (now.device, now.number, now.state.bytes)
    }

    /// Without its hash.
    fn bare(&self) -> FileState {
        FileState { sha256: String::new(), bytes: self.bytes, mode: self.mode }
    }

    /// What was there, with its hash; `copy` is the file of that name.
    pub(super) fn state(&self, copy: Option<&File>) -> std::io::Result<FileState> {
        let bare = self.bare();
        if !bare.is_file() {
            return Ok(FileState { sha256: sha256(self.target.as_deref().unwrap_or_default()), ..bare });
        }
        match copy.filter(|copy| self.copy.as_ref().is_some_and(|known| known.is(copy))) {
            None => Ok(FileState { sha256: NOT_KEPT.to_owned(), ..bare }),
            Some(copy) => sha256_of(copy).map(|(sha256, bytes)| FileState { sha256, bytes, ..bare }),
        }
    }
}

impl FileCopy {
    /// What is known of a copy that has just been made.
    pub(super) fn new(number: u64, file: &File) -> std::io::Result<Self> {
        let facts = file.metadata()?;
        Ok(Self { number, bytes: facts.len(), inode: facts.ino(), modified: written(&facts) })
    }

    /// Its name in the snapshot's directory.
    pub(super) fn name(&self) -> String {
        self.number.to_string()
    }

    /// The number behind its name.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// How many bytes it has.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn is(&self, file: &File) -> bool {
        let known = (self.bytes, self.inode, self.modified);
        file.metadata().is_ok_and(|facts| known == (facts.len(), facts.ino(), written(&facts)))
    }
}

fn time(time: &Timestamp) -> FileTime {
    (time.as_second(), time.subsec_nanosecond())
}

fn written(facts: &Metadata) -> FileTime {
    (facts.mtime(), facts.mtime_nsec() as i32)
}
