//! Hidden files that a git repository holds anyway. Whoever can read the repository can read them with `git show`, so a command
//! sees such a file as it was committed, and git may move it from one committed version to another, as `checkout` and `reset` do.
//! Nothing else of a hidden file is shown, and no other change of it is applied.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use gix_hash::ObjectId;
use jiff::Timestamp;
use parking_lot::Mutex;
use toolgate_contract::{
    Change, EntryKind, FileMetadata, FileState, Files, RestrictedPaths, STATE_DIRECTORY, StagedChanges, Substitute,
    WorkspacePath, unescape_path,
};

use super::exclude::exclude_file;
use super::index::{GitIndex, StagedBlob};
use super::objects::{GitObjects, blob_id};
use super::tracked_path::TrackedPath;

/// The largest index that is read.
const MAX_INDEX_BYTES: u64 = 256 * 1024 * 1024;
/// The largest hidden file that is compared with its committed version; a larger one stays hidden, as a file that git finds
/// changed. Key stores and recorded sessions may have megabytes.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// The most entries of a hidden directory that are looked at one by one. With more, all of it stays hidden.
const MAX_ENTRIES: usize = 20_000;
/// A hidden directory with a longer path stays hidden: the paths in it may be longer than the kernel takes.
const LONGEST_PATH: usize = 3_000;

/// How commands see what is committed of hidden files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommittedView {
    /// A file that is as it was committed is shown as it is, so git can replace it. The changes are judged afterwards.
    AsItIs,
    /// A copy of the committed version is mounted over the file: what somebody else writes to the file while the command runs stays
    /// hidden, and isn't mistaken for the command's change.
    Mounted,
}

/// Compares hidden files with what git has committed of them.
pub(crate) struct CommittedFiles {
    /// The directories of the roots.
    directories: Vec<PathBuf>,
    /// Indexes that were read before.
    indexes: Mutex<HashMap<WorkspacePath, (FileStamp, Arc<GitIndex>)>>,
    /// The names that hidden files' contents have as objects, by path.
    blobs: Mutex<HashMap<WorkspacePath, (FileStamp, ObjectId)>>,
}

/// Tells whether a file has been written again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    number: u64,
    bytes: u64,
    changed: Timestamp,
}

impl FileStamp {
    fn of(found: &FileMetadata) -> Self {
        Self { device: found.device, number: found.number, bytes: found.state.bytes, changed: found.changed }
    }
}

/// What is known about hidden paths, while it is gathered.
#[derive(Default)]
struct HiddenView {
    hidden: Vec<WorkspacePath>,
    substitutes: Vec<Substitute>,
    /// Paths that git must ignore, by the directory of their repository.
    excluded: BTreeMap<WorkspacePath, Vec<String>>,
    /// Entries of hidden directories that were looked at.
    looked: usize,
}

impl HiddenView {
    fn exclude(&mut self, tracked: TrackedPath) {
        self.excluded.entry(tracked.common).or_default().push(tracked.path);
    }
}

impl CommittedFiles {
    pub(crate) fn new(directories: Vec<PathBuf>) -> Self {
        Self { directories, indexes: Mutex::default(), blobs: Mutex::default() }
    }

    /// How commands see these paths. Of a file that git tracks they see the committed version, so that git finds nothing to add;
    /// one that git doesn't track is ignored by git. Of a hidden directory they see the tracked files.
    pub(crate) fn as_seen_by_commands(
        &self,
        restricted: RestrictedPaths,
        view: CommittedView,
        files: &dyn Files,
    ) -> RestrictedPaths {
        let RestrictedPaths { hidden, protected, substitutes } = restricted;
        let mut seen = HiddenView { substitutes, ..HiddenView::default() };
        for place in hidden {
            let pass = HiddenPass { committed: self, view, files };
            if pass.add_top(&place, &mut seen).is_none() {
                seen.hidden.push(place);
            }
        }
        let HiddenView { hidden, mut substitutes, mut excluded, .. } = seen;
        excluded.values_mut().for_each(|paths| {
            paths.sort();
            paths.dedup();
        });
        substitutes.extend(excluded.iter().filter_map(|(git, paths)| exclude_file(git, paths, files)));
        RestrictedPaths { hidden, protected, substitutes }
    }

