//! Changes that a client makes itself, after a call was judged here. What may change is stored before, and compared after: so the
//! record has what became of it, and undo works. A signed record in the state directory connects both halves, which are
//! usually two processes; one whose second half never comes is caught up with when the workspace is next opened.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Change, ErrorCode, Event, EventOrigin, EventPayload, FileState, Files, HookedTool, ToolError, WorkspacePath,
};
use toolgate_journal::{HookRecord, HookStore, RunOptions};

use crate::change_applier::ChangeApplier;
use crate::change_log::ChangeLog;
use crate::workspace_changes::WorkspaceChanges;

/// A call that was judged here and that a client executes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EntrustedCall {
    /// The run that it belongs to.
    pub run: String,
    /// Its id.
    pub tool_call_id: String,
    /// The task that it belongs to.
    pub trace_id: String,
    /// The client's own tool.
    pub hooked: HookedTool,
    /// What the client's next event about this call is recognised by.
    pub key: String,
    /// When it was judged.
    pub started: Timestamp,
    /// Whether the client was told to ask its person first.
    pub is_asked: bool,
    /// What it may change, as that was before, or as it was last recorded.
    places: Vec<Change>,
    /// The paths whose change is recorded already.
    pub changed: BTreeSet<String>,
}

impl EntrustedCall {
    /// Whether both may change the same path, or one beneath it.
    pub fn overlaps(&self, other: &Self) -> bool {
        let meet = |one: &Change, other: &Change| one.place.covers(&other.place) || other.place.covers(&one.place);
        self.places.iter().any(|one| other.places.iter().any(|other| meet(one, other)))
    }

    /// What has become of its paths since they were looked at last.
    fn changes(&self, files: &dyn Files) -> Result<Vec<Change>, ToolError> {
        let mut changes = Vec::new();
        for was in &self.places {
            let after = files.node(&was.place, true)?.map(|node| node.state);
            let change = Change { after, ..was.clone() };
            // The time of a directory that was there is that of its entries.
            let is_directory = |state: &Option<FileState>| state.as_ref().is_some_and(FileState::is_directory);
            let is_content = !FileState::same(change.before.as_ref(), change.after.as_ref());
            let counts = is_content || !is_directory(&change.before) && !change.is_nothing();
            changes.extend(Some(change).filter(|_| counts));
        }
        Ok(changes)
    }

    /// From now on, this is what its paths were before.
    fn advance(&mut self, changes: &[Change]) {
        for change in changes {
            let known = self.places.iter_mut().filter(|known| known.place == change.place);
            known.for_each(|known| known.before.clone_from(&change.after));
            self.changed.insert(change.path.clone());
        }
    }
}

impl ChangeApplier {
    /// Stores what a client's call may change, as it is now, and writes the record of the call. Until this returns, the client must
    /// not begin.
    pub fn entrust(
        &self,
        hooked: HookedTool,
        key: &str,
        is_asked: bool,
        places: &[WorkspacePath],
    ) -> Result<EntrustedCall, ToolError> {
        let (log, files) = (self.workspace.log()?, self.workspace.files.as_ref());
        let _turn = log.turn(files, self.workspace.hidden_paths.as_ref())?;
        log.watched().iter().try_for_each(|in_place| in_place.catch_up(Some(places)))?;
        let mut before = Vec::new();
        for place in with_missing_directories(places, files)? {
            let node = files.node(&place, true)?;
            let state = node.as_ref().map(|node| node.state.clone());
            if let (Some(state), Some(file)) = (&state, node.and_then(|node| node.file)) {
                log.contents().adopt(&file, state, false)?;
            }
            before.push(Change { path: files.shown(&place), place, before: state, after: None });
        }
        let entrusted = EntrustedCall {
            run: self.origin.run.clone(),
            tool_call_id: self.origin.tool_call_id.clone(),
            trace_id: self.origin.trace_id.clone(),
            hooked,
            key: key.to_owned(),
            started: self.workspace.clock.now(),
            is_asked,
            places: before,
            changed: BTreeSet::new(),
        };
        log.hook_store()?.put(HookRecord::Entrusted, &entrusted.tool_call_id, &entrusted)?;
        Ok(entrusted)
    }

