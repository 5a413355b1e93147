//! Reverts changes that a command made in place but that policy or quarantine doesn't allow: the new content is
//! quarantined first, then the previous content is restored. Each path is checked before and afterwards, so recovery
//! after a kill can continue, and one path that can't be restored doesn't affect the others.

use std::fs::File;
use std::os::fd::BorrowedFd;

use toolgate_contract::{Change, FileState, QuarantinedPath, ToolError, WorkspacePath};
use toolgate_journal::{CallQuarantine, ChangeIntent, ChangeLock};

use crate::change_log::{ChangeLog, add_to_quarantine};
use crate::settle::{ChangeSelection, ChangeSelector};

/// Reverts changes that the command of one call made in place.
pub(crate) struct InPlaceRevert<'a> {
    pub(crate) change_log: &'a ChangeLog,
    pub(crate) selector: &'a ChangeSelector,
    pub(crate) call: &'a str,
    /// Identifies this change; temporary file names contain it.
    pub(crate) id: &'a str,
}

/// The outcome of a revert.
#[derive(Default)]
pub(crate) struct RevertOutcome {
    /// Changes of the command that stay.
    pub(crate) stays: Vec<Change>,
    /// The changes that restored the rest; they have to be recorded.
    pub(crate) restores: Vec<Change>,
    /// The changes that were quarantined.
    pub(crate) quarantined: Vec<QuarantinedPath>,
    /// Messages for the person, the most important first.
    pub(crate) notes: Vec<String>,
}

/// A change to revert, the reason, and the change that restores the previous content.
struct RevertStep {
    change: Change,
    reason: String,
    restore: Change,
}

