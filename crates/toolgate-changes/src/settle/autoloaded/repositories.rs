//! Directories that git takes for a repository, whatever they are called, and what it would obey in them. A command need not make
//! all of one: what lies there already counts as well.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_contract::{Change, FileContent, FileState, Files, WorkspacePath};
use toolgate_policy::{AutoloadedKind, autoloaded, suspicious_in_git_config, suspicious_in_git_todo};

use super::MOST;

/// What git looks at to tell whether a directory is a repository.
const SIGNS: [&str; 4] = ["HEAD", "refs", "objects", "commondir"];
/// What it obeys in one, beside what is in the directories below.
const FILES: [&str; 4] = ["config", "config.worktree", "commondir", "rebase-merge/git-rebase-todo"];
/// Directories of which it obeys what is in them.
const DIRECTORIES: [&str; 3] = ["hooks", "remotes", "branches"];

/// The repositories that a command changed something in.
#[derive(Debug, Default)]
pub(super) struct ChangedRepositories {
    all: BTreeSet<WorkspacePath>,
    /// Those that came to be one, though something that git would obey lay there before: what that is.
    grown: BTreeMap<WorkspacePath, String>,
}

impl ChangedRepositories {
    pub(super) fn new<'c>(changes: impl Iterator<Item = &'c Change>, files: &dyn Files) -> Self {
        let sides = WorkspaceSides { changes: changes.map(|change| (&change.place, change)).collect(), files };
        let made = sides.changes.values().filter(|change| change.after.is_some());
        let directories: BTreeSet<WorkspacePath> = made.flat_map(|change| above(&change.place)).collect();
        let all: BTreeSet<WorkspacePath> =
            directories.into_iter().filter(|directory| sides.is_repository(directory, WorkspaceSide::New)).collect();
        let new = all.iter().filter(|directory| !sides.is_repository(directory, WorkspaceSide::Old));
        let grown = new.filter_map(|directory| Some((directory.clone(), sides.lies_in(directory)?))).collect();
        Self { all, grown }
    }

    pub(super) fn contain(&self, directory: &WorkspacePath) -> bool {
        self.all.contains(directory)
    }

    /// The path, and how it would be called in a repository with the usual name, for every one that it lies in: one may
    /// lie in another, to hide it.
    pub(super) fn names(&self, place: &WorkspacePath) -> Vec<String> {
        let within = above(place).filter(|directory| self.all.contains(directory));
        let named = within.map(|directory| match directory.path.as_str() {
            "" => format!(".git/{}", place.path),
            path => format!("{path}/.git{}", &place.path[path.len()..]),
        });
        std::iter::once(place.path.clone()).chain(named).collect()
    }

    /// What git would obey because of this change, if it makes a repository of a directory where that lay already.
    pub(super) fn completed_by(&self, place: &WorkspacePath) -> Option<&str> {
        let directory = above(place).next_back().filter(|_| SIGNS.contains(&name(place)))?;
        self.grown.get(&directory).map(String::as_str)
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

    /// What is at a place that the command left alone.
    fn state(&self, place: &WorkspacePath) -> Option<FileState> {
        let node = self.files.node(place, false).ok().flatten();
        node.map(|node| node.state).filter(|_| !self.changes.contains_key(place))
    }

    /// Git asks for a little more; what passes here and not there is no harm.
    fn is_repository(&self, directory: &WorkspacePath, side: WorkspaceSide) -> bool {
        let has = |name: &str| self.has(side, &inside(directory, name));
        has("HEAD") && (has("commondir") || has("refs") && has("objects"))
    }

    /// Something in the directory that the command left alone, and that git would obey.
    fn lies_in(&self, directory: &WorkspacePath) -> Option<String> {
        let is_obeyed = |name: &&str| {
            let place = inside(directory, name);
            self.state(&place).is_some_and(|state| !state.is_file() || self.is_odd(name, &place))
        };
        let file = FILES.into_iter().find(is_obeyed).map(str::to_owned);
        file.or_else(|| DIRECTORIES.into_iter().find_map(|name| self.in_directory(directory, name)))
    }

    fn is_odd(&self, name: &str, place: &WorkspacePath) -> bool {
        let content: Option<FileContent> = self.files.content(place, MOST).ok().flatten();
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

/// Every directory that a place lies in, from the root down.
pub(super) fn above(place: &WorkspacePath) -> impl DoubleEndedIterator<Item = WorkspacePath> {
    let ends = place.path.match_indices('/').map(|(at, _)| at);
    let paths = std::iter::once("").chain(ends.map(|at| &place.path[..at]));
    paths.map(|path| WorkspacePath { root: place.root, path: path.to_owned() })
}

fn inside(directory: &WorkspacePath, name: &str) -> WorkspacePath {
    let path = if directory.path.is_empty() { name.to_owned() } else { format!("{}/{name}", directory.path) };
    WorkspacePath { root: directory.root, path }
}

fn name(place: &WorkspacePath) -> &str {
    place.path.rsplit('/').next().unwrap_or_default()
}
