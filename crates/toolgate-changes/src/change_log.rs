//! The log that every change in a workspace goes through: one change at a time, with the previous content stored, and
//! reverted after a kill.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use toolgate_contract::{
    Change, ErrorCode, FileState, Files, HiddenPaths, NamedChanges, QuarantinedPath, StagedChanges, ToolError,
    UnreadableChange, WorkspacePath,
};
use toolgate_journal::{
    BlobStore, CallQuarantine, ChangeLock, ChangeNotice, NoticeKind, PlaceFile, RunOptions, SnapshotStore,
    StateDirectory,
};

use crate::in_place_command::InPlaceCommand;
use crate::own_files::made_in_session;
use crate::settle::ChangeSelection;

/// What a signature is for.
const APPROVED_OF_REHEARSAL: &str = "approved of a rehearsal of";

/// The new content of a command's changes is stored for display, for files up to this size and up to this total.
const MAX_STORED_FILE: u64 = 256 * 1024;
const MAX_STORED_TOTAL: u64 = 16 * 1024 * 1024;

/// Serializes and records every change in a workspace.
pub struct ChangeLog {
    pub(crate) state: StateDirectory,
    contents: Arc<BlobStore>,
    /// How runs are recorded; the key signs snapshots too, and what was approved of rehearsals.
    pub(crate) options: RunOptions,
    /// Running commands that change files in place.
    in_place: Mutex<Vec<Weak<InPlaceCommand>>>,
}

impl ChangeLog {
    /// The log of changes in this state directory, with this store for previous contents. The key of the options signs
    /// snapshots.
    pub fn new(state: StateDirectory, contents: Arc<BlobStore>, options: RunOptions) -> Self {
        Self { state, contents, options, in_place: Mutex::default() }
    }

    /// Waits for the change lock. A change that a killed process left half done is reverted first.
    pub(crate) fn turn(&self, files: &dyn Files, hidden_paths: &dyn HiddenPaths) -> Result<ChangeLock, ToolError> {
        let turn = self.state.begin_change()?;
        self.revert_unfinished(&turn, files, Some(hidden_paths))?;
        Ok(turn)
    }

    /// The snapshots of this workspace.
    pub(crate) fn snapshots(&self) -> Result<SnapshotStore, ToolError> {
        Ok(self.state.snapshots(self.options.key.clone())?)
    }

    /// The changes that a session made itself, also in earlier programs.
    pub(crate) fn made_in_session(&self, session: &str, now: Timestamp) -> Result<Vec<Vec<Change>>, ToolError> {
        let Some(key) = &self.options.key else { return Ok(Vec::new()) };
        made_in_session(self.state.path(), key, session, now)
    }

    /// What was approved by name of a rehearsal of this run, to be kept with it: `commit` may be another process. A rehearsal
    /// that came with a repository isn't signed with our key, and has nothing approved.
    pub(crate) fn signed_approval(&self, run: &str, approved: &NamedChanges) -> Vec<u8> {
        let key = self.options.key.as_ref().filter(|_| !approved.is_empty());
        let signed = key.zip(serde_json::to_vec(approved).ok());
        signed.map(|(key, approved)| key.seal(&format!("{APPROVED_OF_REHEARSAL} {run}"), &approved)).unwrap_or_default()
    }

    /// Reads what [`ChangeLog::signed_approval`] made.
    pub(crate) fn approval(&self, run: &str, signed: &[u8]) -> NamedChanges {
        let key = self.options.key.as_ref();
        let approved = key.and_then(|key| key.unseal(&format!("{APPROVED_OF_REHEARSAL} {run}"), signed));
        approved.and_then(|approved| serde_json::from_slice(approved).ok()).unwrap_or_default()
    }

    /// The file contents that undo needs.
    pub(crate) fn contents(&self) -> &BlobStore {
        &self.contents
    }

    /// From now on, other changes wait until this command's own changes are recorded.
    pub(crate) fn watch(&self, in_place: &Arc<InPlaceCommand>) {
        self.in_place().push(Arc::downgrade(in_place));
    }