    /// The name that a hidden file's content has as an object of the same kind as `like`; none if it is no regular file, or too
    /// large to compare.
    fn blob_of(&self, place: &WorkspacePath, like: ObjectId, files: &dyn Files) -> Option<ObjectId> {
        let found = files.node(place, false).ok()??;
        let stamp = FileStamp::of(&found);
        if let Some((known, id)) = self.blobs.lock().get(place)
            && *known == stamp
            && id.kind() == like.kind()
        {
            return Some(*id);
        }
        let content = files.content(place, MAX_FILE_BYTES).ok()??;
        let id = blob_id(like.kind(), &content.bytes).filter(|_| found.state.is_file() && !content.is_link())?;
        self.blobs.lock().insert(place.clone(), (stamp, id));
        Some(id)
    }

    /// Whether staged changes only move a hidden file from one committed version to another: it was as the index had it,
    /// and is as the new index has it, by an object that was there before. A hidden directory comes and goes with its tracked
    /// files.
    pub(crate) fn allows(&self, change: &Change, staged: &dyn StagedChanges, files: &dyn Files) -> bool {
        self.moves(change, staged, files).unwrap_or(false)
    }

    fn moves(&self, change: &Change, staged: &dyn StagedChanges, files: &dyn Files) -> Option<bool> {
        let tracked = TrackedPath::find(&change.place, files)?;
        let path = unescape_path(&tracked.path);
        let old_index = self.index(&tracked.index(), files)?;
        let new_index = match staged.content(&tracked.index(), MAX_INDEX_BYTES).ok()? {
            Some(index) => Arc::new(GitIndex::decode(&index.bytes)?),
            None => Arc::clone(&old_index),
        };
        match (&change.before, &change.after) {
            (Some(before), None) if before.is_directory() => return Some(old_index.has_in(&path)),
            (None, Some(after)) if after.is_directory() => return Some(new_index.has_in(&path)),
            (before, after) if [before, after].into_iter().flatten().all(FileState::is_file) => {}
            _ => return Some(false),
        }
        if change.before.is_some() {
            let committed = old_index.blob(&path)?.id;
            if self.blob_of(&change.place, committed, files) != Some(committed) {
                return Some(false);
            }
        }
        let committed = new_index.blob(&path).map(|staged| staged.id);
        if change.after.is_none() {
            return Some(committed.is_none());
        }
        let content = staged.content(&change.place, MAX_FILE_BYTES).ok()??;
        let id = blob_id(committed?.kind(), &content.bytes)?;
        let has_object = self.objects(&tracked.common)?.missing("index", [id].into_iter()).is_none();
        Some(committed == Some(id) && has_object)
    }

    /// Whether the index has another version of a file than a command saw in place of it, which isn't in the workspace.
    pub(crate) fn has_other_version(&self, seen: &Substitute, files: &dyn Files) -> bool {
        let staged = || {
            let tracked = TrackedPath::find(&seen.place, files)?;
            let staged = self.index(&tracked.index(), files)?.blob(&unescape_path(&tracked.path))?.id;
            let is_there = self.blob_of(&seen.place, staged, files) == Some(staged);
            Some(!is_there && blob_id(staged.kind(), &seen.content)? != staged)
        };
        staged().unwrap_or(false)
    }

    fn objects(&self, git: &WorkspacePath) -> Option<GitObjects> {
        Some(GitObjects::in_directory(git.beneath(self.directories.get(git.root)?)))
    }

