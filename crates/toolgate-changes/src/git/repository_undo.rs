//! Undoes what was changed in one git repository: refs, index, HEAD and logs go back together or not at all. An object is never
//! removed: others may refer to it by now, and git itself removes what nobody needs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gix_hash::ObjectId;
use toolgate_contract::{Blob, Change, ErrorCode, FileState, Hands, ToolError, WorkspacePath};
use toolgate_journal::BlobStore;

use super::index::GitIndex;
use super::layout::{loose_object, repository_of_object};
use super::objects::GitObjects;

/// The largest index that is compared entry by entry.
const MAX_INDEX_BYTES: u64 = 64 * 1024 * 1024;

/// The changes of one repository that are to be undone.
pub(crate) struct RepositoryUndo<'a> {
    /// The git directory.
    pub(crate) directory: &'a WorkspacePath,
    /// Where the git directory is on this machine.
    pub(crate) path: PathBuf,
    pub(crate) changes: Vec<&'a Change>,
    pub(crate) contents: &'a BlobStore,
    pub(crate) hands: &'a dyn Hands,
}

/// How the changes of one repository are undone.
#[derive(Default)]
pub(crate) struct RepositoryInverse {
    /// The changes that undo them.
    pub(crate) back: Vec<Change>,
    /// How many objects stay that the undone changes had added.
    pub(crate) kept_objects: usize,
}

/// The change that undoes a change, if its path is still as the change left it.
pub(crate) type Inverse<'a> = dyn Fn(&Change) -> Result<Change, ToolError> + 'a;

impl RepositoryUndo<'_> {
    /// How all of it is undone, or why nothing of it can be.
    pub(crate) fn inverse(&self, inverse: &Inverse<'_>) -> Result<RepositoryInverse, ToolError> {
        let (objects, metadata): (Vec<&Change>, Vec<&Change>) =
            self.changes.iter().copied().partition(|change| self.is_lasting_object(change));
        let mut undone = RepositoryInverse::default();
        let mut returning = BTreeSet::new();
        for change in objects {
            match (&change.before, inverse(change)) {
                (Some(_), Ok(back)) => {
                    returning.extend(loose_object(&change.place));
                    undone.back.push(back);
                }
                // Objects never change, so one that is there again needs nothing.
                (Some(_), Err(_)) => {}
                (None, _) => undone.kept_objects += usize::from(is_file(&change.after)),
            }
        }
        for change in metadata {
            let back = inverse(change).or_else(|error| self.with_refreshed_index(change, error));
            match back {
                // Git minds neither an empty directory nor one that is there again.
                Ok(_) if self.is_lasting_directory(change) => {}
                Err(_) if is_directory(&change.before) => {}
                Ok(back) => undone.back.push(back),
                Err(error) => return Err(self.refusal(&error.message)),
            }
            self.check_objects(change, &returning)?;
        }
        if self.was_created(self.directory) {
            self.check_nothing_comes_back()?;
            self.check_nothing_was_added()?;
        }
        Ok(undone)
    }

    /// A repository that the changes created goes as a whole. What others added to it and the changes removed, such as by undoing a
    /// commit, would come back in no repository.
    fn check_nothing_comes_back(&self) -> Result<(), ToolError> {
        match self.changes.iter().find(|change| change.before.is_some() && self.directory.covers(&change.place)) {
            None => Ok(()),
            Some(other) => {
                Err(self
                    .refusal(&format!("`{}` wasn't made by what is undone, and would come back alone.", other.path)))
            }
        }
    }

    /// A repository that the changes created goes as a whole. What others added to it since, such as a commit, would be left in no
    /// repository.
    fn check_nothing_was_added(&self) -> Result<(), ToolError> {
        let made: BTreeSet<&WorkspacePath> = self.changes.iter().map(|change| &change.place).collect();
        for directory in made.iter().filter(|place| self.directory.covers(place)) {
            if !is_directory(&self.hands.state_at(directory)?) {
                continue;
            }
            if let Some(added) = self.hands.entries_at(directory)?.iter().find(|entry| !made.contains(&entry.place)) {
                return Err(self.refusal(&format!("`{}` was added since.", self.hands.shown(&added.place))));
            }
        }
        Ok(())
    }

    /// Whether it is an object of a repository that was there before.
    fn is_lasting_object(&self, change: &Change) -> bool {
        repository_of_object(&change.place).is_some_and(|repository| !self.was_created(&repository))
    }

    /// Whether it is a directory that was created in a repository that was there before.
    fn is_lasting_directory(&self, change: &Change) -> bool {
        let is_created = change.before.is_none() && is_directory(&change.after);
        is_created && !self.was_created(self.directory)
    }

    /// Whether these changes created a directory, or one that it is in.
    fn was_created(&self, directory: &WorkspacePath) -> bool {
        let creates = |change: &&Change| change.before.is_none() && is_directory(&change.after);
        self.changes.iter().copied().filter(creates).any(|change| change.place.covers(directory))
    }

    /// `git status` writes the index anew to cache what it learned about files; that alone is no change.
    fn with_refreshed_index(&self, change: &Change, error: ToolError) -> Result<Change, ToolError> {
        let refreshed = || -> Option<Change> {
            let after = change.after.as_ref().filter(|_| is_index(&change.place.path))?;
            let before = self.hands.state_at(&change.place).ok()??;
            let now = self.hands.content_at(&change.place, MAX_INDEX_BYTES).ok()??;
            let left = self.contents.get(&after.sha256).ok()??;
            let is_same = GitIndex::decode(&now.bytes)? == GitIndex::decode(&left)?;
            is_same.then(|| Change { before: Some(before), after: change.before.clone(), ..change.clone() })
        };
        refreshed().ok_or(error)
    }

    /// What goes back must not refer to objects that are gone, as after `git gc`.
    fn check_objects(&self, change: &Change, returning: &BTreeSet<ObjectId>) -> Result<(), ToolError> {
        let Some(before) = change.before.as_ref().filter(|before| before.is_file()) else { return Ok(()) };
        let inside = inside(self.directory, &change.place);
        let Some(content) = self.contents.get(&before.sha256)? else { return Ok(()) };
        let ids = referred_objects(inside, &content).into_iter().filter(|id| !returning.contains(id));
        match GitObjects::in_directory(self.path.clone()).missing(inside, ids) {
            Some(id) => Err(self.refusal(&format!("`{inside}` would refer to the object {id}, which is gone."))),
            None => Ok(()),
        }
    }

    fn refusal(&self, reason: &str) -> ToolError {
        let shown = self.hands.shown(self.directory);
        let message = format!(
            "{reason} Refs, index, HEAD and logs of the repository `{shown}` go back together or not at all, so they stay."
        );
        ToolError::new(ErrorCode::StaleFile, message)
    }
}

