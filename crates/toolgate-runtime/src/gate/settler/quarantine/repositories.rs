//! Folders that git takes for a repository, whatever they are called, and what it would obey in them. A command need not make
//! all of one: what lies there already counts as well.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_contract::{Change, Content, FileState, Files, Place};
use toolgate_policy::{ObeyedKind, obeyed, odd_in_git_config, odd_in_git_todo};

use super::MOST;

/// What git looks at to tell whether a folder is a repository.
const SIGNS: [&str; 4] = ["HEAD", "refs", "objects", "commondir"];
/// What it obeys in one, beside what is in the folders below.
const FILES: [&str; 4] = ["config", "config.worktree", "commondir", "rebase-merge/git-rebase-todo"];
/// Folders of which it obeys what is in them.
const FOLDERS: [&str; 3] = ["hooks", "remotes", "branches"];

/// The repositories that a command changed something in.
#[derive(Debug, Default)]
pub(super) struct Repositories {
    all: BTreeSet<Place>,
    /// Those that came to be one, though something that git would obey lay there before: what that is.
    grown: BTreeMap<Place, String>,
}

impl Repositories {
    pub(super) fn new<'c>(changes: impl Iterator<Item = &'c Change>, files: &dyn Files) -> Self {
        let sides = Sides { changes: changes.map(|change| (&change.place, change)).collect(), files };
        let made = sides.changes.values().filter(|change| change.after.is_some());
        let folders: BTreeSet<Place> = made.flat_map(|change| above(&change.place)).collect();
        let all: BTreeSet<Place> =
            folders.into_iter().filter(|folder| sides.is_repository(folder, Side::New)).collect();
        let new = all.iter().filter(|folder| !sides.is_repository(folder, Side::Old));
        let grown = new.filter_map(|folder| Some((folder.clone(), sides.lies_in(folder)?))).collect();
        Self { all, grown }
    }

    pub(super) fn contain(&self, folder: &Place) -> bool {
        self.all.contains(folder)
    }

    /// The path, and how it would be called in a repository with the usual name, for every one that it lies in: one may
    /// lie in another, to hide it.
    pub(super) fn names(&self, place: &Place) -> Vec<String> {
        let within = above(place).filter(|folder| self.all.contains(folder));
        let named = within.map(|folder| match folder.path.as_str() {
            "" => format!(".git/{}", place.path),
            path => format!("{path}/.git{}", &place.path[path.len()..]),
        });
        std::iter::once(place.path.clone()).chain(named).collect()
    }

    /// What git would obey because of this change, if it makes a repository of a folder where that lay already.
    pub(super) fn grown_by(&self, place: &Place) -> Option<&str> {
        let folder = above(place).next_back().filter(|_| SIGNS.contains(&name(place)))?;
        self.grown.get(&folder).map(String::as_str)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Old,
    New,
}

/// The workspace before the command and after it.
struct Sides<'a> {
    changes: BTreeMap<&'a Place, &'a Change>,
    files: &'a dyn Files,
}

impl Sides<'_> {
    fn has(&self, side: Side, place: &Place) -> bool {
        match (self.changes.get(place), side) {
            (Some(change), Side::Old) => change.before.is_some(),
            (Some(change), Side::New) => change.after.is_some(),
            (None, _) => self.state(place).is_some(),
        }
    }

    /// What is at a place that the command left alone.
    fn state(&self, place: &Place) -> Option<FileState> {
        let node = self.files.node(place, false).ok().flatten();
        node.map(|node| node.state).filter(|_| !self.changes.contains_key(place))
    }

    /// Git asks for a little more; what passes here and not there is no harm.
    fn is_repository(&self, folder: &Place, side: Side) -> bool {
        let has = |name: &str| self.has(side, &inside(folder, name));
        has("HEAD") && (has("commondir") || has("refs") && has("objects"))
    }

    /// Something in the folder that the command left alone, and that git would obey.
    fn lies_in(&self, folder: &Place) -> Option<String> {
        let is_obeyed = |name: &&str| {
            let place = inside(folder, name);
            self.state(&place).is_some_and(|state| !state.is_file() || self.is_odd(name, &place))
        };
        let file = FILES.into_iter().find(is_obeyed).map(str::to_owned);
        file.or_else(|| FOLDERS.into_iter().find_map(|name| self.in_folder(folder, name)))
    }

    fn is_odd(&self, name: &str, place: &Place) -> bool {
        let content: Option<Content> = self.files.content(place, MOST).ok().flatten();
        let Some(Content { bytes, .. }) = content else { return true };
        match obeyed(&format!(".git/{name}")).map(|obeyed| obeyed.kind) {
            Some(ObeyedKind::GitConfig) => odd_in_git_config(&bytes, None).is_some(),
            Some(ObeyedKind::GitTodo) => odd_in_git_todo(&bytes).is_some(),
            _ => true,
        }
    }

    fn in_folder(&self, folder: &Place, name: &str) -> Option<String> {
        let place = inside(folder, name);
        match self.state(&place) {
            Some(state) if !state.is_folder() => return Some(name.to_owned()),
            _ => {}
        }
        let entries = self.files.entries(&place).unwrap_or_default().into_iter();
        let left_alone = entries.filter(|entry| !self.changes.contains_key(&entry.place));
        let mut paths = left_alone.map(|entry| format!("{name}/{}", entry.name));
        paths.find(|path| obeyed(&format!(".git/{path}")).is_some())
    }
}

/// Every folder that a place lies in, from the root down.
pub(super) fn above(place: &Place) -> impl DoubleEndedIterator<Item = Place> {
    let ends = place.path.match_indices('/').map(|(at, _)| at);
    let paths = std::iter::once("").chain(ends.map(|at| &place.path[..at]));
    paths.map(|path| Place { root: place.root, path: path.to_owned() })
}

fn inside(folder: &Place, name: &str) -> Place {
    let path = if folder.path.is_empty() { name.to_owned() } else { format!("{}/{name}", folder.path) };
    Place { root: folder.root, path }
}

fn name(place: &Place) -> &str {
    place.path.rsplit('/').next().unwrap_or_default()
}
