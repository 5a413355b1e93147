//! A snapshot of the workspace, taken before a command that changes files in place: a list of every path, and a copy of every
//! file, smallest first, up to the quota for undo. It tells how the workspace differs now, and is updated once the changes are
//! recorded. The next snapshot starts from the last, and copies only what has changed since.

mod entry;
mod manifest;
mod recording;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Seek;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Change, FileMetadata, FileState, Files, ToolError, VisitedEntry, Visitor, WalkOptions, WalkStep, WorkspacePath,
};
use toolgate_journal::{ClockEpoch, FilesystemTime, JournalError, SnapshotStore, StoredSnapshot};

use self::entry::{FileCopy, SnapshotEntry};
use self::manifest::{Manifest, ManifestContents, encode};
use self::recording::Unsealed;

/// The call that a snapshot belongs to, and the part of the workspace that it covers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SnapshotScope {
    /// The run that the command belongs to.
    pub(crate) run: String,
    /// The call that started it.
    pub(crate) call: String,
    /// The roots that the command can change.
    pub(crate) roots: Vec<usize>,
    /// Paths that the command can't change.
    pub(crate) except: BTreeSet<WorkspacePath>,
    /// The total size of copies, in bytes.
    pub(crate) quota: u64,
}

impl SnapshotScope {
    fn covers(&self, place: &WorkspacePath) -> bool {
        self.roots.contains(&place.root) && !self.except.iter().any(|except| except.covers(place))
    }
}

/// The state of the workspace at one time.
pub(crate) struct Snapshot {
    scope: SnapshotScope,
    places: BTreeMap<WorkspacePath, SnapshotEntry>,
    epoch: Option<ClockEpoch>,
    /// The number of the next copy, and how many bytes can still be copied.
    next: u64,
    room: u64,
    stored: StoredSnapshot,
    /// Changes that were found and that the journal may not have yet, and when they were found.
    unrecorded: Vec<Change>,
    found_at: Timestamp,
    /// Notices of other calls that the baseline includes.
    notices: BTreeSet<String>,
    unsealed: Unsealed,
    /// The command has ended, and everything that it changed is known.
    is_final: bool,
    /// Directories that were made accessible for now.
    suspended: Vec<WorkspacePath>,
}

impl Snapshot {
    /// Takes a snapshot of everything that the command can change. The caller holds the change lock.
    pub(crate) fn take(scope: SnapshotScope, store: &SnapshotStore, files: &dyn Files) -> Result<Self, ToolError> {
        let name = store.name_for(&scope.call)?;
        let (stored, earlier) = match from_last(store, &name) {
            Some(begun) => begun,
            None => (store.begin(&name)?, BTreeMap::new()),
        };
        let (room, next, epoch) = (scope.quota, first_free(&earlier), ClockEpoch::now());
        let mut snapshot = Self {
            scope,
            places: BTreeMap::new(),
            epoch,
            next,
            room,
            stored,
            unrecorded: Vec::new(),
            found_at: Timestamp::UNIX_EPOCH,
            notices: BTreeSet::new(),
            unsealed: Unsealed::default(),
            is_final: false,
            suspended: Vec::new(),
        };
        let filled = snapshot.fill(earlier, files);
        snapshot.restore_modes(files);
        filled?;
        snapshot.save()?;
        snapshot.stored.publish(&name)?;
        Ok(snapshot)
    }

    /// The snapshot that a killed process left behind; none unless it has valid signatures and can be decoded.
    pub(crate) fn read(mut stored: StoredSnapshot) -> Option<Self> {
        let Manifest { scope, epoch, places, unrecorded, notices, is_final } = read_manifest(&mut stored)?;
        let listed = places.values().filter_map(|was| Some(was.copy.as_ref()?.number())).collect();
        stored.remove_unlisted(&listed).ok()?;
        let copied: u64 = places.values().map(SnapshotEntry::copied_bytes).sum();
        let (next, room) = (first_free(&places), scope.quota.saturating_sub(copied));
        let (found_at, unrecorded) = unrecorded.unwrap_or_default();
        let unsealed = Unsealed::default();
        let suspended = Vec::new();
        Some(Self {
            scope,
            places,
            epoch,
            next,
            room,
            stored,
            unrecorded,
            found_at,
            notices,
            unsealed,
            is_final,
            suspended,
        })
    }