/// The path of a file in a git directory.
fn inside<'a>(directory: &WorkspacePath, place: &'a WorkspacePath) -> &'a str {
    place.path.strip_prefix(&directory.path).unwrap_or(&place.path).trim_start_matches('/')
}

fn is_file(state: &Option<FileState>) -> bool {
    state.as_ref().is_some_and(FileState::is_file)
}

fn is_directory(state: &Option<FileState>) -> bool {
    state.as_ref().is_some_and(FileState::is_directory)
}

fn is_index(path: &str) -> bool {
    path.rsplit('/').next() == Some("index")
}

/// The objects that a file of git refers to: an index, a ref, or a list of refs.
fn referred_objects(inside: &str, content: &Blob) -> Vec<ObjectId> {
    if is_index(inside) {
        return GitIndex::decode(content).map(|index| index.objects().collect()).unwrap_or_default();
    }
    let name = inside.rsplit('/').next().unwrap_or(inside);
    let has_refs =
        inside.starts_with("refs/") || inside.contains("/refs/") || name == "packed-refs" || name.ends_with("HEAD");
    if !has_refs {
        return Vec::new();
    }
    let lines = content.split(|byte| *byte == b'\n');
    // A line begins with the id, in `packed-refs` after `^` for what a tag leads to.
    let first_word = |line: &[u8]| -> Option<ObjectId> {
        let line = line.strip_prefix(b"^").unwrap_or(line);
        let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
        ObjectId::from_hex(&line[..end]).ok()
    };
    lines.filter_map(first_word).collect()
}
