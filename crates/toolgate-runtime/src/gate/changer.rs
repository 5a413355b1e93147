//! Changes files for one call: checked against what the tool saw, kept for undo, recorded, then made, in that order.

use std::collections::{BTreeSet, HashMap};
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use toolgate_contract::{
    Access, Change, Changes, Clock, Content, Edit, ErrorCode, Event, FileState, Files, Happening, KeptAside, Opened,
    Place, Seen, Source, ToolError, Veil,
};
use toolgate_journal::{
    Abandoned, ChangeNote, Changing, Contents, Held, JournalError, RunOptions, Scope, SealKey, Snapshot, Snapshots,
    State,
};

use super::settler::{Choice, Chooser};
use super::speaker::Origin;
use super::straight::Straight;
use crate::session::Recorder;
use crate::versions::Versions;

/// Bytes of a file that are compared at a time; they stay in the processor's cache.
const PIECE: usize = 128 * 1024;

/// The id of what mends; it becomes part of temporary names.
const MENDING: &str = "mend";

/// The new side of a command's changes is kept, to be shown, of files up to this size and up to this much together.
const SMALL: u64 = 256 * 1024;
const KEPT_OF_NEW: u64 = 16 * 1024 * 1024;

/// Memory that stays with the process when it is free; glibc doubles it.
const KEPT_FREE: usize = 8 * 1024 * 1024;

/// What every change in a workspace goes through.
pub(crate) struct Workshop {
    state: State,
    contents: Arc<Contents>,
    /// Seals snapshots.
    key: Option<SealKey>,
    /// Commands that work straight on the workspace now.
    straight: Mutex<Vec<Weak<Straight>>>,
}

impl Workshop {
    pub(crate) fn new(state: State, contents: Arc<Contents>, key: Option<SealKey>) -> Self {
        Self { state, contents, key, straight: Mutex::default() }
    }