impl InPlaceRevert<'_> {
    /// Quarantines and reverts every change that wouldn't have been applied.
    pub(crate) fn revert(&self, turn: &ChangeLock, changes: Vec<Change>) -> Result<RevertOutcome, ToolError> {
        let ChangeSelection { chosen, quarantined: rejected, needed, notes, .. } =
            self.selector.select_in_place(changes);
        let mut outcome = RevertOutcome { stays: chosen, ..RevertOutcome::default() };
        let steps = self.revertible(rejected, &mut outcome);
        let directories: Vec<RevertStep> =
            self.revertible(needed.into_iter().map(|change| (change, String::new())).collect(), &mut outcome);
        if !steps.is_empty() {
            let mut quarantine = self.change_log.quarantine_of(self.call)?;
            let steps = self.quarantine(&mut quarantine, steps, &mut outcome)?;
            let restores: Vec<Change> = directories.iter().chain(&steps).map(|step| step.restore.clone()).collect();
            self.restore(turn, &restores)?;
            self.verify_reverted(&mut quarantine, steps, directories, &mut outcome)?;
        }
        if !outcome.quarantined.is_empty() {
            // A file that only got its mode back, or that has other names, is still in the workspace. Another command may have one open.
            let has_writers = |file: &File| self.selector.files.has_writers(file);
            self.change_log.quarantine_of(self.call)?.own_contents(&has_writers);
        }
        outcome.notes.extend(notes);
        Ok(outcome)
    }

    /// The changes that can be reverted. A path that another process has changed since is left alone.
    fn revertible(&self, rejected: Vec<(Change, String)>, outcome: &mut RevertOutcome) -> Vec<RevertStep> {
        let mut steps = Vec::new();
        let quarantined = self.change_log.quarantined_paths(self.call);
        for (change, reason) in rejected {
            match self.change_log.inverse(&change, self.selector.files.as_ref()) {
                Ok(Some(restore)) => steps.push(RevertStep { change, reason, restore }),
                // An earlier recovery restored it and was killed before it could record that.
                Ok(None) if quarantined.contains(&change.path) && self.holds(&change.place, change.before.as_ref()) => {
                    outcome.restores.push(Change {
                        before: change.after,
                        after: change.before,
                        path: change.path.clone(),
                        place: change.place,
                    });
                    outcome.quarantined.push(QuarantinedPath { path: change.path, reason });
                }
                Ok(None) if self.change_log.can_be_restored(&change) => outcome.stays.push(change),
                Ok(None) => outcome.stay(
                    change,
                    &reason,
                    "its previous content is larger than the quota for undo (`undo.quota_bytes`)",
                ),
                Err(error) => outcome.stay(change, &reason, &error.message),
            }
        }
        steps
    }

    /// Quarantines the current content. A change that can't be quarantined stays, so that nothing is lost.
    fn quarantine(
        &self,
        quarantine: &mut CallQuarantine,
        steps: Vec<RevertStep>,
        outcome: &mut RevertOutcome,
    ) -> Result<Vec<RevertStep>, ToolError> {
        let mut added = Vec::new();
        for step in steps {
            let place_file = |directory: BorrowedFd<'_>, name: &str| {
                self.selector.files.link_or_copy(&step.change.place, directory, name.as_bytes())
            };
            match add_to_quarantine(quarantine, &step.change, &step.reason, &place_file) {
                Ok(()) => added.push(step),
                Err(error) => outcome.stay(step.change, &step.reason, &error.message),
            }
        }
        quarantine.save()?;
        Ok(added)
    }

    /// Restores all paths at once; where that fails, one by one.
    fn restore(&self, turn: &ChangeLock, restores: &[Change]) -> Result<(), ToolError> {
        let (files, contents) = (self.selector.files.as_ref(), self.change_log.contents());
        let places: Vec<WorkspacePath> = restores.iter().map(|change| change.place.clone()).collect();
        // What other commands in place have changed is stored first, and could take the room.
        let _pin = contents.pin(restores);
        let running = self.change_log.watched();
        running.iter().try_for_each(|in_place| in_place.catch_up(Some(&places)))?;
        turn.note(&ChangeIntent { id: self.id.to_owned(), changes: restores.to_vec(), origin: None })?;
        if files.write_changes(restores, contents, self.id).is_err() {
            files.clear_temporary(&places, self.id)?;
            let (going, coming): (Vec<&Change>, Vec<&Change>) =
                restores.iter().partition(|change| change.after.is_none());
            // The contents of a directory are removed before the directory, and created after it.
            for change in going.into_iter().rev().chain(coming) {
                if files.write_changes(std::slice::from_ref(change), contents, self.id).is_err() {
                    files.clear_temporary(std::slice::from_ref(&change.place), self.id)?;
                }
            }
        }
        let is_made = |change: &&Change| self.holds(&change.place, change.after.as_ref());
        let made: Vec<Change> = restores.iter().filter(is_made).cloned().collect();
        self.change_log.tell_commands(self.id, &made, files)?;
        turn.done()?;
        running.iter().try_for_each(|in_place| in_place.changed_by_others(&places))
    }

    /// Whether a path has this content now.
    fn holds(&self, place: &WorkspacePath, state: Option<&FileState>) -> bool {
        let now = self.selector.files.node(place, true).map(|node| node.map(|node| node.state));
        now.is_ok_and(|now| FileState::same(now.as_ref(), state))
    }

    /// Checks which paths were restored.
    fn verify_reverted(
        &self,
        quarantine: &mut CallQuarantine,
        steps: Vec<RevertStep>,
        directories: Vec<RevertStep>,
        outcome: &mut RevertOutcome,
    ) -> Result<(), ToolError> {
        let is_restored = |step: &RevertStep| self.holds(&step.restore.place, step.restore.after.as_ref());
        for step in steps {
            if is_restored(&step) {
                outcome.quarantined.push(QuarantinedPath { path: step.change.path, reason: step.reason });
                outcome.restores.push(step.restore);
            } else {
                quarantine.remove(&step.change.path);
                outcome.stay(step.change, &step.reason, "it couldn't be restored");
            }
        }
        outcome.restores.extend(directories.into_iter().filter(is_restored).map(|step| step.restore));
        Ok(quarantine.save()?)
    }
}

impl RevertOutcome {
    /// Records that a change should be reverted, and stays.
    fn stay(&mut self, change: Change, reason: &str, why: &str) {
        self.notes.push(format!("`{}` stays as the command left it, because {why}. {reason}.", change.path));
        self.stays.push(change);
    }
}
