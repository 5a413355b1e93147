//! Reverts a change that wasn't finished: it failed half way, or its process was killed. The journal has the change by then, so it
//! gets the reverse of it as well. Otherwise undo would look for something that the change never left.

use toolgate_contract::{Access, Change, EventPayload, FileState, Files, HiddenPaths, ToolError, WorkspacePath};
use toolgate_journal::{ChangeIntent, ChangeLock, ChangeNotice, JournalError, NoticeKind, read_events};

use crate::change_log::ChangeLog;

/// The id of a recovery; it becomes part of temporary file names.
const RECOVERY_ID: &str = "recovery";

impl ChangeLog {
    /// Reverts an unfinished change. With `hidden_paths`, a path that policy hides can only be removed, never written:
    /// the record of the change may have come with a repository.
    pub(crate) fn revert_unfinished(
        &self,
        turn: &ChangeLock,
        files: &dyn Files,
        hidden_paths: Option<&dyn HiddenPaths>,
    ) -> Result<(), ToolError> {
        let Some(intent) = turn.unfinished()? else { return Ok(()) };
        let ChangeIntent { id, changes, .. } = &intent;
        let places: Vec<WorkspacePath> = changes.iter().map(|change| change.place.clone()).collect();
        files.clear_temporary(&places, id)?;
        let mut reverts = Vec::new();
        let is_hidden =
            |place: &WorkspacePath| hidden_paths.is_some_and(|hidden_paths| hidden_paths.hides(Access::Write, place));
        let may_revert = |change: &&Change| change.before.is_none() || !is_hidden(&change.place);
        for change in changes.iter().filter(may_revert) {
            reverts.extend(self.inverse(change, files)?);
        }
        // An earlier recovery may have been killed too.
        let places: Vec<WorkspacePath> = reverts.iter().map(|change| change.place.clone()).collect();
        files.clear_temporary(&places, RECOVERY_ID)?;
        files.write_changes(&reverts, self.contents(), RECOVERY_ID)?;
        self.own(changes, files)?;
        self.notify(&ChangeNotice { id: id.clone(), changes: Vec::new(), kind: NoticeKind::Reverted }, None)?;
        self.record_reverse(&intent, files)?;
        Ok(turn.done()?)
    }

    /// Records the reverse of a change, for every path that is as before. Not if the journal never had the change, or has the
    /// reverse already, from an earlier recovery that was killed.
    fn record_reverse(&self, intent: &ChangeIntent, files: &dyn Files) -> Result<(), ToolError> {
        let Some(origin) = &intent.origin else { return Ok(()) };
        let mut reverse = Vec::new();
        for Change { path, place, before, after } in &intent.changes {
            let now = files.node(place, true)?.map(|node| node.state);
            if FileState::same(now.as_ref(), before.as_ref()) {
                let (path, place) = (path.clone(), place.clone());
                reverse.push(Change { path, place, before: after.clone(), after: before.clone() });
            }
        }
        let run = match self.state.open_run(&origin.run, &self.options) {
            // Nobody can undo what such a run says.
            Err(JournalError::NoSuchRun { .. } | JournalError::BadId { .. } | JournalError::Damaged { .. }) => {
                return Ok(());
            }
            opened => opened?,
        };
        let (mut made, mut reverted) = (0, 0);
        for event in read_events(run.path())?.filter_map(Result::ok).map(|recorded| recorded.event) {
            let is_its = event.tool_call_id.as_ref() == Some(&origin.tool_call_id);
            if let EventPayload::FilesChanging { changes, .. } = event.payload
                && is_its
            {
                made += usize::from(changes == intent.changes);
                reverted += usize::from(changes == reverse);
            }
        }
        if made > reverted && !reverse.is_empty() {
            let payload = EventPayload::FilesChanging { changes: reverse, made: false };
            run.journal.append(&[origin.event(self.options.clock.now(), payload)])?;
        }
        Ok(())
    }
}
