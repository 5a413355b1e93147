//! Hidden files that a git repository holds anyway. Whoever can read the repository can read them with `git show`, so a command
//! sees such a file as it is, and git may move it from one committed version to another, as `checkout` and `reset` do. Nothing
//! else of a hidden file is shown, and no other change of it is applied.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use toolgate_contract::{
    Change, FileState, Files, RestrictedPaths, StagedChanges, Substitute, WorkspacePath, unescape_path,
};

use super::index::GitIndex;
use super::objects::{GitObjects, blob_id};

/// The largest index that is read.
const MAX_INDEX_BYTES: u64 = 256 * 1024 * 1024;
/// The largest hidden file that is compared with its committed version.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// A repository's directory in its worktree.
const GIT_DIRECTORY: &str = ".git";

/// Compares hidden files with what git has committed of them.
pub(crate) struct CommittedFiles {
    /// The directories of the roots.
    directories: Vec<PathBuf>,
    /// Indexes that were read before.
    indexes: Mutex<HashMap<WorkspacePath, (IndexStamp, Arc<GitIndex>)>>,
}

/// Tells whether an index has been written again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IndexStamp {
    number: u64,
    bytes: u64,
    changed: Timestamp,
}

/// What git has of a hidden file.
enum HiddenFile {
    /// Exactly its content.
    Committed,
    /// An earlier version, which is shown instead.
    Modified(Substitute),
    /// Nothing.
    Untracked(TrackedPath),
}

/// A file's worktree, and its path in it.
struct TrackedPath {
    /// The git directory.
    git: WorkspacePath,
    path: String,
}

impl TrackedPath {
    fn index(&self) -> WorkspacePath {
        self.git.join("index")
    }
}

impl CommittedFiles {
    pub(crate) fn new(directories: Vec<PathBuf>) -> Self {
        Self { directories, indexes: Mutex::default() }
    }

    /// How commands see these paths. A file that is as it was committed hides nothing. In place of one that was changed since
    /// they see the committed version, so that git finds nothing to add; one that git doesn't track is ignored by git.
    pub(crate) fn as_seen_by_commands(&self, restricted: RestrictedPaths, files: &dyn Files) -> RestrictedPaths {
        let RestrictedPaths { hidden, protected, mut substitutes } = restricted;
        let mut excluded: BTreeMap<WorkspacePath, Vec<String>> = BTreeMap::new();
        let mut still_hidden = Vec::new();
        for place in hidden {
            match self.look(&place, files) {
                Some(HiddenFile::Committed) => continue,
                Some(HiddenFile::Modified(substitute)) => substitutes.push(substitute),
                Some(HiddenFile::Untracked(tracked)) => excluded.entry(tracked.git).or_default().push(tracked.path),
                None => {}
            }
            still_hidden.push(place);
        }
        substitutes.extend(excluded.iter().filter_map(|(git, paths)| exclude_file(git, paths, files)));
        RestrictedPaths { hidden: still_hidden, protected, substitutes }
    }

    /// What git has of a hidden file; none if it is in no repository, or that can't be known.
    fn look(&self, place: &WorkspacePath, files: &dyn Files) -> Option<HiddenFile> {
        let tracked = tracked_path(place, files)?;
        let Some(committed) = self.index(&tracked.index(), files)?.blob(&unescape_path(&tracked.path)) else {
            return Some(HiddenFile::Untracked(tracked));
        };
        let content = files.content(place, MAX_FILE_BYTES).ok()??;
        if !content.is_link() && blob_id(committed.kind(), &content.bytes) == Some(committed) {
            return Some(HiddenFile::Committed);
        }
        let bytes = self.objects(&tracked.git)?.blob(committed)?;
        let mode = content.mode.unwrap_or(0o644);
        Some(HiddenFile::Modified(Substitute { place: place.clone(), content: bytes.into(), mode, added: None }))
    }

    /// Whether a file's content is what the index of its repository has.
    fn is_committed(&self, place: &WorkspacePath, files: &dyn Files) -> bool {
        matches!(self.look(place, files), Some(HiddenFile::Committed))
    }

