//! What every change in a workspace goes through: one at a time, with what was there kept, and put back after a kill.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeSet, HashMap};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use toolgate_contract::{
    Access, Change, ErrorCode, FileState, Files, HiddenPaths, QuarantinedPath, StagedChanges, ToolError, WorkspacePath,
};
use toolgate_journal::{
    BlobStore, CallQuarantine, ChangeIntent, ChangeLock, PlaceFile, SigningKey, SnapshotStore, StateDirectory,
};

use crate::in_place_command::InPlaceCommand;
use crate::settle::ChangeSelection;

/// The id of what mends; it becomes part of temporary names.
const MENDING: &str = "mend";

/// The new side of a command's changes is kept, to be shown, of files up to this size and up to this much together.
const SMALL: u64 = 256 * 1024;
const KEPT_OF_NEW: u64 = 16 * 1024 * 1024;

/// What every change in a workspace goes through.
pub struct ChangeLog {
    pub(crate) state: StateDirectory,
    contents: Arc<BlobStore>,
    /// Seals snapshots.
    key: Option<SigningKey>,
    /// Commands that work straight on the workspace now.
    in_place: Mutex<Vec<Weak<InPlaceCommand>>>,
}

impl ChangeLog {
    /// The log of changes in this state directory, with this store for what was there before. The key signs snapshots.
    pub fn new(state: StateDirectory, contents: Arc<BlobStore>, key: Option<SigningKey>) -> Self {
        Self { state, contents, key, in_place: Mutex::default() }
    }

    /// Waits for the turn to change files. What somebody who was killed left half done is put back first.
    pub(crate) fn turn(&self, files: &dyn Files, hidden_paths: &dyn HiddenPaths) -> Result<ChangeLock, ToolError> {
        let turn = self.state.begin_change()?;
        self.put_back(&turn, files, Some(hidden_paths))?;
        Ok(turn)
    }

    /// Where snapshots lie.
    pub(crate) fn snapshots(&self) -> Result<SnapshotStore, ToolError> {
        Ok(self.state.snapshots(self.key.clone())?)
    }

    /// The bytes behind undo.
    pub(crate) fn contents(&self) -> &BlobStore {
        &self.contents
    }

    /// From now on, whoever changes a file lets this command's own changes go on record first.
    pub(crate) fn watch(&self, in_place: &Arc<InPlaceCommand>) {
        self.in_place().push(Arc::downgrade(in_place));
    }

    /// Whether Toolgate's own state is where it was.
    pub(crate) fn is_in_place(&self) -> bool {
        self.state.is_in_place()
    }