    /// Records every path, and reuses copies of an earlier snapshot where nothing has changed since.
    fn fill(
        &mut self,
        mut earlier: BTreeMap<WorkspacePath, SnapshotEntry>,
        files: &dyn Files,
    ) -> Result<(), ToolError> {
        let moment = self.stored.time()?;
        let places = self.scan(files)?;
        let mut found = match nodes(&places, files) {
            Err(_) if self.suspend_closed_modes(files) => nodes(&places, files)?,
            found => found?,
        };
        // The smallest first: most files can be copied that way, and files written by people are small.
        found.sort_by_key(|(_, node)| node.state.bytes);
        for (place, node) in found {
            match earlier.remove(&place) {
                Some(was) if was.is_reusable(&node) && node.state.bytes <= self.room => {
                    self.room -= node.state.bytes;
                    self.places.insert(place, was);
                }
                other => {
                    self.forget(other)?;
                    self.keep(place, &node, &moment, files)?;
                }
            }
        }
        earlier.into_values().try_for_each(|was| Ok(self.forget(Some(was))?))
    }

    /// Its name among the snapshots.
    pub(crate) fn name(&self) -> &str {
        self.stored.name()
    }

    /// What it covers, and for which call.
    pub(crate) fn scope(&self) -> &SnapshotScope {
        &self.scope
    }

    /// The changes since the snapshot, sorted by path; only at these paths if some are given.
    pub(crate) fn changes(
        &mut self,
        files: &dyn Files,
        only: Option<&[WorkspacePath]>,
    ) -> Result<Vec<Change>, ToolError> {
        let places = match only {
            Some(places) => places.iter().filter(|place| self.scope.covers(place)).cloned().collect(),
            None => {
                let mut places = self.scan(files)?;
                places.extend(self.places.keys().cloned());
                places
            }
        };
        match self.changes_at(&places, files) {
            Err(_) if self.suspend_closed_modes(files) => self.changes_at(&places, files),
            changes => changes,
        }
    }

    fn changes_at(&self, places: &BTreeSet<WorkspacePath>, files: &dyn Files) -> Result<Vec<Change>, ToolError> {
        let mut changes = Vec::new();
        for place in places {
            let (was, now) = (self.places.get(place), files.node(place, false)?);
            if was.zip(now.as_ref()).is_some_and(|(was, now)| was.is_still(now)) || was.is_none() && now.is_none() {
                continue;
            }
            let before = was.map(|was| self.state(was)).transpose()?;
            let after = files.node(place, true)?.map(|node| node.state);
            let change = Change { path: files.shown(place), place: place.clone(), before, after };
            changes.extend(Some(change).filter(|change| !change.is_nothing()));
        }
        Ok(changes)
    }

    /// Everything is recorded: the next snapshot can start from this one. The command of a snapshot that isn't final never
    /// began; it changed nothing, and after a kill from here on nothing counts as its change.
    pub(crate) fn rest(mut self) {
        if !self.is_final {
            self.is_final = true;
            // A snapshot that can't be written any more can't be kept either.
            if self.save_update().is_err() {
                return self.stored.discard();
            }
        }
        let keeps_times = self.stored.time().is_ok_and(|moment| moment.keeps_times());
        match keeps_times && self.stored.is_signed() && self.epoch.is_some() {
            true => self.stored.keep_as_last(),
            false => self.stored.discard(),
        }
    }

    /// Saves the manifest, for recovery after a kill.
    fn save(&mut self) -> Result<(), ToolError> {
        let places = std::mem::take(&mut self.places).into_iter().collect();
        let contents = ManifestContents { scope: self.scope.clone(), epoch: self.epoch.clone(), places };
        let record = encode(&contents);
        self.places = contents.places.into_iter().collect();
        Ok(self.stored.write(&record?)?)
    }

    /// Every path.
    fn scan(&mut self, files: &dyn Files) -> Result<BTreeSet<WorkspacePath>, ToolError> {
        let (found, unreadable) = self.walk(files)?;
        match unreadable > 0 && self.suspend_closed_modes(files) {
            true => Ok(self.walk(files)?.0),
            false => Ok(found),
        }
    }

    /// A command can take its own access to a directory away; that must not hide anything in it. Returns whether there was
    /// such a directory.
    fn suspend_closed_modes(&mut self, files: &dyn Files) -> bool {
        let known = self.suspended.len();
        for root in &self.scope.roots {
            self.suspended.extend(files.suspend_closed_modes(*root, &self.scope.except));
        }
        self.suspended.len() > known
    }

    /// Gives directories their modes back that were made accessible.
    pub(crate) fn restore_modes(&mut self, files: &dyn Files) {
        std::mem::take(&mut self.suspended).iter().rev().for_each(|directory| files.restore_mode(directory));
    }