    /// Puts back what somebody who was killed left half done, and on record what their commands did straight to the workspace.
    /// Says what of that couldn't be believed, and what a person should look at.
    pub(super) fn mend(&self, chooser: &Chooser, options: &RunOptions) -> Result<Vec<String>, ToolError> {
        let files = chooser.files.as_ref();
        let _turn = self.turn(files, chooser.veil.as_ref())?;
        let snapshots = self.snapshots()?;
        let Abandoned { snapshots: abandoned, mut warnings } = snapshots.abandoned()?;
        for snapshot in abandoned {
            let call = snapshot.scope().call.clone();
            match self.settle_abandoned(snapshot, files, options) {
                Ok(changes) => warnings.extend(chooser.remarks(&changes)),
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
        mut one: Snapshot,
        files: &dyn Files,
        options: &RunOptions,
    ) -> Result<Vec<Change>, ToolError> {
        let Scope { run, call, .. } = one.scope().clone();
        let changes = one.changes(files, None)?;
        if !changes.is_empty() {
            let opened = match self.state.open_run(&run, options) {
                Err(error @ (JournalError::NoSuchRun { .. } | JournalError::Damaged { .. })) => {
                    // Nobody will ever be able to; all that it is good for is to be begun from.
                    one.rest();
                    return Err(error.into());
                }
                opened => opened?,
            };
            one.hand_over(&changes, &self.contents)?;
            let (time, happening) = (options.clock.now(), Happening::FilesChanging { changes: changes.clone() });
            let event = Event { time, run, turn: None, trace_id: None, tool_call_id: Some(call), happening };
            opened.journal.append(&[event])?;
            one.go_on(&changes, &self.contents, files)?;
        }
        one.rest();
        Ok(changes)
    }

    /// Waits for the turn to change files. What somebody who was killed left half done is put back first.
    pub(super) fn turn(&self, files: &dyn Files, veil: &dyn Veil) -> Result<Changing, ToolError> {
        let turn = self.state.begin_change()?;
        self.put_back(&turn, files, veil)?;
        Ok(turn)
    }

    /// Where snapshots lie.
    pub(super) fn snapshots(&self) -> Result<Snapshots, ToolError> {
        Ok(self.state.snapshots(self.key.clone())?)
    }

    /// The bytes behind undo.
    pub(super) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// From now on, whoever changes a file lets this command's own changes go on record first.
    pub(super) fn watch(&self, straight: &Arc<Straight>) {
        self.straight().push(Arc::downgrade(straight));
    }

    fn straight(&self) -> MutexGuard<'_, Vec<Weak<Straight>>> {
        self.straight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> Vec<Arc<Straight>> {
        let mut straight = self.straight();
        straight.retain(|one| one.strong_count() > 0);
        straight.iter().filter_map(Weak::upgrade).collect()
    }

    /// What did change goes back to what it was. At places that policy hides it only goes away again, so that a note which
    /// came with a repository can put nothing there.
    fn put_back(&self, turn: &Changing, files: &dyn Files, veil: &dyn Veil) -> Result<(), ToolError> {
        let Some(ChangeNote { id, changes }) = turn.unfinished()? else { return Ok(()) };
        let places: Vec<Place> = changes.iter().map(|change| change.place.clone()).collect();
        files.clear_temporary(&places, &id)?;
        let mut back = Vec::new();
        let may_go_back = |change: &&Change| change.before.is_none() || !veil.hides(Access::Write, &change.place);
        for change in changes.iter().filter(may_go_back) {
            back.extend(self.way_back(change, files)?);
        }
        // Whoever mended before may have been killed too.
        let places: Vec<Place> = back.iter().map(|change| change.place.clone()).collect();
        files.clear_temporary(&places, MENDING)?;
        files.arrange(&back, self.contents.as_ref(), MENDING)?;
        self.own(&changes)?;
        Ok(turn.done()?)
    }

    /// The change that takes one place back; none when it never changed, or what it was is no longer kept.
    fn way_back(&self, change: &Change, files: &dyn Files) -> Result<Option<Change>, ToolError> {
        let now = files.node(&change.place, true)?.map(|node| node.state);
        let has_happened = match (&now, &change.after) {
            (Some(now), Some(after)) => after.is(now),
            (now, after) => now.is_none() && after.is_none(),
        };
        if !has_happened || change.before == change.after || !self.can_go_back(change) {
            return Ok(None);
        }
        Ok(Some(Change { before: now, after: change.before.clone(), ..change.clone() }))
    }

    /// Keeps what is there before it goes. A file of which every name goes isn't copied.
    fn adopt(&self, changes: &[Change], files: &dyn Files) -> Result<(), ToolError> {
        let mut names_that_go: HashMap<u64, u64> = HashMap::new();
        let replaced = |change: &&Change| change.before.as_ref().is_some_and(FileState::is_file);
        for change in changes.iter().filter(replaced) {
            if let Some(node) = files.node(&change.place, false)? {
                *names_that_go.entry(node.number).or_default() += 1;
            }
        }
        for change in changes {
            match &change.before {
                Some(before) if before.is_link() => {
                    let link =
                        files.content(&change.place, u64::MAX)?.filter(|link| link.bytes.sha256() == before.sha256);
                    self.contents.put(&link.ok_or_else(|| moved_on(&change.path))?.bytes)?;
                }
                before => {
                    let node = files.node(&change.place, true)?;
                    if node.as_ref().map(|node| &node.state) != before.as_ref() {
                        return Err(moved_on(&change.path));
                    }
                    if let (Some(node), Some(before)) = (node, before) {
                        let alone = names_that_go.get(&node.number) == Some(&node.links);
                        node.file.map_or(Ok(()), |file| self.contents.adopt(&file, before, alone))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// What was adopted is ours alone from now on.
    fn own(&self, changes: &[Change]) -> Result<(), ToolError> {
        let hashes: BTreeSet<&str> =
            changes.iter().filter_map(|change| Some(change.before.as_ref()?.sha256.as_str())).collect();
        hashes.into_iter().try_for_each(|hash| Ok(self.contents.own(hash)?))
    }

    /// How many of these can't be taken back, because what they were is more than is kept.
    pub(super) fn beyond_quota(&self, changes: &[Change]) -> usize {
        changes.iter().filter(|change| !self.can_go_back(change)).count()
    }

    /// Whether what was there before can still be had.
    pub(super) fn can_go_back(&self, change: &Change) -> bool {
        change.before.as_ref().is_none_or(|state| !has_bytes(state) || self.contents.has(state))
    }

    /// A folder in the run for scripts of one skill alone.
    pub(crate) fn own_folder(&self, run: &str, name: &str) -> Result<PathBuf, ToolError> {
        Ok(self.state.own_folder(run, name)?)
    }

    /// Moves what isn't put in place to where a person can look at it.
    pub(crate) fn set_aside(
        &self,
        call: &str,
        source: &dyn Source,
        choice: &Choice,
    ) -> Result<Vec<KeptAside>, ToolError> {
        if choice.aside.is_empty() {
            return Ok(Vec::new());
        }
        let room = self.state.quarantine()?.room(call)?;
        let mut held = room.held()?;
        for (change, reason) in &choice.aside {
            let name = change.after.as_ref().is_some_and(has_bytes).then(|| held.len().to_string());
            if let Some(name) = &name {
                let temporary = format!("{name}.new");
                let written = source.write_out(change, room.fd(), &temporary);
                written
                    .and_then(|_| source.put(change, room.fd(), name, &temporary))
                    .map_err(|error| ToolError::io(&format!("`{}` can't be kept aside", change.path), &error))?;
            }
            let mode = change.after.as_ref().map(|after| after.mode);
            held.push(Held { path: change.path.clone(), reason: reason.clone(), mode, name });
        }
        room.note(&held)?;
        Ok(choice.aside.iter().cloned().map(aside).collect())
    }

    /// Keeps the new side of changes as well, as far as it is small: then they can be shown later.
    pub(super) fn keep_small(&self, changes: &[Change], files: &dyn Files) {
        let mut room = KEPT_OF_NEW;
        for change in changes {
            let Some(after) = change.after.as_ref().filter(|after| after.is_file() || after.is_link()) else {
                continue;
            };
            if after.bytes > SMALL || after.bytes > room {
                continue;
            }
            room -= after.bytes;
            // It is there for showing only; without it everything still works.
            if let Ok(Some(content)) = files.content(&change.place, SMALL) {
                let _ = self.contents.put(&content.bytes);
            }
        }
    }
}

pub(super) fn aside((change, reason): (Change, String)) -> KeptAside {
    KeptAside { path: change.path, reason }
}

/// Folders and pipes are made anew from what is known of them.
fn has_bytes(state: &FileState) -> bool {
    state.is_file() || state.is_link()
}

fn moved_on(path: &str) -> ToolError {
    ToolError::new(
        ErrorCode::StaleFile,
        format!("`{path}` was changed by something outside this gate in the meantime."),
    )
}

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
        if let Err(error) = workshop.adopt(&changes, files).and_then(|()| self.record(&turn, &id, &changes)) {
            workshop.own(&changes)?;
            return Err(error);
        }
        if let Err(error) = files.arrange(&changes, source, &id) {
            // The note is still there: what was done of it is taken back as after a crash.
            workshop.put_back(&turn, files, veil)?;
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

    pub(super) fn workshop(&self) -> Result<&Arc<Workshop>, ToolError> {
        self.workshop.as_ref().ok_or_else(|| ToolError::internal("Files can't be changed here."))
    }

    /// Stores before and after, and refuses when something else is there than what the tool saw.
    fn keep(&self, workshop: &Workshop, edits: &[Edit]) -> Result<Vec<Change>, ToolError> {
        let mut changes = Vec::with_capacity(edits.len());
        for Edit { place, before, after } in edits {
            let old_mode = self.mode_if_still(before.as_ref(), place)?;
            let keep = |content: &Content, usual: Option<u32>| {
                workshop.contents.put(&content.bytes)?;
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
