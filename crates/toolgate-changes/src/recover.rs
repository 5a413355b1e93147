//! Mending after somebody was killed: a change that was half made is taken back, and a command that worked straight on the
//! workspace is settled as if it had ended.

use std::collections::BTreeMap;
use std::path::Path;

use toolgate_contract::{Change, Effect, Event, EventPayload, ToolError, WorkspacePath};
use toolgate_journal::{
    AbandonedSnapshots, ChangeLock, JournalError, RunOptions, Snapshot, SnapshotScope, read_events,
};

use crate::change_log::ChangeLog;
use crate::revert::{InPlaceRevert, RevertOutcome};
use crate::settle::ChangeSelector;

impl ChangeLog {
    /// Puts back what somebody who was killed left half done, and on record what their commands did straight to the workspace.
    /// Says what of that couldn't be believed, and what a person should look at.
    pub(crate) fn recover(&self, selector: &ChangeSelector, options: &RunOptions) -> Result<Vec<String>, ToolError> {
        let turn = self.turn(selector.files.as_ref(), selector.hidden_paths.as_ref())?;
        let snapshots = self.snapshots()?;
        let AbandonedSnapshots { snapshots: abandoned, mut warnings } = snapshots.abandoned()?;
        for snapshot in abandoned {
            let call = snapshot.scope().call.clone();
            match self.settle_abandoned(&turn, snapshot, selector, options) {
                Ok(more) => warnings.extend(more),
                // If it can be put on record later, the snapshot is still there.
                Err(error) => warnings
                    .push(format!("What the call {call} changed isn't on record, so undo doesn't cover it. {error}")),
            }
        }
        snapshots.clear()?;
        Ok(warnings)
    }

    fn settle_abandoned(
        &self,
        turn: &ChangeLock,
        mut one: Snapshot,
        selector: &ChangeSelector,
        options: &RunOptions,
    ) -> Result<Vec<String>, ToolError> {
        let (SnapshotScope { run, call, .. }, files) = (one.scope().clone(), selector.files.as_ref());
        let changes = one.changes(files, None)?;
        let opened = match self.state.open_run(&run, options) {
            Err(error @ (JournalError::NoSuchRun { .. } | JournalError::Damaged { .. })) => {
                // Nobody will ever be able to; all that it is good for is to be begun from.
                one.rest();
                return if changes.is_empty() { Ok(Vec::new()) } else { Err(error.into()) };
            }
            opened => opened?,
        };
        let record = |changes: Vec<Change>| {
            let (time, payload) = (options.clock.now(), EventPayload::FilesChanging { changes });
            let (run, tool_call_id) = (run.clone(), Some(call.clone()));
            opened.journal.append(&[Event { time, run, turn: None, trace_id: None, tool_call_id, payload }])
        };
        if !changes.is_empty() {
            one.store_previous_contents(&changes, self.contents())?;
            record(changes.clone())?;
            one.go_on(&changes, self.contents(), files)?;
        }
        let RecordedChanges { changes, is_open } = RecordedChanges::on_record(opened.path(), &call)?;
        let id = options.clock.id().simple().to_string();
        let warnings = match is_open {
            true => selector.remarks(&changes),
            false => {
                let planted = InPlaceRevert { change_log: self, selector, call: &call, id: &id };
                let RevertOutcome { back, kept, notes, .. } = planted.put_back(turn, changes)?;
                if !back.is_empty() {
                    record(back)?;
                }
                let told =
                    kept.iter().map(|one| format!("`{}` was put back and kept aside: {}.", one.path, one.reason));
                told.chain(notes).collect()
            }
        };
        one.rest();
        Ok(warnings)
    }
}

/// What a call made, by the record.
#[derive(Default)]
struct RecordedChanges {
    changes: Vec<Change>,
    /// Whether it was granted to work with no walls.
    is_open: bool,
}

impl RecordedChanges {
    fn on_record(run: &Path, call: &str) -> Result<Self, ToolError> {
        let mut places: BTreeMap<WorkspacePath, Change> = BTreeMap::new();
        let mut made = Self::default();
        for recorded in read_events(run)? {
            let event = recorded.map_err(|error| ToolError::io("The record can't be read", &error))?.event;
            match event.payload {
                _ if event.tool_call_id.as_deref() != Some(call) => {}
                EventPayload::CallStarted { effects, .. } => {
                    made.is_open |= effects.iter().any(|effect| matches!(effect, Effect::Unsandboxed { .. }));
                }
                EventPayload::FilesChanging { changes } => {
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
        made.changes = places.into_values().filter(|change| change.before != change.after).collect();
        Ok(made)
    }
}
