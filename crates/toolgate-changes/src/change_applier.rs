//! Changes files for one call: checked against what the tool saw, kept for undo, recorded, then made, in that order.

use std::io::{ErrorKind, Read};
use std::sync::{Arc, Once};

use toolgate_contract::{
    Change, ChangeSource, Changes, ErrorCode, EventPayload, FileContent, FileEdit, FileState, OpenFile, SeenVersion,
    ToolError, WorkspacePath,
};
use toolgate_journal::{ChangeIntent, ChangeLock};

use crate::change_log::ChangeLog;
use crate::workspace_changes::WorkspaceChanges;
use toolgate_contract::EventOrigin;
use toolgate_journal::Recorder;

/// Bytes of a file that are compared at a time; they stay in the processor's cache.
const PIECE: usize = 128 * 1024;

/// Memory that stays with the process when it is free; glibc doubles it.
const KEPT_FREE: usize = 8 * 1024 * 1024;

/// Whether the C library would ask the kernel for this much anew each time.
fn is_large(content: &FileContent) -> bool {
    content.bytes.len() >= 128 * 1024
}

/// Lets files of some megabytes come and go in memory that the process keeps. Glibc hands memory back to the kernel when
/// more is free than the largest piece that it has seen come and go; to get it anew, page by page, takes longer than the
/// work on it. So it is shown one large piece, which nobody touches. Where files are small, none is kept.
fn keep_freed_memory() {
    static SHOWN: Once = Once::new();
    SHOWN.call_once(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(KEPT_FREE))));
}

/// Changes files for one call.
pub struct ChangeApplier {
    pub(crate) workspace: Arc<WorkspaceChanges>,
    pub(crate) recorder: Arc<dyn Recorder>,
    pub(crate) origin: Arc<EventOrigin>,
    pub(crate) session: String,
}

impl Changes for ChangeApplier {
    fn make(&self, edits: Vec<FileEdit>) -> Result<Vec<Change>, ToolError> {
        let change_log = self.workspace.log()?;
        let turn = change_log.turn(self.workspace.files.as_ref(), self.workspace.hidden_paths.as_ref())?;
        let places: Vec<WorkspacePath> = edits.iter().map(|edit| edit.place.clone()).collect();
        let beside = change_log.watched();
        beside.iter().try_for_each(|in_place| in_place.catch_up(Some(&places)))?;
        let id = self.workspace.clock.id().simple().to_string();
        let mut changes = Vec::new();
        let made = self.workspace.files.apply(&edits, &id, &mut || {
            changes = self.announce(change_log, &turn, &edits, &id)?;
            Ok(())
        });
        turn.done()?;
        made?;
        beside.iter().try_for_each(|in_place| in_place.moved_on(&places))?;
        for change in &changes {
            self.workspace.reads.wrote(&self.session, &self.origin.tool_call_id, change);
        }
        Ok(changes)
    }

    fn arrange(&self, changes: Vec<Change>, source: &dyn ChangeSource) -> Result<(), ToolError> {
        let change_log = self.workspace.log()?;
        let (files, hidden_paths) = (self.workspace.files.as_ref(), self.workspace.hidden_paths.as_ref());
        let turn = change_log.turn(files, hidden_paths)?;
        let places: Vec<WorkspacePath> = changes.iter().map(|change| change.place.clone()).collect();
        let beside = change_log.watched();
        beside.iter().try_for_each(|in_place| in_place.catch_up(Some(&places)))?;
        let id = self.workspace.clock.id().simple().to_string();
        let _needed = change_log.contents().hold(&changes);
        if let Err(error) = change_log.adopt(&changes, files).and_then(|()| self.record(&turn, &id, &changes)) {
            change_log.own(&changes)?;
            return Err(error);
        }
        if let Err(error) = files.arrange(&changes, source, &id) {
            // The note is still there: what was done of it is taken back as after a crash.
            change_log.put_back(&turn, files, None)?;
            return Err(error.with_hint("Everything is as it was before."));
        }
        turn.done()?;
        change_log.own(&changes)?;
        beside.iter().try_for_each(|in_place| in_place.moved_on(&places))?;
        for change in &changes {
            self.workspace.reads.wrote(&self.session, &self.origin.tool_call_id, change);
        }
        Ok(())
    }

    fn run(&self) -> &str {
        &self.origin.run
    }

    fn saw(&self, place: &WorkspacePath, sha256: &str) {
        self.workspace.reads.saw(&self.session, &self.origin.tool_call_id, place, sha256);
    }

    fn seen(&self, place: &WorkspacePath) -> Option<SeenVersion> {
        self.workspace.reads.seen(&self.session, place)
    }

    fn author(&self, place: &WorkspacePath, sha256: &str) -> Option<String> {
        self.workspace.reads.author(place, sha256)
    }
}

