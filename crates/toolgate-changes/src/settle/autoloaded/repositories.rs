//! Directories that git treats as a repository, whatever they are called, and the files that it would load from them. A
//! command may create only a part of a repository: files that exist already count as well.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_contract::{Change, FileContent, FileState, Files, WorkspacePath};
use toolgate_policy::{AutoloadedKind, autoloaded, suspicious_in_git_config, suspicious_in_git_todo};

use super::MAX_BYTES;

/// The files by which git recognizes a repository.
const SIGNS: [&str; 4] = ["HEAD", "refs", "objects", "commondir"];
/// Files that git loads from a repository, besides those in [`DIRECTORIES`].
const FILES: [&str; 4] = ["config", "config.worktree", "commondir", "rebase-merge/git-rebase-todo"];
/// Directories whose files git loads.
const DIRECTORIES: [&str; 3] = ["hooks", "remotes", "branches"];

/// The repositories in which a command changed something.
#[derive(Debug, Default)]
pub(super) struct ChangedRepositories {
    all: BTreeSet<WorkspacePath>,
    /// Directories that became repositories although they contained a file that git would load: that file.
    completed: BTreeMap<WorkspacePath, String>,
}

impl ChangedRepositories {
    pub(super) fn new<'c>(changes: impl Iterator<Item = &'c Change>, files: &dyn Files) -> Self {
        let sides = WorkspaceSides { changes: changes.map(|change| (&change.place, change)).collect(), files };
        let made = sides.changes.values().filter(|change| change.after.is_some());
        let directories: BTreeSet<WorkspacePath> = made.flat_map(|change| change.place.ancestors()).collect();
        let all: BTreeSet<WorkspacePath> =
            directories.into_iter().filter(|directory| sides.is_repository(directory, WorkspaceSide::New)).collect();
        let new = all.iter().filter(|directory| !sides.is_repository(directory, WorkspaceSide::Old));
        let completed =
            new.filter_map(|directory| Some((directory.clone(), sides.existing_autoloaded(directory)?))).collect();
        Self { all, completed }
    }

    pub(super) fn contain(&self, directory: &WorkspacePath) -> bool {
        self.all.contains(directory)
    }

    /// The path, and for each repository that contains it the path it would have if that repository were called `.git`.
    /// Repositories can be nested, to hide one.
    pub(super) fn names(&self, place: &WorkspacePath) -> Vec<String> {
        let within = place.ancestors().filter(|directory| self.all.contains(directory));
        let named = within.map(|directory| match directory.path.as_str() {
            "" => format!(".git/{}", place.path),
            path => format!("{path}/.git{}", &place.path[path.len()..]),
        });
        std::iter::once(place.path.clone()).chain(named).collect()
    }

    /// The existing file that git would load because of this change, if the change turns a directory into a repository.
    pub(super) fn completed_by(&self, place: &WorkspacePath) -> Option<&str> {
        let directory = place.ancestors().next_back().filter(|_| SIGNS.contains(&name(place)))?;
        self.completed.get(&directory).map(String::as_str)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum WorkspaceSide {
    Old,
    New,
}

/// The workspace before the command and after it.
struct WorkspaceSides<'a> {
    changes: BTreeMap<&'a WorkspacePath, &'a Change>,
    files: &'a dyn Files,
}

impl WorkspaceSides<'_> {
    fn has(&self, side: WorkspaceSide, place: &WorkspacePath) -> bool {
        match (self.changes.get(place), side) {
            (Some(change), WorkspaceSide::Old) => change.before.is_some(),
            (Some(change), WorkspaceSide::New) => change.after.is_some(),
            (None, _) => self.state(place).is_some(),
        }
    }

    /// The state of a path that the command didn't change.
    fn state(&self, place: &WorkspacePath) -> Option<FileState> {
        let node = self.files.node(place, false).ok().flatten();
        node.map(|node| node.state).filter(|_| !self.changes.contains_key(place))
    }

    /// Git checks a little more; a directory that passes here and not there does no harm.
    fn is_repository(&self, directory: &WorkspacePath, side: WorkspaceSide) -> bool {
        let has = |name: &str| self.has(side, &inside(directory, name));
        has("HEAD") && (has("commondir") || has("refs") && has("objects"))
    }

    /// A file in the directory that the command didn't change and that git would load.
    fn existing_autoloaded(&self, directory: &WorkspacePath) -> Option<String> {
        let is_loaded = |name: &&str| {
            let place = inside(directory, name);
            self.state(&place).is_some_and(|state| !state.is_file() || self.is_suspicious(name, &place))
        };
        let file = FILES.into_iter().find(is_loaded).map(str::to_owned);
        file.or_else(|| DIRECTORIES.into_iter().find_map(|name| self.in_directory(directory, name)))
    }

    fn is_suspicious(&self, name: &str, place: &WorkspacePath) -> bool {
        let content: Option<FileContent> = self.files.content(place, MAX_BYTES).ok().flatten();
        let Some(FileContent { bytes, .. }) = content else { return true };
        match autoloaded(&format!(".git/{name}")).map(|autoloaded| autoloaded.kind) {
            Some(AutoloadedKind::GitConfig) => suspicious_in_git_config(&bytes, None).is_some(),
            Some(AutoloadedKind::GitTodo) => suspicious_in_git_todo(&bytes).is_some(),
            _ => true,
        }
    }

    fn in_directory(&self, directory: &WorkspacePath, name: &str) -> Option<String> {
        let place = inside(directory, name);
        match self.state(&place) {
            Some(state) if !state.is_directory() => return Some(name.to_owned()),
            _ => {}
        }
        let entries = self.files.entries(&place).unwrap_or_default().into_iter();
        let left_alone = entries.filter(|entry| !self.changes.contains_key(&entry.place));
        let mut paths = left_alone.map(|entry| format!("{name}/{}", entry.name));
        paths.find(|path| autoloaded(&format!(".git/{path}")).is_some())
    }
}

fn inside(directory: &WorkspacePath, name: &str) -> WorkspacePath {
    let path = if directory.path.is_empty() { name.to_owned() } else { format!("{}/{name}", directory.path) };
    WorkspacePath { root: directory.root, path }
}

fn name(place: &WorkspacePath) -> &str {
    place.path.rsplit('/').next().unwrap_or_default()
}