    /// Every path that can be listed, and how many directories can't.
    fn walk(&self, files: &dyn Files) -> Result<(BTreeSet<WorkspacePath>, u64), ToolError> {
        let found = Mutex::new(BTreeSet::new());
        let visitors = || -> Visitor<'_> {
            Box::new(|walked: &VisitedEntry<'_>| {
                if self.scope.except.contains(walked.place) {
                    return WalkStep::Past;
                }
                found.lock().insert(walked.place.clone());
                WalkStep::On
            })
        };
        let mut unreadable = 0;
        for root in &self.scope.roots {
            let everything = WalkOptions { hidden: true, ..WalkOptions::default() };
            unreadable += files.walk(&WorkspacePath { root: *root, path: String::new() }, &everything, &visitors)?;
        }
        Ok((found.into_inner(), unreadable))
    }

    /// Records one path, and copies the file if the quota allows.
    fn keep(
        &mut self,
        place: WorkspacePath,
        node: &FileMetadata,
        moment: &FilesystemTime,
        files: &dyn Files,
    ) -> Result<(), ToolError> {
        let (copy, has_writers) = match node.state.is_file() && node.state.bytes <= self.room {
            true => self.copy(&place, files)?,
            false => (None, true),
        };
        let target = match node.state.is_link() {
            true => files.content(&place, u64::MAX)?.map(|link| link.bytes.to_vec()),
            false => None,
        };
        let is_reliable = !has_writers && moment.vouches_for(node);
        self.places
            .insert(place, SnapshotEntry::new(node, copy, target).with_reliability(moment.is_young(node), is_reliable));
        Ok(())
    }

    /// Copies a file, and says whether a process might write to it unnoticed. The copy shares blocks where the file
    /// system can.
    fn copy(&mut self, place: &WorkspacePath, files: &dyn Files) -> Result<(Option<FileCopy>, bool), ToolError> {
        let fault = |error: std::io::Error| ToolError::io(&format!("`{}` can't be kept for undo", place.path), &error);
        // A file that can't be opened can't be changed by the command either, or is gone already.
        let Some(mut opened) = open(place, files) else { return Ok((None, true)) };
        // Checked first: a process that opens it for writing later changes its ctime.
        let has_writers = files.has_writers(&opened);
        let mut copy = self.stored.new_copy(self.next)?;
        opened.rewind().and_then(|()| std::io::copy(&mut opened, &mut copy)).map_err(fault)?;
        let copied = FileCopy::new(self.next, &copy).map_err(fault)?;
        self.next += 1;
        self.room = self.room.saturating_sub(copied.bytes());
        Ok((Some(copied), has_writers))
    }

    /// Removes the copy that belongs to an entry.
    fn forget(&self, was: Option<SnapshotEntry>) -> Result<(), JournalError> {
        was.and_then(|was| was.copy).map_or(Ok(()), |copy| self.stored.remove_copy(copy.number()))
    }

    /// The recorded state of a path, with its hash.
    fn state(&self, was: &SnapshotEntry) -> Result<FileState, ToolError> {
        let copy = was.copy.as_ref().map(|copy| self.stored.copy(copy.number())).transpose()?.flatten();
        was.state(copy.as_ref()).map_err(|error| ToolError::io("A copy for undo can't be read", &error))
    }
}

/// Opens a file, also one whose mode keeps its owner out: a command of the same user can change that mode, and then the file.
fn open(place: &WorkspacePath, files: &dyn Files) -> Option<File> {
    match files.open(place) {
        Ok(opened) => Some(opened.file),
        Err(_) => files.node(place, true).ok()??.file,
    }
}

/// The paths at which there is something, with what it is.
fn nodes(places: &BTreeSet<WorkspacePath>, files: &dyn Files) -> Result<Vec<(WorkspacePath, FileMetadata)>, ToolError> {
    let mut found = Vec::new();
    for place in places {
        found.extend(files.node(place, false)?.map(|node| (place.clone(), node)));
    }
    Ok(found)
}

/// The last settled snapshot as the draft of a new one, and its entries. None if there is none that can be used: the
/// signature is invalid, or the clock was set since.
fn from_last(store: &SnapshotStore, name: &str) -> Option<(StoredSnapshot, BTreeMap<WorkspacePath, SnapshotEntry>)> {
    let mut stored = store.begin_from_last(name)?;
    let Manifest { epoch, places, .. } = read_manifest(&mut stored)?;
    (epoch.is_some() && epoch == ClockEpoch::now()).then_some((stored, places))
}

fn read_manifest(stored: &mut StoredSnapshot) -> Option<Manifest> {
    Manifest::decode(&stored.records().ok()??)
}

/// The first number that no copy has.
fn first_free(places: &BTreeMap<WorkspacePath, SnapshotEntry>) -> u64 {
    places.values().filter_map(|was| was.copy.as_ref()).map(|copy| copy.number() + 1).max().unwrap_or_default()
}
