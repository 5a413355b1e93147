//! Repositories that a command removed. Tools may not remove git's hooks and configuration, but a repository that goes together with
//! its worktree runs nothing any more. So a git directory is removed as a whole, or stays as a whole: a half of one is of no use to
//! anybody.

use std::collections::BTreeSet;

use toolgate_contract::{Change, Files, WorkspacePath};

/// The name of a repository's directory in its worktree, or of the file that names the directory.
const GIT_DIRECTORY: &str = ".git";
/// Where a repository keeps those of its submodules and what belongs to its linked worktrees.
const INNER_DIRECTORIES: [&str; 2] = ["modules", "worktrees"];

/// Which git directories a command removed, and whether they may go.
#[derive(Debug, Default)]
pub(crate) struct RemovedRepositories {
    /// Git directories, and files that name one, that may go with everything in them.
    go: Vec<WorkspacePath>,
    /// Git directories that stay with everything in them.
    stay: Vec<WorkspacePath>,
}

impl RemovedRepositories {
    /// Finds them among the changes of a command. `is_denied` says which removals policy doesn't allow. `in_place` says that the
    /// command met mounts over hooks and configuration, which it couldn't remove.
    pub(crate) fn new<'c>(
        changes: impl Iterator<Item = &'c Change> + Clone,
        is_denied: &dyn Fn(&Change) -> bool,
        files: &dyn Files,
        in_place: bool,
    ) -> Self {
        let is_removed = |change: &&Change| change.before.is_some() && change.after.is_none();
        let removed: BTreeSet<&WorkspacePath> =
            changes.clone().filter(is_removed).map(|change| &change.place).collect();
        let mut found = Self::default();
        let candidates: Vec<(WorkspacePath, bool)> = removed.iter().filter_map(|place| repository_of(place)).collect();
        if candidates.is_empty() {
            return found;
        }
        // What policy keeps in a worktree keeps its repository as well.
        let may_go = |change: &&Change| is_in_git_directory(&change.place) || !is_denied(change);
        let worktrees = EmptiedWorktrees {
            removed: changes.clone().filter(is_removed).filter(may_go).map(|change| &change.place).collect(),
            created: changes.filter(|change| change.after.is_some()).map(|change| &change.place).collect(),
            files,
        };
        let existed = |place: &WorkspacePath| {
            removed.contains(place) || files.node(place, false).is_ok_and(|node| node.is_some())
        };
        for (directory, is_link) in candidates {
            let is_repository = is_link || ["objects", "commondir"].iter().any(|name| existed(&directory.join(name)));
            let goes = match directory.path.rsplit('/').next() {
                Some(GIT_DIRECTORY) => worktrees.is_emptied(&parent(&directory)),
                _ => !in_place && removed.contains(&directory),
            };
            match (is_repository, goes) {
                (false, _) => {}
                (true, true) => found.go.push(directory),
                (true, false) => found.stay.push(directory),
            }
        }
        found
    }

    /// Whether a removed path belongs to a repository that goes as a whole.
    pub(crate) fn goes(&self, change: &Change) -> bool {
        change.after.is_none() && covered(&self.go, change) && !self.stays(change)
    }

    /// Whether a removed path belongs to a repository that stays as a whole.
    pub(crate) fn stays(&self, change: &Change) -> bool {
        change.after.is_none() && covered(&self.stay, change)
    }
}

fn covered(directories: &[WorkspacePath], change: &Change) -> bool {
    directories.iter().any(|directory| directory.covers(&change.place))
}

/// The git directory that loses its `HEAD` when a path is removed, or the removed file that names a git directory, which is the
/// second value then.
fn repository_of(place: &WorkspacePath) -> Option<(WorkspacePath, bool)> {
    let (directory, name) = place.path.rsplit_once('/').unwrap_or(("", &place.path));
    if name == GIT_DIRECTORY {
        return Some((place.clone(), true));
    }
    let names: Vec<&str> = directory.split('/').collect();
    let at = names.iter().position(|name| *name == GIT_DIRECTORY)?;
    let is_repository = at + 1 == names.len() || INNER_DIRECTORIES.contains(&names[at + 1]);
    (name == "HEAD" && is_repository).then(|| (WorkspacePath { root: place.root, path: directory.to_owned() }, false))
}

fn is_in_git_directory(place: &WorkspacePath) -> bool {
    place.path.split('/').any(|name| name == GIT_DIRECTORY)
}

/// Tells which worktrees have nothing left in them.
struct EmptiedWorktrees<'a> {
    removed: BTreeSet<&'a WorkspacePath>,
    created: BTreeSet<&'a WorkspacePath>,
    files: &'a dyn Files,
}

impl EmptiedWorktrees<'_> {
    fn is_emptied(&self, worktree: &WorkspacePath) -> bool {
        if worktree.path.is_empty() {
            return false;
        }
        let entries = match self.files.node(worktree, false) {
            Ok(None) => Vec::new(),
            Ok(Some(_)) => match self.files.entries(worktree) {
                Ok(entries) => entries,
                Err(_) => return false,
            },
            Err(_) => return false,
        };
        let is_new_there = |place: &&&WorkspacePath| parent(place) == *worktree;
        entries.iter().all(|entry| self.removed.contains(&entry.place))
            && !self.created.iter().any(|place| is_new_there(&place))
    }
}

/// The directory that holds a path; the root for what is directly in it.
fn parent(place: &WorkspacePath) -> WorkspacePath {
    let path = place.path.rsplit_once('/').map_or("", |(parent, _)| parent);
    WorkspacePath { root: place.root, path: path.to_owned() }
}