impl ChangeApplier {
    /// Keeps the way back, records what is about to change, and notes it for whoever would have to put it back.
    fn announce(
        &self,
        change_log: &ChangeLog,
        turn: &ChangeLock,
        edits: &[FileEdit],
        id: &str,
    ) -> Result<Vec<Change>, ToolError> {
        if edits.iter().flat_map(|edit| [&edit.before, &edit.after]).flatten().any(is_large) {
            keep_freed_memory();
        }
        let changes = self.keep(change_log, edits)?;
        self.record(turn, id, &changes)?;
        Ok(changes)
    }

    /// From here on it can be taken back, whoever is killed.
    fn record(&self, turn: &ChangeLock, id: &str, changes: &[Change]) -> Result<(), ToolError> {
        let payload = EventPayload::FilesChanging { changes: changes.to_vec() };
        self.recorder.record(&[self.origin.event(self.workspace.clock.now(), payload)])?;
        Ok(turn.note(&ChangeIntent { id: id.to_owned(), changes: changes.to_vec() })?)
    }

    /// Puts on record what was taken back of a change that wasn't ours to make.
    pub(crate) fn record_reverted(&self, changes: &[Change]) -> Result<(), ToolError> {
        if changes.is_empty() {
            return Ok(());
        }
        let payload = EventPayload::FilesChanging { changes: changes.to_vec() };
        self.recorder.record(&[self.origin.event(self.workspace.clock.now(), payload)])?;
        changes.iter().for_each(|change| self.workspace.reads.wrote(&self.session, &self.origin.tool_call_id, change));
        Ok(())
    }

    /// Stores before and after, and refuses when something else is there than what the tool saw.
    fn keep(&self, change_log: &ChangeLog, edits: &[FileEdit]) -> Result<Vec<Change>, ToolError> {
        let mut changes = Vec::with_capacity(edits.len());
        for FileEdit { place, before, after } in edits {
            let old_mode = self.mode_if_still(before.as_ref(), place)?;
            let keep = |content: &FileContent, usual: Option<u32>| {
                change_log.contents().put(&content.bytes)?;
                let mode = content.mode.or(usual).unwrap_or(0o644);
                let sha256 = content.bytes.sha256().to_owned();
                Ok::<_, ToolError>(FileState { sha256, bytes: content.bytes.len() as u64, mode })
            };
            let before = before.as_ref().map(|content| keep(&FileContent { mode: old_mode, ..content.clone() }, None));
            let after = after.as_ref().map(|content| keep(content, old_mode));
            changes.push(Change {
                path: self.workspace.files.shown(place),
                place: place.clone(),
                before: before.transpose()?,
                after: after.transpose()?,
            });
        }
        Ok(changes)
    }

    /// The mode of what is there, or the refusal when that is no longer what the tool saw.
    fn mode_if_still(&self, before: Option<&FileContent>, place: &WorkspacePath) -> Result<Option<u32>, ToolError> {
        let files = self.workspace.files.as_ref();
        let (is_still, mode) = match before {
            Some(file) if !file.is_link() => match files.open(place) {
                Ok(opened) => (holds(&opened, &file.bytes, place)?, Some(opened.mode)),
                Err(error) if error.code == ErrorCode::NotFound => (false, None),
                Err(error) => return Err(error),
            },
            other => {
                let now = files.content(place, u64::MAX)?;
                (now.as_ref() == other, now.and_then(|now| now.mode))
            }
        };
        if is_still { Ok(mode) } else { Err(self.moved_on(place)) }
    }

    fn moved_on(&self, place: &WorkspacePath) -> ToolError {
        let now = self.workspace.files.content(place, u64::MAX).ok().flatten();
        let by = now.and_then(|content| self.workspace.reads.author(place, content.bytes.sha256()));
        let by = by.map_or_else(|| "something outside this gate".into(), |call| format!("the call {call}"));
        ToolError::new(
            ErrorCode::StaleFile,
            format!("`{}` was changed by {by} in the meantime.", self.workspace.files.shown(place)),
        )
    }
}

/// Whether a file holds exactly these bytes. It is read piece by piece, so that nothing large has to be put aside.
fn holds(opened: &OpenFile, expected: &[u8], place: &WorkspacePath) -> Result<bool, ToolError> {
    if opened.size != expected.len() as u64 {
        return Ok(false);
    }
    let (mut file, mut rest) = (&opened.file, expected);
    let mut piece = vec![0; PIECE.min(expected.len() + 1)];
    loop {
        let length = match file.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read.map_err(|error| ToolError::io(&format!("`{}` can't be read", place.path), &error))?,
        };
        match rest.split_at_checked(length) {
            _ if length == 0 => return Ok(rest.is_empty()),
            Some((now, more)) if *now == piece[..length] => rest = more,
            _ => return Ok(false),
        }
    }
}
