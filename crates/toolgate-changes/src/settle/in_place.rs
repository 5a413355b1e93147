//! What a command did straight to the workspace is there already: it goes on record, and what wouldn't have been put in place
//! is put back, as a second change of the same call.

use toolgate_contract::{Change, SettledChanges, ToolError};
use toolgate_journal::ChangeLock;

use super::{ChangeSettler, MOST_ASIDE, NOT_TEXT, counted, list_quarantined, lost};
use crate::in_place_command::InPlaceCommand;
use crate::revert::{InPlaceRevert, RevertOutcome};

const BESIDE: &str = "It worked straight on the workspace, so what others changed there meanwhile counts as its own.";

const UNCOVERED: &str = "was replaced while it ran. From then on it could read or change what is there now.";

impl ChangeSettler {
    /// Tells what a command did straight to the workspace.
    pub(super) fn tell(&self, in_place: &InPlaceCommand) -> Result<SettledChanges, ToolError> {
        in_place.end(|turn, changes, unspeakable| {
            let (has_changed, change_log) = (!changes.is_empty(), self.workspace().log()?);
            let RevertOutcome { stays, back, kept, mut notes } = self.put_back(turn, in_place.is_open, changes)?;
            self.changer.record_reverted(&back)?;
            change_log.keep_for_diffs(&stays, self.workspace().files.as_ref());
            notes.extend(unspeakable.iter().map(|path| format!("Undo doesn't cover `{path}`: {NOT_TEXT}.")));
            let more = notes.len().saturating_sub(MOST_ASIDE);
            notes.truncate(MOST_ASIDE);
            notes.extend((more > 0).then(|| format!("There are {more} more remarks like these.")));
            let mut settled = counted(&stays);
            settled.notes.extend(has_changed.then(|| BESIDE.to_owned()));
            settled.notes.extend(lost(change_log.beyond_quota(&stays)));
            let replaced_mounts = in_place.replaced_mounts();
            settled.notes.extend(replaced_mounts.iter().take(MOST_ASIDE).map(|path| format!("`{path}` {UNCOVERED}")));
            settled.notes.extend(notes);
            list_quarantined(&mut settled, kept);
            Ok(settled)
        })
    }

    /// Who was granted to work with no walls may leave what they like; it is named.
    fn put_back(&self, turn: &ChangeLock, is_open: bool, changes: Vec<Change>) -> Result<RevertOutcome, ToolError> {
        if is_open {
            let notes = self.workspace().selector.remarks(&changes);
            return Ok(RevertOutcome { stays: changes, notes, ..RevertOutcome::default() });
        }
        let (change_log, selector) = (self.workspace().log()?.as_ref(), &self.workspace().selector);
        let id = self.workspace().clock.id().simple().to_string();
        InPlaceRevert { change_log, selector, call: &self.changer.origin.tool_call_id, id: &id }.put_back(turn, changes)
    }
}
