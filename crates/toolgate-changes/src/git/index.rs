//! Reads a git index: which file of which content is staged at which path.

use gix_hash::{Kind, ObjectId};
use gix_index::State;
use gix_index::decode::Options;
use gix_index::entry::Mode;

/// The largest allocation that an index may cause, since its numbers may lie.
const MAX_ALLOCATION: usize = 256 * 1024 * 1024;

/// A git index. Two are equal if they stage the same; what git caches about files on disk doesn't count.
#[derive(Debug, Default)]
pub(crate) struct GitIndex {
    entries: Vec<IndexEntry>,
    /// For each entry, when git last saw its file modified, in seconds.
    modified: Vec<u32>,
}

/// What is staged at one path.
#[derive(Debug, PartialEq, Eq)]
struct IndexEntry {
    path: Vec<u8>,
    id: ObjectId,
    mode: u32,
    stage: u32,
}

/// The content that is staged for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StagedBlob {
    pub(crate) id: ObjectId,
    /// When git last saw the file modified, in seconds.
    pub(crate) modified: u32,
}

impl PartialEq for GitIndex {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl GitIndex {
    /// Decodes an index; none if it isn't one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        [Kind::Sha1, Kind::Sha256].into_iter().find_map(|kind| Self::decode_as(bytes, kind))
    }

    fn decode_as(bytes: &[u8], kind: Kind) -> Option<Self> {
        let options = Options { thread_limit: Some(1), alloc_limit_bytes: Some(MAX_ALLOCATION), ..Options::default() };
        let timestamp = filetime::FileTime::zero();
        let (state, _) = State::from_bytes(bytes, timestamp, kind, options).ok()?;
        let entry = |entry: &gix_index::Entry| IndexEntry {
            path: entry.path(&state).to_vec(),
            id: entry.id,
            mode: entry.mode.bits(),
            stage: entry.stage_raw(),
        };
        let modified = state.entries().iter().map(|entry| entry.stat.mtime.secs).collect();
        Some(Self { entries: state.entries().iter().map(entry).collect(), modified })
    }

    /// The content that is staged for a regular file; none if the path isn't tracked, or in conflict.
    pub(crate) fn blob(&self, path: &[u8]) -> Option<StagedBlob> {
        let found = self.entries.binary_search_by(|entry| (entry.path.as_slice(), entry.stage).cmp(&(path, 0))).ok()?;
        let entry = &self.entries[found];
        let is_file = [Mode::FILE, Mode::FILE_EXECUTABLE].iter().any(|mode| mode.bits() == entry.mode);
        is_file.then_some(StagedBlob { id: entry.id, modified: self.modified[found] })
    }

    /// Whether anything is staged at this path.
    pub(crate) fn has(&self, path: &[u8]) -> bool {
        let found = self.entries.partition_point(|entry| entry.path.as_slice() < path);
        self.entries.get(found).is_some_and(|entry| entry.path == path)
    }

    /// Whether anything is staged inside of this directory.
    pub(crate) fn has_in(&self, directory: &[u8]) -> bool {
        let prefix = [directory, b"/"].concat();
        let found = self.entries.partition_point(|entry| entry.path < prefix);
        self.entries.get(found).is_some_and(|entry| entry.path.starts_with(&prefix))
    }

    /// The objects that it refers to, except for the commits of submodules, which are in other repositories.
    pub(crate) fn objects(&self) -> impl Iterator<Item = ObjectId> {
        let is_submodule = |entry: &&IndexEntry| entry.mode == Mode::COMMIT.bits();
        self.entries.iter().filter(move |entry| !is_submodule(entry)).map(|entry| entry.id)
    }
}
