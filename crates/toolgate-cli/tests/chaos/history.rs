//! Who changed what: every change of every path, in order, with the call that made it. From this follows what an undo
//! has to bring back.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Node, Tree, TreeDiff};
use crate::tree_path::TreePath;

/// All changes of a run of operations.
#[derive(Default)]
pub(crate) struct History {
    paths: BTreeMap<TreePath, Vec<PathChange>>,
}

/// One change of one path.
#[derive(Debug, Clone)]
pub(crate) struct PathChange {
    /// The call that made it; none for a person.
    pub(crate) call: Option<String>,
    pub(crate) before: Option<Node>,
    pub(crate) after: Option<Node>,
    /// Whether nobody can tell whose it was: a person's, while a command worked in place.
    pub(crate) is_ambiguous: bool,
}

/// What an undo may make of a path.
#[derive(Debug, PartialEq)]
pub(crate) enum Undone {
    /// It has changed since, so it stays.
    Stays,
    /// It goes back to exactly this.
    Back(Option<Node>),
    /// Either of both, or any earlier state: whose change it was can't be known.
    Unknown,
}

impl History {
    pub(crate) fn add(&mut self, call: Option<&str>, changes: &TreeDiff, is_ambiguous: bool) {
        for (path, (before, after)) in changes {
            let change = PathChange {
                call: call.map(str::to_owned),
                before: before.clone(),
                after: after.clone(),
                is_ambiguous,
            };
            self.paths.entry(path.clone()).or_default().push(change);
        }
    }

    pub(crate) fn of(&self, path: &TreePath) -> &[PathChange] {
        self.paths.get(path).map_or(&[], Vec::as_slice)
    }

    /// Every path that ever changed.
    pub(crate) fn all(&self) -> impl Iterator<Item = &TreePath> {
        self.paths.keys()
    }

    /// The paths that these calls changed.
    pub(crate) fn changed_by(&self, calls: &BTreeSet<String>) -> BTreeSet<TreePath> {
        let is_theirs = |change: &PathChange| change.call.as_ref().is_some_and(|call| calls.contains(call));
        let theirs = self.paths.iter().filter(|(_, changes)| changes.iter().any(is_theirs));
        theirs.map(|(path, _)| path.clone()).collect()
    }

    /// What an undo of these calls has to make of a path: where others changed its content in between, only what came after
    /// them goes back. Where they changed it and changed it back, nothing came in between; a mode that they set stays.
    pub(crate) fn undone(&self, path: &TreePath, calls: &BTreeSet<String>, now: &Tree) -> Undone {
        let changes = self.of(path);
        let is_theirs = |change: &&PathChange| change.call.as_ref().is_some_and(|call| calls.contains(call));
        // A mode that somebody changed since stays, and hinders nobody.
        let is_mode_only = |change: &PathChange| Node::same_content(change.before.as_ref(), change.after.as_ref());
        let Some(last) = changes.iter().rposition(|change| is_theirs(&change)) else { return Undone::Stays };
        if changes.iter().any(|change| change.is_ambiguous) {
            return Undone::Unknown;
        }
        if !Node::same_content(now.get(path), changes[last].after.as_ref()) {
            return Undone::Stays;
        }
        if changes[last + 1..].iter().any(|change| !is_mode_only(change)) {
            return Undone::Unknown;
        }
        let mut theirs = changes[..=last].iter().filter(is_theirs);
        let Some(first) = theirs.next() else { return Undone::Stays };
        let (mut back, mut left) = (first.before.clone(), &first.after);
        for change in theirs {
            match (&mut back, left, &change.before) {
                _ if !Node::same_content(left.as_ref(), change.before.as_ref()) => back.clone_from(&change.before),
                (Some(back), Some(left), Some(found)) if left.mode != found.mode && back.is_of_kind(found) => {
                    back.mode = found.mode;
                }
                _ => {}
            }
            left = &change.after;
        }
        Undone::Back(back)
    }
}
