//! Changes files for one call: checked against what the tool saw, kept for undo, recorded, then made, in that order.

use std::io::{ErrorKind, Read};
use std::sync::{Arc, Once};

use toolgate_contract::{
    Change, Changes, Clock, Content, Edit, ErrorCode, FileState, Files, Happening, Opened, Place, Seen, Source,
    ToolError, Veil,
};
use toolgate_journal::{ChangeNote, Changing};

use super::speaker::Origin;
use super::workshop::Workshop;
use crate::session::Recorder;
use crate::versions::Versions;

/// Bytes of a file that are compared at a time; they stay in the processor's cache.
const PIECE: usize = 128 * 1024;

/// Memory that stays with the process when it is free; glibc doubles it.
const KEPT_FREE: usize = 8 * 1024 * 1024;

/// Whether the C library would ask the kernel for this much anew each time.
fn is_large(content: &Content) -> bool {
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
        let workshop = self.workshop()?;
        let turn = workshop.turn(self.files.as_ref(), self.veil.as_ref())?;
        let places: Vec<Place> = edits.iter().map(|edit| edit.place.clone()).collect();
        let beside = workshop.watched();
        beside.iter().try_for_each(|straight| straight.catch_up(Some(&places)))?;
        let id = self.clock.id().simple().to_string();
        let mut changes = Vec::new();
        let made = self.files.apply(&edits, &id, &mut || {
            changes = self.announce(workshop, &turn, &edits, &id)?;
            Ok(())
        });
        turn.done()?;
        made?;
        beside.iter().try_for_each(|straight| straight.moved_on(&places))?;
        for change in &changes {
            self.versions.wrote(&self.session, &self.origin.tool_call_id, change);
        }
        Ok(changes)
    }

    fn arrange(&self, changes: Vec<Change>, source: &dyn Source) -> Result<(), ToolError> {
        let workshop = self.workshop()?;
        let (files, veil) = (self.files.as_ref(), self.veil.as_ref());
        let turn = workshop.turn(files, veil)?;
        let places: Vec<Place> = changes.iter().map(|change| change.place.clone()).collect();
        let beside = workshop.watched();
        beside.iter().try_for_each(|straight| straight.catch_up(Some(&places)))?;
        let id = self.clock.id().simple().to_string();
        let _needed = workshop.contents().hold(&changes);
        if let Err(error) = workshop.adopt(&changes, files).and_then(|()| self.record(&turn, &id, &changes)) {
            workshop.own(&changes)?;
            return Err(error);
        }
        if let Err(error) = files.arrange(&changes, source, &id) {
            // The note is still there: what was done of it is taken back as after a crash.
            workshop.put_back(&turn, files, None)?;
            return Err(error.with_hint("Everything is as it was before."));
        }
        turn.done()?;
        workshop.own(&changes)?;
        beside.iter().try_for_each(|straight| straight.moved_on(&places))?;
        for change in &changes {
            self.versions.wrote(&self.session, &self.origin.tool_call_id, change);
        }
        Ok(())
    }

    fn run(&self) -> &str {
        &self.origin.run
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
    /// Keeps the way back, records what is about to change, and notes it for whoever would have to put it back.
    fn announce(
        &self,
        workshop: &Workshop,
        turn: &Changing,
        edits: &[Edit],
        id: &str,
    ) -> Result<Vec<Change>, ToolError> {
        if edits.iter().flat_map(|edit| [&edit.before, &edit.after]).flatten().any(is_large) {
            keep_freed_memory();
        }
        let changes = self.keep(workshop, edits)?;
        self.record(turn, id, &changes)?;
        Ok(changes)
    }

    /// From here on it can be taken back, whoever is killed.
    fn record(&self, turn: &Changing, id: &str, changes: &[Change]) -> Result<(), ToolError> {
        let happening = Happening::FilesChanging { changes: changes.to_vec() };
        self.recorder.record(&[self.origin.event(self.clock.now(), happening)])?;
        Ok(turn.note(&ChangeNote { id: id.to_owned(), changes: changes.to_vec() })?)
    }

    /// Puts on record what was taken back of a change that wasn't ours to make.
    pub(super) fn took_back(&self, changes: &[Change]) -> Result<(), ToolError> {
        if changes.is_empty() {
            return Ok(());
        }
        let happening = Happening::FilesChanging { changes: changes.to_vec() };
        self.recorder.record(&[self.origin.event(self.clock.now(), happening)])?;
        changes.iter().for_each(|change| self.versions.wrote(&self.session, &self.origin.tool_call_id, change));
        Ok(())
    }

    pub(super) fn workshop(&self) -> Result<&Arc<Workshop>, ToolError> {
        self.workshop.as_ref().ok_or_else(|| ToolError::internal("Files can't be changed here."))
    }

    /// Stores before and after, and refuses when something else is there than what the tool saw.
    fn keep(&self, workshop: &Workshop, edits: &[Edit]) -> Result<Vec<Change>, ToolError> {
        let mut changes = Vec::with_capacity(edits.len());
        for Edit { place, before, after } in edits {
            let old_mode = self.mode_if_still(before.as_ref(), place)?;
            let keep = |content: &Content, usual: Option<u32>| {
                workshop.contents().put(&content.bytes)?;
                let mode = content.mode.or(usual).unwrap_or(0o644);
                let sha256 = content.bytes.sha256().to_owned();
                Ok::<_, ToolError>(FileState { sha256, bytes: content.bytes.len() as u64, mode })
            };
            let before = before.as_ref().map(|content| keep(&Content { mode: old_mode, ..content.clone() }, None));
            let after = after.as_ref().map(|content| keep(content, old_mode));
            changes.push(Change {
                path: self.files.shown(place),
                place: place.clone(),
                before: before.transpose()?,
                after: after.transpose()?,
            });
        }
        Ok(changes)
    }

    /// The mode of what is there, or the refusal when that is no longer what the tool saw.
    fn mode_if_still(&self, before: Option<&Content>, place: &Place) -> Result<Option<u32>, ToolError> {
        let files = self.files.as_ref();
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

    fn moved_on(&self, place: &Place) -> ToolError {
        let now = self.files.content(place, u64::MAX).ok().flatten();
        let by = now.and_then(|content| self.versions.author(place, content.bytes.sha256()));
        let by = by.map_or_else(|| "something outside this gate".into(), |call| format!("the call {call}"));
        ToolError::new(
            ErrorCode::StaleFile,
            format!("`{}` was changed by {by} in the meantime.", self.files.shown(place)),
        )
    }
}

/// Whether a file holds exactly these bytes. It is read piece by piece, so that nothing large has to be put aside.
fn holds(opened: &Opened, expected: &[u8], place: &Place) -> Result<bool, ToolError> {
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
