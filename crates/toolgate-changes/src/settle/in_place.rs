//! Settles a command that changed files in place: its changes are recorded, and those that aren't allowed are reverted,
//! as a second change of the same call.

use std::collections::BTreeSet;

use toolgate_contract::{Change, SettledChanges, ToolError, WorkspacePath};
use toolgate_journal::ChangeLock;

use super::{ChangeSettler, MAX_QUARANTINED, counted, list_quarantined, lost};
use crate::in_place_command::{InPlaceChanges, InPlaceCommand};
use crate::revert::{InPlaceRevert, RevertOutcome};

const OTHERS_COUNTED: &str =
    "It changed files in place, so what other programs changed meanwhile counts as its own. Calls of Toolgate don't.";

const MOUNT_REPLACED: &str =
    "was replaced while the command ran. From then on the command could read or change the new file.";

const NOT_REPLACED: &str = "is hidden, and git has checked out another version of it without replacing the file: a command that works in \
                            place can't. Undo this call, and repeat it without `stdin`, `tty` and `background`, where changes are \
                            staged; otherwise the person runs it outside of Toolgate.";

impl ChangeSettler {
    /// Records the changes of a command that worked in place, and reverts those that aren't allowed.
    pub(super) fn settle_in_place(&self, in_place: &InPlaceCommand) -> Result<SettledChanges, ToolError> {
        in_place.end(|turn, InPlaceChanges { net, own }| {
            let (has_changed, change_log) = (!own.is_empty(), self.workspace().log()?);
            let RevertOutcome { restores, quarantined, mut notes, .. } = self.revert(turn, in_place.is_open, net)?;
            self.changer.record_reverted(&restores)?;
            let restored: BTreeSet<&WorkspacePath> = restores.iter().map(|restore| &restore.place).collect();
            let is_reported = |change: &Change| !change.is_nothing() && !restored.contains(&change.place);
            let stays: Vec<Change> = own.into_values().filter(is_reported).collect();
            change_log.keep_for_diffs(&stays, self.workspace().files.as_ref());
            let more = notes.len().saturating_sub(MAX_QUARANTINED);
            notes.truncate(MAX_QUARANTINED);
            notes.extend(
                (more > 0).then(|| format!("And {} like these.", toolgate_contract::counted(more, "more note"))),
            );
            let mut settled = counted(&stays, self.workspace().files.as_ref());
            settled.notes.extend(has_changed.then(|| OTHERS_COUNTED.to_owned()));
            settled.notes.extend(lost(change_log.beyond_quota(&stays)));
            let replaced_mounts = in_place.replaced_mounts();
            settled
                .notes
                .extend(replaced_mounts.iter().take(MAX_QUARANTINED).map(|path| format!("`{path}` {MOUNT_REPLACED}")));
            let not_replaced = in_place.not_replaced_by_git();
            settled
                .notes
                .extend(not_replaced.iter().take(MAX_QUARANTINED).map(|path| format!("`{path}` {NOT_REPLACED}")));
            settled.notes.extend(notes);
            list_quarantined(&mut settled, quarantined);
            Ok(settled)
        })
    }

    /// A command that was granted to run unsandboxed may change anything; suspicious changes are named.
    fn revert(&self, turn: &ChangeLock, is_open: bool, changes: Vec<Change>) -> Result<RevertOutcome, ToolError> {
        if is_open {
            let notes = self.workspace().selector.remarks(&changes);
            return Ok(RevertOutcome { stays: changes, notes, ..RevertOutcome::default() });
        }
        let (change_log, selector) = (self.workspace().log()?.as_ref(), &self.workspace().selector);
        let id = self.workspace().clock.id().simple().to_string();
        InPlaceRevert { change_log, selector, call: &self.changer.origin.tool_call_id, id: &id }.revert(turn, changes)
    }
}