    fn in_place(&self) -> MutexGuard<'_, Vec<Weak<InPlaceCommand>>> {
        self.in_place.lock()
    }

    pub(crate) fn watched(&self) -> Vec<Arc<InPlaceCommand>> {
        let mut in_place = self.in_place();
        in_place.retain(|one| one.strong_count() > 0);
        in_place.iter().filter_map(Weak::upgrade).collect()
    }

    /// What did change goes back to what it was. With a veil, it only goes away again at places that policy hides: a note that
    /// was found may have come with a repository, and can put nothing there.
    pub(crate) fn put_back(
        &self,
        turn: &ChangeLock,
        files: &dyn Files,
        hidden_paths: Option<&dyn HiddenPaths>,
    ) -> Result<(), ToolError> {
        let Some(ChangeIntent { id, changes }) = turn.unfinished()? else { return Ok(()) };
        let places: Vec<WorkspacePath> = changes.iter().map(|change| change.place.clone()).collect();
        files.clear_temporary(&places, &id)?;
        let mut back = Vec::new();
        let is_hidden =
            |place: &WorkspacePath| hidden_paths.is_some_and(|hidden_paths| hidden_paths.hides(Access::Write, place));
        let may_go_back = |change: &&Change| change.before.is_none() || !is_hidden(&change.place);
        for change in changes.iter().filter(may_go_back) {
            back.extend(self.way_back(change, files)?);
        }
        // Whoever mended before may have been killed too.
        let places: Vec<WorkspacePath> = back.iter().map(|change| change.place.clone()).collect();
        files.clear_temporary(&places, MENDING)?;
        files.arrange(&back, self.contents.as_ref(), MENDING)?;
        self.own(&changes)?;
        Ok(turn.done()?)
    }

    /// The change that takes one place back; none when it never changed, or what it was is no longer kept.
    pub(crate) fn way_back(&self, change: &Change, files: &dyn Files) -> Result<Option<Change>, ToolError> {
        let now = files.node(&change.place, true)?.map(|node| node.state);
        let has_happened = FileState::same(now.as_ref(), change.after.as_ref());
        if !has_happened || change.before == change.after || !self.can_be_restored(change) {
            return Ok(None);
        }
        Ok(Some(Change { before: now, after: change.before.clone(), ..change.clone() }))
    }

    /// Keeps what is there before it goes. A file of which every name goes isn't copied.
    pub(crate) fn adopt(&self, changes: &[Change], files: &dyn Files) -> Result<(), ToolError> {
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
    pub(crate) fn own(&self, changes: &[Change]) -> Result<(), ToolError> {
        let hashes: BTreeSet<&str> =
            changes.iter().filter_map(|change| Some(change.before.as_ref()?.sha256.as_str())).collect();
        hashes.into_iter().try_for_each(|hash| Ok(self.contents.own(hash)?))
    }

    /// How many of these can't be taken back, because what they were is more than is kept.
    pub(crate) fn beyond_quota(&self, changes: &[Change]) -> usize {
        changes.iter().filter(|change| !self.can_be_restored(change)).count()
    }

    /// Whether what was there before can still be had.
    pub(crate) fn can_be_restored(&self, change: &Change) -> bool {
        change.before.as_ref().is_none_or(|state| !has_bytes(state) || self.contents.has(state))
    }

    /// A directory in the run for scripts of one skill alone.
    pub(crate) fn own_directory(&self, run: &str, name: &str) -> Result<PathBuf, ToolError> {
        Ok(self.state.own_directory(run, name)?)
    }

    /// The quarantine of one call.
    pub(crate) fn room(&self, call: &str) -> Result<CallQuarantine, ToolError> {
        Ok(self.state.quarantine()?.room(call)?)
    }

    /// Moves what isn't put in place to where a person can look at it.
    pub(crate) fn set_aside(
        &self,
        call: &str,
        staged: &dyn StagedChanges,
        choice: &ChangeSelection,
    ) -> Result<Vec<QuarantinedPath>, ToolError> {
        if choice.aside.is_empty() {
            return Ok(Vec::new());
        }
        let mut room = self.room(call)?;
        let taken = choice.aside.iter().try_for_each(|(change, reason)| {
            let hand = |directory: BorrowedFd<'_>, name: &str| staged.put(change, directory, name, name);
            take_in(&mut room, change, reason, &hand)
        });
        room.note()?;
        taken?;
        Ok(choice.aside.iter().cloned().map(aside).collect())
    }

    /// Keeps the new side of changes as well, as far as it is small: then they can be shown later.
    pub(crate) fn keep_for_diffs(&self, changes: &[Change], files: &dyn Files) {
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

pub(crate) fn aside((change, reason): (Change, String)) -> QuarantinedPath {
    QuarantinedPath { path: change.path, reason }
}

/// Takes what a change brought into a room.
pub(crate) fn take_in(
    room: &mut CallQuarantine,
    change: &Change,
    reason: &str,
    hand: &PlaceFile<'_>,
) -> Result<(), ToolError> {
    let hand = change.after.as_ref().is_some_and(has_bytes).then_some(hand);
    Ok(room.take_in(&change.path, reason, change.after.as_ref().map(|after| after.mode), hand)?)
}

/// Directories and pipes are made anew from what is known of them.
fn has_bytes(state: &FileState) -> bool {
    state.is_file() || state.is_link()
}

fn moved_on(path: &str) -> ToolError {
    ToolError::new(
        ErrorCode::StaleFile,
        format!("`{path}` was changed by something outside this gate in the meantime."),
    )
}
