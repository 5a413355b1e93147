//! Putting back what a command did straight to the workspace and shouldn't have: it is kept aside first, then the place gets
//! back what was there. Each place is looked at before and afterwards, so whoever goes on after a kill does what is left to
//! do, and one place that can't be put back keeps no other from it.

use std::os::fd::BorrowedFd;

use toolgate_contract::{Change, FileState, QuarantinedPath, ToolError, WorkspacePath};
use toolgate_journal::{CallQuarantine, ChangeIntent, ChangeLock};

use crate::change_log::{ChangeLog, take_in};
use crate::settle::{ChangeSelection, ChangeSelector};

/// What one call's command did straight to the workspace.
pub(crate) struct InPlaceRevert<'a> {
    pub(crate) change_log: &'a ChangeLog,
    pub(crate) selector: &'a ChangeSelector,
    pub(crate) call: &'a str,
    /// Tells this change from others.
    pub(crate) id: &'a str,
}

/// What became of it.
#[derive(Default)]
pub(crate) struct RevertOutcome {
    /// What stays as the command made it.
    pub(crate) stays: Vec<Change>,
    /// The changes that put the rest back; they have to go on record.
    pub(crate) back: Vec<Change>,
    /// What was kept aside of it.
    pub(crate) kept: Vec<QuarantinedPath>,
    /// What there is to tell, the worst first.
    pub(crate) notes: Vec<String>,
}

/// A change that has to go, why, and the change that takes it back.
struct RevertStep {
    change: Change,
    reason: String,
    back: Change,
}

impl InPlaceRevert<'_> {
    /// Puts back what wouldn't have been put in place.
    pub(crate) fn put_back(&self, turn: &ChangeLock, changes: Vec<Change>) -> Result<RevertOutcome, ToolError> {
        let ChangeSelection { chosen, aside, needed, notes, .. } = self.selector.select_in_place(changes);
        let mut done = RevertOutcome { stays: chosen, ..RevertOutcome::default() };
        let ways = self.ways(aside, &mut done);
        let directories: Vec<RevertStep> =
            self.ways(needed.into_iter().map(|change| (change, String::new())).collect(), &mut done);
        if !ways.is_empty() {
            let mut room = self.change_log.room(self.call)?;
            let ways = self.take_in(&mut room, ways, &mut done)?;
            let back: Vec<Change> = directories.iter().chain(&ways).map(|way| way.back.clone()).collect();
            self.arrange(turn, &back)?;
            self.verify_reverted(&mut room, ways, directories, &mut done)?;
        }
        done.notes.extend(notes);
        Ok(done)
    }

    /// Those that can be taken back. What somebody else has made of a place since is theirs.
    fn ways(&self, aside: Vec<(Change, String)>, done: &mut RevertOutcome) -> Vec<RevertStep> {
        let mut ways = Vec::new();
        for (change, reason) in aside {
            match self.change_log.way_back(&change, self.selector.files.as_ref()) {
                Ok(Some(back)) => ways.push(RevertStep { change, reason, back }),
                Ok(None) if self.change_log.can_be_restored(&change) => done.stays.push(change),
                Ok(None) => done.stay(change, &reason, "what was there is more than the quota for undo keeps"),
                Err(error) => done.stay(change, &reason, &error.message),
            }
        }
        ways
    }

    /// Keeps aside what is there. What can't be kept stays: nothing is lost.
    fn take_in(
        &self,
        room: &mut CallQuarantine,
        ways: Vec<RevertStep>,
        done: &mut RevertOutcome,
    ) -> Result<Vec<RevertStep>, ToolError> {
        let mut taken = Vec::new();
        for way in ways {
            let hand = |directory: BorrowedFd<'_>, name: &str| {
                self.selector.files.link_or_copy(&way.change.place, directory, name)
            };
            match take_in(room, &way.change, &way.reason, &hand) {
                Ok(()) => taken.push(way),
                Err(error) => done.stay(way.change, &way.reason, &error.message),
            }
        }
        room.note()?;
        Ok(taken)
    }

    /// All at once; where that fails, one by one.
    fn arrange(&self, turn: &ChangeLock, back: &[Change]) -> Result<(), ToolError> {
        let (files, contents) = (self.selector.files.as_ref(), self.change_log.contents());
        let places: Vec<WorkspacePath> = back.iter().map(|change| change.place.clone()).collect();
        let beside = self.change_log.watched();
        beside.iter().try_for_each(|in_place| in_place.catch_up(Some(&places)))?;
        turn.note(&ChangeIntent { id: self.id.to_owned(), changes: back.to_vec() })?;
        if files.arrange(back, contents, self.id).is_err() {
            files.clear_temporary(&places, self.id)?;
            let (going, coming): (Vec<&Change>, Vec<&Change>) = back.iter().partition(|change| change.after.is_none());
            // What is in a directory goes before the directory, and comes after it.
            for change in going.into_iter().rev().chain(coming) {
                if files.arrange(std::slice::from_ref(change), contents, self.id).is_err() {
                    files.clear_temporary(std::slice::from_ref(&change.place), self.id)?;
                }
            }
        }
        turn.done()?;
        beside.iter().try_for_each(|in_place| in_place.moved_on(&places))
    }

    /// What is back, and what isn't.
    fn verify_reverted(
        &self,
        room: &mut CallQuarantine,
        ways: Vec<RevertStep>,
        directories: Vec<RevertStep>,
        done: &mut RevertOutcome,
    ) -> Result<(), ToolError> {
        let is_back = |way: &RevertStep| {
            let now = self.selector.files.node(&way.back.place, true).map(|node| node.map(|node| node.state));
            now.is_ok_and(|now| FileState::same(now.as_ref(), way.back.after.as_ref()))
        };
        for way in ways {
            if is_back(&way) {
                done.kept.push(QuarantinedPath { path: way.change.path, reason: way.reason });
                done.back.push(way.back);
            } else {
                room.let_go(&way.change.path);
                done.stay(way.change, &way.reason, "it couldn't be put back");
            }
        }
        done.back.extend(directories.into_iter().filter(is_back).map(|way| way.back));
        Ok(room.note()?)
    }
}

impl RevertOutcome {
    /// A change that should go, and stays.
    fn stay(&mut self, change: Change, reason: &str, why: &str) {
        self.notes.push(format!("`{}` stays as it was changed, as {why}. {reason}.", change.path));
        self.stays.push(change);
    }
}