    /// An index, read anew only if it was written again. A repository in which nothing was staged yet has none, which is an empty
    /// one.
    fn index(&self, place: &WorkspacePath, files: &dyn Files) -> Option<Arc<GitIndex>> {
        let Some(found) = files.node(place, false).ok()? else { return Some(Arc::default()) };
        let stamp = FileStamp::of(&found);
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

/// One look at hidden paths.
struct HiddenPass<'a> {
    committed: &'a CommittedFiles,
    view: CommittedView,
    files: &'a dyn Files,
}

impl HiddenPass<'_> {
    /// Adds how a hidden path is seen. None if it stays hidden: it is in no repository, or what git has of it can't be known.
    fn add_top(&self, place: &WorkspacePath, seen: &mut HiddenView) -> Option<()> {
        let tracked = TrackedPath::find(place, self.files)?;
        let index = self.committed.index(&tracked.index(), self.files)?;
        let is_directory = self.files.node(place, false).ok()??.state.is_directory();
        if is_directory {
            self.add_directory(place, tracked, &index, seen)
        } else {
            self.add_file(place, tracked, &index, seen)
        }
    }

    fn add_file(
        &self,
        place: &WorkspacePath,
        tracked: TrackedPath,
        index: &GitIndex,
        seen: &mut HiddenView,
    ) -> Option<()> {
        let Some(staged) = index.blob(&unescape_path(&tracked.path)) else {
            seen.exclude(tracked);
            seen.hidden.push(place.clone());
            return Some(());
        };
        let is_current = self.committed.blob_of(place, staged.id, self.files) == Some(staged.id);
        if is_current && self.view == CommittedView::AsItIs {
            return Some(());
        }
        seen.substitutes.push(self.substitute(place, &tracked, staged, is_current)?);
        seen.hidden.push(place.clone());
        Some(())
    }

    /// The committed version of a file.
    fn substitute(
        &self,
        place: &WorkspacePath,
        tracked: &TrackedPath,
        staged: StagedBlob,
        is_current: bool,
    ) -> Option<Substitute> {
        let content = self.files.content(place, MAX_FILE_BYTES).ok()??;
        let mode = content.mode.unwrap_or(0o644);
        let bytes = match is_current {
            true => content.bytes,
            false => self.committed.objects(&tracked.common)?.blob(staged.id)?.into(),
        };
        let modified = Some(staged.modified);
        Some(Substitute { place: place.clone(), content: bytes, mode, modified, added: None })
    }

    /// Adds what is in a hidden directory if git tracks any of it, and the directory itself otherwise. Symbolic links are shown:
    /// what they lead to is seen or hidden by its own path.
    fn add_directory(
        &self,
        place: &WorkspacePath,
        tracked: TrackedPath,
        index: &GitIndex,
        seen: &mut HiddenView,
    ) -> Option<()> {
        let is_state = place.path.rsplit('/').next() == Some(STATE_DIRECTORY);
        if is_state || !index.has_in(&unescape_path(&tracked.path)) {
            // What is mounted over a hidden directory has a `.gitignore` of its own.
            seen.hidden.push(place.clone());
            return Some(());
        }
        // Gathered apart: if anything in it can't be known, all of it stays hidden.
        let mut inside = HiddenView { looked: seen.looked, ..HiddenView::default() };
        for entry in self.files.entries(place).ok()? {
            inside.looked += 1;
            if inside.looked > MAX_ENTRIES || entry.place.path.len() > LONGEST_PATH {
                return None;
            }
            let tracked = tracked.join(&entry.name);
            let added = match entry.kind {
                EntryKind::Directory => self.add_directory(&entry.place, tracked, index, &mut inside),
                EntryKind::Link if index.has(&unescape_path(&tracked.path)) => Some(()),
                EntryKind::Link => {
                    inside.exclude(tracked);
                    Some(())
                }
                EntryKind::File | EntryKind::Other => self.add_file(&entry.place, tracked, index, &mut inside),
            };
            if added.is_none() {
                inside.hidden.push(entry.place);
            }
        }
        seen.looked = inside.looked;
        seen.hidden.append(&mut inside.hidden);
        seen.substitutes.append(&mut inside.substitutes);
        for (git, mut paths) in inside.excluded {
            seen.excluded.entry(git).or_default().append(&mut paths);
        }
        Some(())
    }
}