    /// Whether staged changes only move a hidden file from one committed version to another: it was as the index had it,
    /// and is as the new index has it, by an object that was there before.
    pub(crate) fn allows(&self, change: &Change, staged: &dyn StagedChanges, files: &dyn Files) -> bool {
        let is_plain = |state: &Option<FileState>| state.as_ref().is_none_or(FileState::is_file);
        is_plain(&change.before) && is_plain(&change.after) && self.moves(change, staged, files).unwrap_or(false)
    }

    fn moves(&self, change: &Change, staged: &dyn StagedChanges, files: &dyn Files) -> Option<bool> {
        let tracked = tracked_path(&change.place, files)?;
        if change.before.is_some() && !self.is_committed(&change.place, files) {
            return Some(false);
        }
        let new_index = match staged.content(&tracked.index(), MAX_INDEX_BYTES).ok()? {
            Some(index) => Arc::new(GitIndex::decode(&index.bytes)?),
            None => self.index(&tracked.index(), files)?,
        };
        let committed = new_index.blob(&unescape_path(&tracked.path));
        if change.after.is_none() {
            return Some(committed.is_none());
        }
        let content = staged.content(&change.place, MAX_FILE_BYTES).ok()??;
        let id = blob_id(committed?.kind(), &content.bytes)?;
        let has_object = self.objects(&tracked.git)?.missing("index", [id].into_iter()).is_none();
        Some(committed == Some(id) && has_object)
    }

    fn objects(&self, git: &WorkspacePath) -> Option<GitObjects> {
        Some(GitObjects::in_directory(git.beneath(self.directories.get(git.root)?)))
    }

    /// An index, read anew only if it was written again.
    fn index(&self, place: &WorkspacePath, files: &dyn Files) -> Option<Arc<GitIndex>> {
        let found = files.node(place, false).ok()??;
        let stamp = IndexStamp { number: found.number, bytes: found.state.bytes, changed: found.changed };
        if let Some((known, index)) = self.indexes.lock().get(place)
            && *known == stamp
        {
            return Some(Arc::clone(index));
        }
        let index = Arc::new(GitIndex::decode(&files.content(place, MAX_INDEX_BYTES).ok()??.bytes)?);
        self.indexes.lock().insert(place.clone(), (stamp, Arc::clone(&index)));
        Some(index)
    }
}

/// The innermost worktree that a file is in. One whose git directory is elsewhere, as that of a submodule, doesn't count.
fn tracked_path(place: &WorkspacePath, files: &dyn Files) -> Option<TrackedPath> {
    let ends = place.path.match_indices('/').map(|(end, _)| end).rev().map(Some).chain([None]);
    for end in ends {
        let worktree = end.map_or("", |end| &place.path[..end]);
        let git = WorkspacePath { root: place.root, path: worktree.to_owned() }.join(GIT_DIRECTORY);
        match files.node(&git, false).ok()? {
            Some(found) if found.state.is_directory() => {
                return Some(TrackedPath { git, path: place.path[end.map_or(0, |end| end + 1)..].to_owned() });
            }
            Some(_) => return None,
            None => {}
        }
    }
    None
}

/// The list of what git ignores, with these paths in it as well; none if git has no directory for it.
fn exclude_file(git: &WorkspacePath, paths: &[String], files: &dyn Files) -> Option<Substitute> {
    let info = git.join("info");
    files.node(&info, false).ok()?.filter(|found| found.state.is_directory())?;
    let place = info.join("exclude");
    let own = files.content(&place, MAX_FILE_BYTES).ok()?;
    let patterns = paths.iter().flat_map(|path| [b"/", &as_pattern(&unescape_path(path))[..], b"\n"].concat());
    let added: Vec<u8> = b"\n# What is hidden from commands.\n".iter().copied().chain(patterns).collect();
    let (bytes, mode) = own.map_or((Vec::new(), None), |own| (own.bytes.to_vec(), own.mode));
    let content = [bytes, added.clone()].concat();
    Some(Substitute { place, content: content.into(), mode: mode.unwrap_or(0o644), added: Some(added.into()) })
}

/// A path as a pattern of `.gitignore` that matches it alone.
fn as_pattern(path: &[u8]) -> Vec<u8> {
    let escape = |byte: &u8| if b"\\*?[ #!".contains(byte) { vec![b'\\', *byte] } else { vec![*byte] };
    path.iter().flat_map(escape).collect()
}
