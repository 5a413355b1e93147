//! One path of a snapshot: its state when the snapshot was taken, and how to tell whether it has changed since.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_contract::{FileMetadata, FileOwner, FileState, sha256, sha256_of};

/// The hash recorded for a file that was too large to copy.
const NOT_COPIED: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The recorded state of one path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SnapshotEntry {
    mode: u32,
    bytes: u64,
    device: u64,
    number: u64,
    changed: FileTime,
    modified: FileTime,
    /// None if it belongs to the user who runs Toolgate.
    owner: Option<FileOwner>,
    /// Changed so shortly before the snapshot that a later change could have the same timestamp: only the content
    /// tells.
    is_young: bool,
    /// Nothing can change the file without changing its ctime.
    is_reliable: bool,
    pub(super) copy: Option<FileCopy>,
    /// The target of a symbolic link.
    pub(super) target: Option<Vec<u8>>,
    /// The hash of what another call left here, whose content is in the blob store.
    left_by_others: Option<String>,
}

/// Seconds and nanoseconds.
type FileTime = (i64, i32);

/// The time of a file that another call left, where it couldn't be told.
const UNKNOWN: FileTime = (0, 0);

/// A copy of a file. Inode and modification time tell it from a file that something else put in its place.
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
        Self {
            mode,
            bytes,
            device,
            number,
            changed,
            modified,
            owner: state.owner,
            is_young: true,
            is_reliable: false,
            copy,
            target,
            left_by_others: None,
        }
    }

    /// What another call left at a path. The file wasn't seen then, so only its content tells whether it is still that.
    pub(super) fn left_by_others(state: &FileState) -> Self {
        Self {
            mode: state.mode,
            bytes: state.bytes,
            device: 0,
            number: 0,
            changed: (0, 0),
            modified: state.modified.as_ref().map_or(UNKNOWN, time),
            owner: state.owner,
            is_young: true,
            is_reliable: false,
            copy: None,
            target: None,
            left_by_others: Some(state.sha256.clone()),
        }
    }

    /// Whether another call left it, and it is still that.
    pub(super) fn is_left_by_others(&self) -> bool {
        self.left_by_others.is_some()
    }

    /// Whether its content is known: it isn't a file that was too large to copy.
    pub(super) fn has_content(&self) -> bool {
        !self.bare().is_file() || self.copy.is_some() || self.left_by_others.is_some()
    }

    /// How many bytes its copy has.
    pub(super) fn copied_bytes(&self) -> u64 {
        self.copy.as_ref().map_or(0, FileCopy::bytes)
    }

    /// Sets how far the file's ctime can be relied on.
    #[must_use]
    pub(super) fn with_reliability(mut self, is_young: bool, is_reliable: bool) -> Self {
        (self.is_young, self.is_reliable) = (is_young, is_reliable);
        self
    }

    /// Whether the command left the file unchanged. The ctime is set by the file system, and no program can set it.
    pub(super) fn is_still(&self, now: &FileMetadata) -> bool {
        let has_to_be_read = self.is_young && self.copy.is_some();
        self.mode == now.state.mode && (self.bare().is_directory() || self.is_the_same(now) && !has_to_be_read)
    }

    /// Whether an earlier copy still matches the file.
    pub(super) fn is_reusable(&self, now: &FileMetadata) -> bool {
        self.is_reliable && self.copy.is_some() && self.mode == now.state.mode && self.is_the_same(now)
    }

    fn is_the_same(&self, now: &FileMetadata) -> bool {
        let times = (self.changed, self.modified) == (time(&now.changed), time(&now.modified));
        times && (self.device, self.number, self.bytes) == (now.device, now.number, now.state.bytes)
    }

    /// The state without its hash.
    fn bare(&self) -> FileState {
        let bare = FileState::new("", self.bytes, self.mode);
        let (seconds, nanoseconds) = self.modified;
        let modified = Timestamp::new(seconds, nanoseconds).ok().filter(|_| bare.is_file());
        FileState { modified, owner: self.owner, ..bare }
    }

    /// The recorded state with its hash; `copy` is the open copy.
    pub(super) fn state(&self, copy: Option<&File>) -> std::io::Result<FileState> {
        let bare = self.bare();
        if let Some(sha256) = &self.left_by_others {
            let modified = bare.modified.filter(|_| self.modified != UNKNOWN);
            return Ok(FileState { modified, owner: self.owner, ..FileState::new(sha256, self.bytes, self.mode) });
        }
        if !bare.is_file() {
            return Ok(FileState { sha256: sha256(self.target.as_deref().unwrap_or_default()), ..bare });
        }
        match copy.filter(|copy| self.copy.as_ref().is_some_and(|known| known.is(copy))) {
            None => Ok(FileState { sha256: NOT_COPIED.to_owned(), ..bare }),
            Some(copy) => sha256_of(copy).map(|(sha256, bytes)| FileState { sha256, bytes, ..bare }),
        }
    }
}

impl FileCopy {
    /// The metadata of a copy that has just been made.
    pub(super) fn new(number: u64, file: &File) -> std::io::Result<Self> {
        let facts = file.metadata()?;
        Ok(Self { number, bytes: facts.len(), inode: facts.ino(), modified: written(&facts) })
    }

    /// Its number, which is its name in the snapshot's directory.
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