    /// Whether the state directory is still where it was opened.
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

    /// Tells the commands that work in place, of every process, what a call changed: it isn't theirs. Where one of them is of
    /// another process, the new content is stored too, since the command may replace it before that process looks. The
    /// caller holds the change lock, and the change isn't marked as complete yet: after a kill it is reverted, and the
    /// notice with it.
    pub(crate) fn tell_commands(&self, id: &str, changes: &[Change], files: &dyn Files) -> Result<(), ToolError> {
        if self.snapshots()?.unsettled()?.is_empty() {
            return Ok(());
        }
        let changes = changes.iter().map(|change| with_time(change, files)).collect();
        self.tell(&ChangeNotice { id: id.to_owned(), changes, kind: NoticeKind::Made }, files, None)
    }

    /// Tells every other command what the one with this snapshot was found to have changed.
    pub(crate) fn tell_other_commands(
        &self,
        id: &str,
        changes: Vec<Change>,
        files: &dyn Files,
        snapshot: &str,
    ) -> Result<(), ToolError> {
        let notice = ChangeNotice { id: id.to_owned(), changes, kind: NoticeKind::Found };
        self.tell(&notice, files, Some(snapshot))
    }

    fn tell(&self, notice: &ChangeNotice, files: &dyn Files, snapshot: Option<&str>) -> Result<(), ToolError> {
        let told = self.notify(notice, snapshot)?;
        let in_process = self.watched().iter().filter(|in_place| in_place.is_unsettled()).count();
        if told <= in_process.saturating_sub(usize::from(snapshot.is_some())) {
            return Ok(());
        }
        with_closed_directories(&notice.changes, files, || self.store_new_contents(&notice.changes, files))
    }