    /// Ends a client's call: records what it changed and was not recorded before, and removes the call's record. None if somebody else
    /// has ended it.
    pub fn end_entrusted(&self) -> Result<Option<EntrustedCall>, ToolError> {
        let (log, files) = (self.workspace.log()?, self.workspace.files.as_ref());
        let _turn = log.turn(files, self.workspace.hidden_paths.as_ref())?;
        let store = log.hook_store()?;
        let call = &self.origin.tool_call_id;
        let Some(mut entrusted) = store.read::<EntrustedCall>(HookRecord::Entrusted, call)? else { return Ok(None) };
        let changes = log.record_entrusted(&mut entrusted, files, &|changes| {
            let payload = EventPayload::FilesChanging { changes: changes.to_vec(), made: true };
            self.recorder.record(&[self.origin.event(self.workspace.clock.now(), payload)])
        })?;
        changes.iter().for_each(|change| self.workspace.reads.wrote(&self.session, call, change));
        self.workspace.own_files.record(&self.session, &changes);
        store.remove(HookRecord::Entrusted, call)?;
        Ok(Some(entrusted))
    }
}

impl WorkspaceChanges {
    /// The calls that clients execute now, of every run.
    pub fn entrusted(&self) -> Result<Vec<EntrustedCall>, ToolError> {
        Ok(self.log()?.hook_store()?.all(HookRecord::Entrusted)?)
    }

    /// What hooks keep between events.
    pub fn hook_store(&self) -> Result<HookStore, ToolError> {
        self.log()?.hook_store()
    }
}

impl ChangeLog {
    pub(crate) fn hook_store(&self) -> Result<HookStore, ToolError> {
        let store = self.state.hook_store(&self.options)?;
        store.ok_or_else(|| {
            ToolError::new(ErrorCode::IoError, "There is no signing key, so a client's calls can't be followed.")
                .with_hint("`toolgate doctor` says why the key can't be read.")
        })
    }

    /// Records what clients have changed so far whose calls haven't ended. They go on.
    pub(crate) fn catch_up_entrusted(&self, files: &dyn Files, options: &RunOptions) -> Result<(), ToolError> {
        let Some(store) = self.state.hook_store(&self.options)? else { return Ok(()) };
        for mut entrusted in store.all::<EntrustedCall>(HookRecord::Entrusted)? {
            let Ok(run) = self.state.open_run(&entrusted.run, options) else { continue };
            let (trace_id, tool_call_id) = (entrusted.trace_id.clone(), entrusted.tool_call_id.clone());
            let origin = EventOrigin { run: entrusted.run.clone(), turn: None, trace_id, tool_call_id };
            let changes = self.record_entrusted(&mut entrusted, files, &|changes| {
                let payload = EventPayload::FilesChanging { changes: changes.to_vec(), made: true };
                let event: Event = origin.event(options.clock.now(), payload);
                Ok(run.journal.append(&[event]).map(drop)?)
            })?;
            if !changes.is_empty() {
                store.put(HookRecord::Entrusted, &entrusted.tool_call_id, &entrusted)?;
            }
        }
        Ok(())
    }

    /// Records what has changed of a client's call. The caller holds the change lock.
    fn record_entrusted(
        &self,
        entrusted: &mut EntrustedCall,
        files: &dyn Files,
        record: &dyn Fn(&[Change]) -> Result<(), ToolError>,
    ) -> Result<Vec<Change>, ToolError> {
        let changes = entrusted.changes(files)?;
        if changes.is_empty() {
            return Ok(changes);
        }
        record(&changes)?;
        self.keep_for_diffs(&changes, files);
        self.tell_commands(&format!("{}-client", entrusted.tool_call_id), &changes, files)?;
        let places: Vec<WorkspacePath> = changes.iter().map(|change| change.place.clone()).collect();
        self.watched().iter().try_for_each(|in_place| in_place.changed_by_others(&places))?;
        entrusted.advance(&changes);
        Ok(changes)
    }
}

/// These places, and the directories above them that would have to be made first.
fn with_missing_directories(places: &[WorkspacePath], files: &dyn Files) -> Result<BTreeSet<WorkspacePath>, ToolError> {
    let mut all: BTreeSet<WorkspacePath> = places.iter().cloned().collect();
    for place in places {
        for directory in place.ancestors().rev() {
            if files.node(&directory, false)?.is_some() {
                break;
            }
            all.insert(directory);
        }
    }
    Ok(all)
}
