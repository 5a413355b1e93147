//! Changes files for one call: checked against what the tool saw, kept for undo, recorded, then made, in that order.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use toolgate_contract::{
    Access, Change, Changes, Clock, Content, Edit, ErrorCode, FileState, Files, Happening, Place, Seen, ToolError,
    Veil, sha256,
};
use toolgate_journal::{ChangeNote, Changing, Contents, State};

use super::speaker::Origin;
use crate::session::Recorder;
use crate::versions::Versions;

/// What every change in a workspace goes through.
pub(crate) struct Workshop {
    state: State,
    contents: Arc<Contents>,
}

impl Workshop {
    pub(crate) fn new(state: State, contents: Arc<Contents>) -> Self {
        Self { state, contents }
    }

    /// Puts back what somebody who was killed left half done.
    pub(super) fn mend(&self, files: &dyn Files, veil: &dyn Veil) -> Result<(), ToolError> {
        self.put_back(&self.state.begin_change()?, files, veil)
    }

    /// Files that did change go back to what they were. Places that policy hides are left alone, so that a note which
    /// came with a repository can't reach them.
    fn put_back(&self, turn: &Changing, files: &dyn Files, veil: &dyn Veil) -> Result<(), ToolError> {
        let Some(ChangeNote { id, changes }) = turn.unfinished()? else { return Ok(()) };
        let places: Vec<Place> = changes.iter().map(|change| change.place.clone()).collect();
        files.clear_temporary(&places, &id)?;
        for change in changes.iter().filter(|change| !veil.hides(Access::Write, &change.place)) {
            if let Some(edit) = self.way_back(change, files)? {
                // Whoever mended before may have been killed too.
                files.clear_temporary(std::slice::from_ref(&change.place), "mend")?;
                files.apply(&[edit], "mend")?;
            }
        }
        Ok(turn.done()?)
    }

    /// The edit that takes one file back; none when it never changed, or what it was is no longer kept.
    fn way_back(&self, change: &Change, files: &dyn Files) -> Result<Option<Edit>, ToolError> {
        let now = read(files, &change.place)?.map(|(bytes, _)| bytes);
        let hash = |state: &Option<FileState>| state.as_ref().map(|state| state.sha256.clone());
        if now.as_ref().map(sha256) != hash(&change.after) || hash(&change.before) == hash(&change.after) {
            return Ok(None);
        }
        let after = match &change.before {
            None => None,
            Some(state) => match self.contents.get(&state.sha256)? {
                Some(bytes) => Some(Content { bytes, mode: Some(state.mode) }),
                None => return Ok(None),
            },
        };
        Ok(Some(Edit { place: change.place.clone(), before: now, after }))
    }
}

/// Changes files for one call.
pub(super) struct Changer {
    /// None where files can't be changed: in previews, and without a state folder.
    pub(super) workshop: Option<Arc<Workshop>>,
    pub(super) files: Arc<dyn Files>,
    pub(super) veil: Arc<dyn Veil>,
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) versions: Arc<Versions>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) origin: Arc<Origin>,
    pub(super) session: String,
}

impl Changes for Changer {
    fn make(&self, edits: Vec<Edit>) -> Result<Vec<Change>, ToolError> {
        let workshop = self.workshop.as_ref().ok_or_else(|| ToolError::internal("Files can't be changed here."))?;
        let turn = workshop.state.begin_change()?;
        workshop.put_back(&turn, self.files.as_ref(), self.veil.as_ref())?;
        let changes = self.keep(workshop, &edits)?;
        let happening = Happening::FilesChanging { changes: changes.clone() };
        self.recorder.record(&[self.origin.event(self.clock.now(), happening)])?;
        let note = ChangeNote { id: self.clock.id().simple().to_string(), changes };
        turn.note(&note)?;
        let made = self.files.apply(&edits, &note.id);
        turn.done()?;
        made?;
        let changes = note.changes;
        for change in &changes {
            self.versions.wrote(&self.session, &self.origin.tool_call_id, change);
        }
        Ok(changes)
    }

    fn saw(&self, place: &Place, sha256: &str) {
        self.versions.saw(&self.session, &self.origin.tool_call_id, place, sha256);
    }

    fn seen(&self, place: &Place) -> Option<Seen> {
        self.versions.seen(&self.session, place)
    }

    fn author(&self, place: &Place, sha256: &str) -> Option<String> {
        self.versions.author(place, sha256)
    }
}

impl Changer {
    /// Stores before and after, and refuses when something else is there than what the tool saw.
    fn keep(&self, workshop: &Workshop, edits: &[Edit]) -> Result<Vec<Change>, ToolError> {
        let mut changes = Vec::with_capacity(edits.len());
        for edit in edits {
            let found = read(self.files.as_ref(), &edit.place)?;
            if found.as_ref().map(|found| &found.0) != edit.before.as_ref() {
                return Err(self.moved_on(&edit.place, found.map(|found| found.0)));
            }
            let old_mode = found.as_ref().map(|found| found.1);
            let before = match &found {
                Some((bytes, mode)) => Some(state(workshop.contents.put(bytes)?, bytes, *mode)),
                None => None,
            };
            let after = match &edit.after {
                Some(Content { bytes, mode }) => {
                    Some(state(workshop.contents.put(bytes)?, bytes, mode.or(old_mode).unwrap_or(0o644)))
                }
                None => None,
            };
            changes.push(Change { path: self.files.shown(&edit.place), place: edit.place.clone(), before, after });
        }
        Ok(changes)
    }

    fn moved_on(&self, place: &Place, now: Option<Vec<u8>>) -> ToolError {
        let by = now.and_then(|bytes| self.versions.author(place, &sha256(bytes)));
        let by = by.map_or_else(|| "something outside this gate".into(), |call| format!("the call {call}"));
        ToolError::new(
            ErrorCode::StaleFile,
            format!("`{}` was changed by {by} in the meantime.", self.files.shown(place)),
        )
    }
}

fn state(sha256: String, bytes: &[u8], mode: u32) -> FileState {
    FileState { sha256, bytes: bytes.len() as u64, mode }
}

/// A file's bytes and permission bits; none when nothing is there.
pub(crate) fn read(files: &dyn Files, place: &Place) -> Result<Option<(Vec<u8>, u32)>, ToolError> {
    let mut file = match files.open(place) {
        Ok(file) => file,
        Err(error) if error.code == ErrorCode::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let fault = |error| ToolError::io(&format!("`{}` can't be read", place.path), &error);
    let mode = file.metadata().map_err(fault)?.permissions().mode() & 0o7777;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(fault)?;
    Ok(Some((bytes, mode)))
}