    /// Stores what a change left, for commands of other processes.
    fn store_new_contents(&self, changes: &[Change], files: &dyn Files) -> Result<(), ToolError> {
        for change in changes {
            match &change.after {
                Some(after) if after.is_link() => {
                    let link = files.content(&change.place, u64::MAX).ok().flatten();
                    link.map_or(Ok(()), |link| self.contents.put(&link.bytes))?;
                }
                Some(after) if after.is_file() => {
                    let file = files.node(&change.place, true)?.and_then(|node| node.file);
                    file.map_or(Ok(true), |file| self.contents.adopt(&file, after, false))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Leaves a notice for every command that isn't settled, but the one with this snapshot, and says how many there are.
    pub(crate) fn notify(&self, notice: &ChangeNotice, except: Option<&str>) -> Result<usize, ToolError> {
        let snapshots = self.snapshots()?;
        let mut unsettled = snapshots.unsettled()?;
        unsettled.retain(|name| Some(name.as_str()) != except);
        snapshots.notify(&unsettled, notice)?;
        Ok(unsettled.len())
    }

    /// The change that reverts one path; none when it never changed, or its previous content is no longer stored.
    pub(crate) fn inverse(&self, change: &Change, files: &dyn Files) -> Result<Option<Change>, ToolError> {
        let now = files.node(&change.place, true)?.map(|node| node.state);
        let has_happened = FileState::same(now.as_ref(), change.after.as_ref());
        if !has_happened || change.is_nothing() || !self.can_be_restored(change) {
            return Ok(None);
        }
        Ok(Some(Change { before: now, after: change.before.clone(), ..change.clone() }))
    }

    /// Stores the current content before it is replaced. A file of which every name is replaced isn't copied.
    pub(crate) fn adopt(&self, changes: &[Change], files: &dyn Files) -> Result<(), ToolError> {
        // Needed once a file has several names, which few have: looking at every file twice would be most of the work.
        let mut replaced_names: Option<HashMap<u64, u64>> = None;
        for change in changes {
            match &change.before {
                Some(before) if before.is_link() => {
                    let link =
                        files.content(&change.place, u64::MAX)?.filter(|link| link.bytes.sha256() == before.sha256);
                    self.contents.put(&link.ok_or_else(|| changed_meanwhile(&change.path))?.bytes)?;
                }
                before => {
                    let node = files.node(&change.place, true)?;
                    if !is_as_before(node.as_ref().map(|node| &node.state), before.as_ref()) {
                        return Err(changed_meanwhile(&change.path));
                    }
                    // A file that stays where it is keeps its content.
                    if let (Some(node), Some(before)) = (node.filter(|_| !change.is_metadata_only()), before) {
                        if node.links > 1 && replaced_names.is_none() {
                            replaced_names = Some(names_replaced(changes, files)?);
                        }
                        let replaced = replaced_names.as_ref().and_then(|names| names.get(&node.number));
                        let alone = node.links == 1 || replaced == Some(&node.links);
                        // What somebody has open for writing is copied: they can go on writing.
                        let adopt = |file: File| self.contents.adopt(&file, before, alone && !files.has_writers(&file));
                        if !node.file.map_or(Ok(true), adopt)? {
                            return Err(changed_meanwhile(&change.path));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes sure that nobody can change adopted contents any more.
    pub(crate) fn own(&self, changes: &[Change], files: &dyn Files) -> Result<(), ToolError> {
        let hashes: BTreeSet<&str> =
            changes.iter().filter_map(|change| Some(change.before.as_ref()?.sha256.as_str())).collect();
        let has_writers = |file: &File| files.has_writers(file);
        hashes.into_iter().try_for_each(|hash| Ok(self.contents.own(hash, &has_writers)?))
    }

    /// How many of these can't be undone, because their previous content exceeds the quota.
    pub(crate) fn beyond_quota(&self, changes: &[Change]) -> usize {
        changes.iter().filter(|change| !self.can_be_restored(change)).count()
    }

    /// Whether the previous content is still stored.
    pub(crate) fn can_be_restored(&self, change: &Change) -> bool {
        let is_stored = |state: &FileState| !has_bytes(state) || self.contents.has(state);
        change.is_metadata_only() || change.before.as_ref().is_none_or(is_stored)
    }

    /// A private directory in the run for the scripts of one skill.
    pub(crate) fn own_directory(&self, run: &str, name: &str) -> Result<PathBuf, ToolError> {
        Ok(self.state.own_directory(run, name)?)
    }

    /// The quarantine of one call.
    pub(crate) fn quarantine_of(&self, call: &str) -> Result<CallQuarantine, ToolError> {
        Ok(self.state.quarantine()?.for_call(call)?)
    }

    /// The paths that are in the quarantine of one call.
    pub(crate) fn quarantined_paths(&self, call: &str) -> BTreeSet<String> {
        let changes = self.state.quarantine().and_then(|quarantine| quarantine.changes(call));
        changes.unwrap_or_default().into_iter().map(|change| change.path).collect()
    }

    /// Moves changes that aren't applied to the quarantine.
    pub(crate) fn quarantine(
        &self,
        call: &str,
        staged: &dyn StagedChanges,
        choice: &ChangeSelection,
    ) -> Result<Vec<QuarantinedPath>, ToolError> {
        if choice.quarantined.is_empty() && choice.unreadable.is_empty() {
            return Ok(Vec::new());
        }
        let mut quarantine = self.quarantine_of(call)?;
        let added = choice.quarantined.iter().try_for_each(|(change, reason)| {
            let place_file =
                |directory: BorrowedFd<'_>, name: &str| staged.put(change, directory, name.as_bytes(), name);
            add_to_quarantine(&mut quarantine, change, reason, &place_file)
        });
        let taken = choice.unreadable.iter().try_for_each(|unreadable| {
            let UnreadableChange { path, place, mode, reason } = unreadable;
            let take_whole = |directory: BorrowedFd<'_>, name: &str| staged.take_whole(place, directory, name);
            let place_file = mode.is_some().then_some(&take_whole as &PlaceFile<'_>);
            Ok(quarantine.add(path, reason, *mode, place_file)?)
        });
        quarantine.save()?;
        // Another name of a quarantined file may be among the changes that are applied. Nobody has one open: the command has ended.
        quarantine.own_contents(&|_| false);
        added.and(taken)?;
        Ok(choice.would_be_quarantined())
    }

    /// Stores the new content of small files as well, so that the change can be shown later.
    pub(crate) fn keep_for_diffs(&self, changes: &[Change], files: &dyn Files) {
        let mut remaining = MAX_STORED_TOTAL;
        for change in changes {
            let Some(after) = change.after.as_ref().filter(|after| after.is_file() || after.is_link()) else {
                continue;
            };
            if after.bytes > MAX_STORED_FILE || after.bytes > remaining {
                continue;
            }
            remaining -= after.bytes;
            // Only needed for display; everything else works without it.
            if let Ok(Some(content)) = files.content(&change.place, MAX_STORED_FILE) {
                let _ = self.contents.put(&content.bytes);
            }
        }
    }
}

/// A change that was just made, with the time of the new file: whoever announced the change couldn't know it.
fn with_time(change: &Change, files: &dyn Files) -> Change {
    let mut change = change.clone();
    if let Some(after) = change.after.as_mut().filter(|after| after.is_file() && after.modified.is_none()) {
        after.modified = files.node(&change.place, false).ok().flatten().and_then(|node| node.state.modified);
    }
    change
}

/// How many names of each file are replaced, by inode number.
fn names_replaced(changes: &[Change], files: &dyn Files) -> Result<HashMap<u64, u64>, ToolError> {
    let mut names = HashMap::new();
    let is_replaced =
        |change: &&Change| change.before.as_ref().is_some_and(FileState::is_file) && !change.is_metadata_only();
    for change in changes.iter().filter(is_replaced) {
        if let Some(node) = files.node(&change.place, false)? {
            *names.entry(node.number).or_default() += 1;
        }
    }
    Ok(names)
}

/// Does something with the files of a change, once more if it fails: this change or an earlier one may have closed a directory to
/// its owner, who can open it for that long.
pub(crate) fn with_closed_directories<T>(
    changes: &[Change],
    files: &dyn Files,
    act: impl Fn() -> Result<T, ToolError>,
) -> Result<T, ToolError> {
    let done = act();
    if done.is_ok() {
        return done;
    }
    let places = changes.iter().map(|change| &change.place);
    let directories: BTreeSet<WorkspacePath> =
        places.flat_map(|place| place.ancestors().chain([place.clone()])).collect();
    let is_closed = |place: &WorkspacePath| {
        let found = files.node(place, false).ok().flatten();
        found.is_some_and(|node| node.state.is_directory() && node.state.permissions() & 0o700 != 0o700)
    };
    // Outermost first: what is in a closed directory can't be looked at.
    let mut opened = Vec::new();
    for directory in directories {
        if is_closed(&directory) && files.suspend_mode(&directory).is_ok() {
            opened.push(directory);
        }
    }
    if opened.is_empty() {
        return done;
    }
    let again = act();
    opened.iter().rev().for_each(|directory| files.restore_mode(directory));
    again
}

/// Adds a change to the quarantine of a call.
pub(crate) fn add_to_quarantine(
    quarantine: &mut CallQuarantine,
    change: &Change,
    reason: &str,
    place_file: &PlaceFile<'_>,
) -> Result<(), ToolError> {
    let place_file = change.after.as_ref().is_some_and(has_bytes).then_some(place_file);
    Ok(quarantine.add(&change.path, reason, change.after.as_ref().map(|after| after.mode), place_file)?)
}

/// Whether a path is still what it was. A look at a directory doesn't tell its time, which every new entry changes, and none
/// tells attributes.
fn is_as_before(now: Option<&FileState>, before: Option<&FileState>) -> bool {
    let seen = before.map(|before| FileState {
        modified: before.modified.filter(|_| !before.is_directory()),
        attributes: None,
        ..before.clone()
    });
    now == seen.as_ref()
}

/// Directories and pipes have no content and are recreated from their mode.
fn has_bytes(state: &FileState) -> bool {
    state.is_file() || state.is_link()
}

fn changed_meanwhile(path: &str) -> ToolError {
    ToolError::new(
        ErrorCode::StaleFile,
        format!("`{path}` was changed by something outside this gate in the meantime."),
    )
}
