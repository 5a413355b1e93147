//! The check of an undo: every path goes back exactly, or stays and is named with a reason.

use std::collections::BTreeSet;

use crate::checks::{is_git_bookkeeping, is_implied};
use crate::history::{History, Undone};
use crate::hold;
use crate::reply::{Names, Reply, texts};
use crate::setting::Setting;
use crate::tree::{Node, Tree, diff};
use crate::tree_path::TreePath;
use crate::violation::Violation;

/// An undo of some calls, and what it made of the workspace.
pub(crate) struct UndoCheck<'a> {
    pub(crate) setting: Setting,
    pub(crate) history: &'a History,
    pub(crate) calls: &'a BTreeSet<String>,
    pub(crate) reply: &'a Reply,
    pub(crate) before: &'a Tree,
    pub(crate) after: &'a Tree,
}

impl UndoCheck<'_> {
    pub(crate) fn check(&self) -> Result<(), Violation> {
        let touched = self.history.changed_by(self.calls);
        let changed = diff(self.before, self.after);
        let raw = &self.reply.raw;
        let names = Names::of(self.before.keys().chain(self.after.keys()).chain(&touched));
        let undone = names.find_all(&texts(&self.reply.payload["undone"]));
        let refused = self.reply.refused();
        if let Some((code, message)) = &self.reply.error {
            hold!(changed.is_empty(), UndoIsExact, "A refused undo changed something: {changed:?}; {raw}");
            let is_excused = code != "internal" && (code != "io_error" || self.is_permission(message));
            hold!(is_excused, UndoIsExact, "An undo fails ({code}): {message}; {raw}");
        }
        for path in changed.keys() {
            hold!(
                undone.contains(path) || is_implied(path, &undone, self.before, self.after),
                UndoIsExact,
                "An undo changed what it doesn't name: {path:?} of {changed:?}; {raw}"
            );
        }
        self.check_heads()?;
        for path in &touched {
            match self.history.undone(path, self.calls, self.before) {
                Undone::Unknown => {}
                _ if path.0.windows(5).any(|part| part == b".git/") || is_git_bookkeeping(path) => {}
                Undone::Stays => {
                    // A directory that is gone is made again for what goes back into it.
                    let stays = Node::same(self.before.get(path), self.after.get(path))
                        || self.before.get(path).is_none() && is_implied(path, &undone, self.before, self.after);
                    hold!(stays, UndoIsExact, "An undo took away what others did: {path:?} of {changed:?}; {raw}");
                }
                Undone::Back(back) => self.check_back(path, back.as_ref(), undone.contains(path), &names, &refused)?,
            }
        }
        Ok(())
    }

    /// A repository that the calls made goes as a whole, or stays: without HEAD, what others committed is in no repository.
    fn check_heads(&self) -> Result<(), Violation> {
        let is_gone = |head: &&TreePath| head.name() == b"HEAD" && !self.after.contains_key(*head);
        for git in self.before.keys().filter(is_gone).filter_map(TreePath::parent).filter(|git| git.name() == b".git") {
            let is_theirs = |call: &Option<String>| call.as_ref().is_some_and(|call| self.calls.contains(call));
            let is_made = self.history.of(&git).iter().any(|change| is_theirs(&change.call) && change.before.is_none());
            let left = self.after.iter().find(|(path, node)| path.is_in(&git) && !node.is_directory());
            hold!(
                !is_made || left.is_none(),
                GitIsIntact,
                "An undo took HEAD from a repository and left the rest: {left:?}; {}",
                self.reply.raw
            );
        }
        Ok(())
    }

    /// A path that is as the calls left it has to go back.
    fn check_back(
        &self,
        path: &TreePath,
        back: Option<&Node>,
        is_undone: bool,
        names: &Names<'_>,
        refused: &[(String, String)],
    ) -> Result<(), Violation> {
        let (now, then, raw) = (self.before.get(path), self.after.get(path), &self.reply.raw);
        let expected = self.with_newer_mode(path, back);
        if Node::same(then, expected.as_ref()) {
            return Ok(());
        }
        hold!(
            !is_undone,
            UndoIsExact,
            "An undo isn't exact: {path:?} is {then:?} instead of {expected:?}, was {now:?}; {raw}"
        );
        let is_about = |(written, _): &&(String, String)| {
            names.find(written).is_some_and(|one| one == path || path.is_in(one)) || written == "." && path.0.is_empty()
        };
        // The nearest one says why: a directory may stay for another reason than what is in it.
        let reason = refused.iter().filter(is_about).max_by_key(|(written, _)| written.len());
        let whole = self.reply.error.as_ref().filter(|_| refused.is_empty()).map(|(_, message)| message);
        let reason = reason.map(|(_, reason)| reason).or(whole);
        let Some(reason) = reason else {
            hold!(
                self.is_blocked(path),
                UndoIsExact,
                "An undo left something and doesn't say so: {path:?} is {then:?} instead of {expected:?}; {raw}"
            );
            return Ok(());
        };
        let is_excused = self.is_blocked(path)
            || self.is_permission(reason)
            || reason.contains("has changed since") && self.is_of_metadata(path, back)
            || reason.contains("other names") && self.is_shared(path)
            || reason.contains("quota") && self.setting.has_small_quota;
        hold!(
            is_excused,
            NothingIsLost,
            "An undo is refused without need: {path:?} is {then:?}, was {expected:?}, `{reason}`; {raw}"
        );
        Ok(())
    }

    /// What it was, with the mode that somebody gave it since.
    fn with_newer_mode(&self, path: &TreePath, back: Option<&Node>) -> Option<Node> {
        let back = back?.clone();
        let is_theirs = |call: &Option<String>| call.as_ref().is_some_and(|call| self.calls.contains(call));
        let left = self.history.of(path).iter().rfind(|change| is_theirs(&change.call))?.after.as_ref();
        let now = self.before.get(path);
        match (left, now) {
            (Some(left), Some(now)) if left.mode != now.mode && back.is_of_kind(now) => {
                Some(Node { mode: now.mode, ..back })
            }
            _ => Some(back),
        }
    }

    /// Whether the calls changed only the mode or the time of a path, and somebody set that again since.
    fn is_of_metadata(&self, path: &TreePath, back: Option<&Node>) -> bool {
        let is_theirs = |call: &Option<String>| call.as_ref().is_some_and(|call| self.calls.contains(call));
        let left = self.history.of(path).iter().rfind(|change| is_theirs(&change.call));
        left.is_some_and(|left| {
            Node::same_content(back, left.after.as_ref()) && !Node::same(left.after.as_ref(), self.before.get(path))
        })
    }

    /// Whether a file has several names, so that its mode and its time aren't those of this one alone.
    fn is_shared(&self, path: &TreePath) -> bool {
        let is_other_name = |node: &Node| node.hard_link_to.as_ref() == Some(path);
        self.before.get(path).is_some_and(|node| node.hard_link_to.is_some()) || self.before.values().any(is_other_name)
    }

    /// Whether something else is in the way: what is in a directory stays, or something that isn't a directory is
    /// above.
    fn is_blocked(&self, path: &TreePath) -> bool {
        let is_above = |tree: &Tree| {
            let mut above = path.parent();
            while let Some(directory) = above {
                if tree.get(&directory).is_some_and(|node| !node.is_directory()) {
                    return true;
                }
                above = directory.parent();
            }
            false
        };
        let has_something = self.after.keys().any(|other| other.is_in(path));
        has_something || is_above(self.after)
    }

    fn is_permission(&self, message: &str) -> bool {
        !self.setting.is_root && message.contains("Permission denied")
    }
}
