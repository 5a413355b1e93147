//! Recovery after a process was killed: a half-made change is reverted, and a command that changed files in place is
//! settled as if it had ended.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use toolgate_contract::{Change, Effect, Event, EventPayload, ToolError, WorkspacePath};
use toolgate_journal::{ChangeLock, JournalError, RunOptions, read_events};

use crate::change_log::ChangeLog;
use crate::revert::{InPlaceRevert, RevertOutcome};
use crate::settle::ChangeSelector;
use crate::snapshot::{Snapshot, SnapshotScope};

impl ChangeLog {
    /// Reverts what a killed process left half done, and records what its commands changed in place. Returns warnings
    /// about invalid records and about files that a person should check.
    pub(crate) fn recover(&self, selector: &ChangeSelector, options: &RunOptions) -> Result<Vec<String>, ToolError> {
        let turn = self.turn(selector.files.as_ref(), selector.hidden_paths.as_ref())?;
        let snapshots = self.snapshots()?;
        let (abandoned, mut warnings) = snapshots.abandoned(Snapshot::read)?;
        for mut snapshot in abandoned {
            let call = snapshot.scope().call.clone();
            let settled = self.settle_abandoned(&turn, &mut snapshot, selector, options);
            snapshot.restore_modes(selector.files.as_ref());
            match settled {
                Ok(more) => {
                    warnings.extend(more);
                    snapshot.rest();
                }
                // The snapshot stays, in case the changes can be recorded later.
                Err(error) => warnings.push(not_recorded(&call, &error)),
            }
        }
        snapshots.clear()?;
        self.catch_up_entrusted(selector.files.as_ref(), options)?;
        Ok(warnings)
    }

    fn settle_abandoned(
        &self,
        turn: &ChangeLock,
        snapshot: &mut Snapshot,
        selector: &ChangeSelector,
        options: &RunOptions,
    ) -> Result<Vec<String>, ToolError> {
        let (SnapshotScope { run, call, .. }, files) = (snapshot.scope().clone(), selector.files.as_ref());
        let opened = match self.state.open_run(&run, options) {
            Err(error @ (JournalError::NoSuchRun { .. } | JournalError::Damaged { .. })) => {
                // The changes can never be recorded; the snapshot is only useful as the start of the next one.
                snapshot.collect(files, None, self.contents())?;
                let is_lost = snapshot.seal(options.clock.now(), true)?.is_some();
                return Ok(is_lost.then(|| not_recorded(&call, &error.into())).into_iter().collect());
            }
            opened => opened?,
        };
        let record = |time: Timestamp, changes: Vec<Change>| {
            let (run, tool_call_id, payload) =
                (run.clone(), Some(call.clone()), EventPayload::FilesChanging { changes, made: false });
            opened.journal.append(&[Event { time, run, turn: None, trace_id: None, tool_call_id, payload }])
        };
        if let Some((time, changes)) = snapshot.unrecorded() {
            if !is_recorded(opened.path(), &call, time, &changes)? {
                record(time, changes)?;
            }
            snapshot.tidy(self.contents())?;
        }
        if !snapshot.is_final() {
            snapshot.collect(files, None, self.contents())?;
            if let Some((time, changes)) = snapshot.seal(options.clock.now(), true)? {
                let id = options.clock.id().simple().to_string();
                self.tell_other_commands(&id, snapshot.current(changes.clone()), files, snapshot.name())?;
                record(time, changes)?;
            }
            snapshot.tidy(self.contents())?;
        }
        let RecordedChanges { changes, is_open } = RecordedChanges::read(opened.path(), &call)?;
        let id = options.clock.id().simple().to_string();
        let warnings = match is_open {
            true => selector.remarks(&changes),
            false => {
                let revert = InPlaceRevert { change_log: self, selector, call: &call, id: &id };
                let RevertOutcome { restores, quarantined, notes, .. } = revert.revert(turn, changes)?;
                if !restores.is_empty() {
                    record(options.clock.now(), restores)?;
                }
                let reverted = quarantined
                    .iter()
                    .map(|one| format!("`{}` was reverted and quarantined: {}.", one.path, one.reason));
                reverted.chain(notes).collect()
            }
        };
        Ok(warnings)
    }
}

fn not_recorded(call: &str, error: &ToolError) -> String {
    format!("The changes of the call {call} aren't recorded, so undo doesn't cover them. {error}")
}

/// Whether the journal of a run has exactly these changes of a call.
fn is_recorded(run: &Path, call: &str, time: Timestamp, changes: &[Change]) -> Result<bool, ToolError> {
    for recorded in read_events(run)? {
        let event = recorded.map_err(|error| ToolError::io("The record can't be read", &error))?.event;
        let is_it = event.time == time && event.tool_call_id.as_deref() == Some(call);
        if is_it && matches!(&event.payload, EventPayload::FilesChanging { changes: known, .. } if known == changes) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The changes of one call, according to the record.
#[derive(Default)]
struct RecordedChanges {
    changes: Vec<Change>,
    /// Whether the command was granted to run unsandboxed.
    is_open: bool,
}

impl RecordedChanges {
    fn read(run: &Path, call: &str) -> Result<Self, ToolError> {
        let mut places: BTreeMap<WorkspacePath, Change> = BTreeMap::new();
        let mut made = Self::default();
        for recorded in read_events(run)? {
            let event = recorded.map_err(|error| ToolError::io("The record can't be read", &error))?.event;
            match event.payload {
                _ if event.tool_call_id.as_deref() != Some(call) => {}
                EventPayload::CallStarted { effects, .. } => {
                    made.is_open |= effects.iter().any(|effect| matches!(effect, Effect::Unsandboxed { .. }));
                }
                EventPayload::FilesChanging { changes, .. } => {
                    for change in changes {
                        match places.get_mut(&change.place) {
                            Some(known) => known.followed_by(&change),
                            None => drop(places.insert(change.place.clone(), change)),
                        }
                    }
                }
                _ => {}
            }
        }
        made.changes = places.into_values().filter(|change| !change.is_nothing()).collect();
        Ok(made)
    }
}
