//! One snapshot: how the workspace differs from it now, and how it is updated once the changes are recorded.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use rustix::fs::{FlockOperation, OFlags};
use toolgate_contract::{
    Change, FileMetadata, FileState, Files, ToolError, VisitedEntry, Visitor, WalkOptions, WalkStep, WorkspacePath,
};

use super::entry::{FileCopy, SnapshotEntry};
use super::filesystem_time::{ClockEpoch, FilesystemTime};
use super::manifest::{ManifestContents, SnapshotManifest};
use super::{LAST, SnapshotScope};
use crate::directory::DirectoryHandle;
use crate::{BlobStore, JournalError};

const LOCK: &str = "lock";

/// The state of the workspace at one time.
pub struct Snapshot {
    scope: SnapshotScope,
    places: BTreeMap<WorkspacePath, SnapshotEntry>,
    list: SnapshotManifest,
    epoch: Option<ClockEpoch>,
    /// Paths that aren't valid UTF-8, escaped for display, which no tool can address: those at the beginning, and those
    /// now.
    undecodable: [BTreeSet<WorkspacePath>; 2],
    /// The number of the next copy, and how many bytes can still be copied.
    next: u64,
    room: u64,
    directory: DirectoryHandle,
    parent: DirectoryHandle,
    /// Its name in the snapshot directory.
    name: String,
    is_settled: bool,
    // The lock lives as long as the snapshot.
    lock: File,
}

impl Snapshot {
    /// Locks a snapshot; none if another process holds it.
    pub(super) fn lock(
        parent: DirectoryHandle,
        directory: DirectoryHandle,
        list: SnapshotManifest,
    ) -> Result<Option<Self>, JournalError> {
        let lock = directory.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let name = directory.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (scope, places, undecodable) = (SnapshotScope::empty(), BTreeMap::new(), Default::default());
        let (epoch, next, room, is_settled) = (ClockEpoch::now(), 0, 0, false);
        Ok(Some(Self {
            scope,
            places,
            list,
            epoch,
            undecodable,
            next,
            room,
            directory,
            parent,
            name,
            is_settled,
            lock,
        }))
    }

    /// Records every path, and reuses copies of an earlier snapshot where nothing has changed since.
    pub(super) fn fill(
        &mut self,
        scope: SnapshotScope,
        mut earlier: BTreeMap<WorkspacePath, SnapshotEntry>,
        files: &dyn Files,
    ) -> Result<(), ToolError> {
        let moment = FilesystemTime::now(&self.lock)?;
        (self.room, self.scope, self.next) = (scope.quota, scope, first_free(&earlier));
        let (places, undecodable) = self.scan(files)?;
        self.undecodable[0] = undecodable;
        let mut found = Vec::new();
        for place in places {
            found.extend(files.node(&place, false)?.map(|node| (place, node)));
        }
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

    /// Reads the manifest; none unless its signature is valid.
    pub(super) fn load_manifest(mut self) -> Result<Option<Self>, JournalError> {
        let Some(ManifestContents { scope, epoch, places }) = self.list.read(&self.directory)? else { return Ok(None) };
        let places: BTreeMap<WorkspacePath, SnapshotEntry> = places.into_iter().collect();
        let copied: u64 = places.values().filter_map(|was| was.copy.as_ref()).map(FileCopy::bytes).sum();
        (self.next, self.room) = (first_free(&places), scope.quota.saturating_sub(copied));
        (self.scope, self.epoch, self.places) = (scope, epoch, places);
        Ok(Some(self))
    }

    /// The entries, if the clock only went forward since.
    pub(super) fn into_entries_of_this_epoch(mut self) -> Option<BTreeMap<WorkspacePath, SnapshotEntry>> {
        let is_still = self.epoch.is_some() && self.epoch == ClockEpoch::now();
        is_still.then(|| std::mem::take(&mut self.places))
    }

    /// What it covers, and for which call.
    pub fn scope(&self) -> &SnapshotScope {
        &self.scope
    }

    /// The changes since the snapshot, sorted by path; only at these paths if some are given.
    pub fn changes(&mut self, files: &dyn Files, only: Option<&[WorkspacePath]>) -> Result<Vec<Change>, ToolError> {
        let places = match only {
            Some(places) => places.iter().filter(|place| self.scope.covers(place)).cloned().collect(),
            None => {
                let (mut places, undecodable) = self.scan(files)?;
                self.undecodable[1] = undecodable;
                places.extend(self.places.keys().cloned());
                places
            }
        };
        let mut changes = Vec::new();
        for place in places {
            let (was, now) = (self.places.get(&place), files.node(&place, false)?);
            if was.zip(now.as_ref()).is_some_and(|(was, now)| was.is_still(now)) || was.is_none() && now.is_none() {
                continue;
            }
            let before = was.map(|was| self.state(was)).transpose()?;
            let after = files.node(&place, true)?.map(|node| node.state);
            if before != after {
                changes.push(Change { path: files.shown(&place), place, before, after });
            }
        }
        Ok(changes)
    }

    /// New paths that aren't valid UTF-8, escaped for display, as of the last complete scan.
    pub fn undecodable(&self, files: &dyn Files) -> Vec<String> {
        let [then, now] = &self.undecodable;
        now.difference(then).map(|place| files.shown(place)).collect()
    }

    /// Copies the previous contents of these paths to the blob store. The changes are recorded next, then
    /// [`Snapshot::go_on`].
    pub fn store_previous_contents(&self, changes: &[Change], contents: &BlobStore) -> Result<(), ToolError> {
        for Change { place, before, .. } in changes {
            let (Some(was), Some(before)) = (self.places.get(place), before) else { continue };
            if let Some(target) = &was.target {
                contents.put(&target.clone().into())?;
            }
            if let Some(copy) = &was.copy
                && let Some(file) = self.directory.existing(&copy.name())?
            {
                contents.adopt(&file, before, true)?;
            }
        }
        Ok(())
    }

    /// These changes are recorded: from now on, the current content is the baseline.
    pub fn go_on(&mut self, changes: &[Change], contents: &BlobStore, files: &dyn Files) -> Result<(), ToolError> {
        self.refresh(changes.iter().map(|change| &change.place), files)?;
        let handed_over = changes.iter().filter_map(|change| change.before.as_ref());
        handed_over.filter(|before| before.is_file()).try_for_each(|before| Ok(contents.own(&before.sha256)?))
    }

    /// Makes the current content of these paths the baseline.
    pub fn refresh<'a>(
        &mut self,
        places: impl Iterator<Item = &'a WorkspacePath>,
        files: &dyn Files,
    ) -> Result<(), ToolError> {
        let moment = FilesystemTime::now(&self.lock)?;
        let (mut refreshed, mut before) = (Vec::new(), Vec::new());
        for place in places {
            if !self.scope.covers(place) {
                continue;
            }
            if let Some(was) = self.places.remove(place) {
                self.room += was.copy.as_ref().map_or(0, FileCopy::bytes);
                before.push(was);
            }
            if let Some(node) = files.node(place, false)? {
                self.keep(place.clone(), &node, &moment, files)?;
            }
            refreshed.push(place);
        }
        // Saved before copies are removed: after a kill here, every copy in the manifest still exists.
        let updates: Vec<_> = refreshed.into_iter().map(|place| (place, self.places.get(place))).collect();
        self.list.add(&self.directory, &updates)?;
        before.into_iter().try_for_each(|was| Ok(self.forget(Some(was))?))
    }

    /// Everything is recorded: the next snapshot can start from this one.
    pub fn rest(mut self) {
        let keeps_times = FilesystemTime::now(&self.lock).is_ok_and(|moment| moment.keeps_times());
        let is_reusable = keeps_times && self.list.is_signed() && self.epoch.is_some();
        if is_reusable {
            self.parent.discard(LAST);
        }
        self.is_settled = !is_reusable || self.rename(LAST).is_err();
    }

    /// Discards the snapshot.
    pub fn done(mut self) {
        self.is_settled = true;
    }

    /// Saves the manifest, for recovery after a kill.
    pub(super) fn save(&mut self) -> Result<(), JournalError> {
        let places = std::mem::take(&mut self.places).into_iter().collect();
        let contents = ManifestContents { scope: self.scope.clone(), epoch: self.epoch.clone(), places };
        let written = self.list.write(&self.directory, &contents);
        self.places = contents.places.into_iter().collect();
        written
    }

    pub(super) fn rename(&mut self, name: &str) -> Result<(), JournalError> {
        self.parent.rename(&self.name, name)?;
        name.clone_into(&mut self.name);
        Ok(())
    }

    /// Every path, and separately the paths that aren't valid UTF-8.
    fn scan(&self, files: &dyn Files) -> Result<(BTreeSet<WorkspacePath>, BTreeSet<WorkspacePath>), ToolError> {
        let found = Mutex::new((BTreeSet::new(), BTreeSet::new()));
        let visitors = || -> Visitor<'_> {
            Box::new(|walked: &VisitedEntry<'_>| {
                if self.scope.except.contains(walked.place) {
                    return WalkStep::Past;
                }
                // An escaped name resolves to nothing.
                let is_shown = walked.place.path.contains("\\x") && matches!(files.node(walked.place, false), Ok(None));
                let mut found = found.lock();
                let list = if is_shown { &mut found.1 } else { &mut found.0 };
                list.insert(walked.place.clone());
                WalkStep::On
            })
        };
        for root in &self.scope.roots {
            let everything = WalkOptions { hidden: true, ..WalkOptions::default() };
            let top = WorkspacePath { root: *root, path: String::new() };
            if files.walk(&top, &everything, &visitors)? > 0 {
                // A command can remove access rights from a directory; that must not hide anything in it.
                files.grant_owner_access(*root, &self.scope.except)?;
                files.walk(&top, &everything, &visitors)?;
            }
        }
        Ok(found.into_inner())
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
        // A file that can't be opened can't be changed by the command either, or is gone already.
        let Ok(mut opened) = files.open(place) else { return Ok((None, true)) };
        let fault = |error: std::io::Error| ToolError::io(&format!("`{}` can't be kept for undo", place.path), &error);
        // Checked first: a process that opens it for writing later changes its ctime.
        let has_writers = files.has_writers(&opened);
        let mut copy = self.directory.file(&self.next.to_string(), OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        std::io::copy(&mut opened.file, &mut copy).map_err(fault)?;
        let copied = FileCopy::new(self.next, &copy).map_err(fault)?;
        self.next += 1;
        self.room = self.room.saturating_sub(copied.bytes());
        Ok((Some(copied), has_writers))
    }

    /// Removes the copy that belongs to an entry.
    fn forget(&self, was: Option<SnapshotEntry>) -> Result<(), JournalError> {
        was.and_then(|was| was.copy).map_or(Ok(()), |copy| self.directory.remove(&copy.name()))
    }

    /// The recorded state of a path, with its hash.
    fn state(&self, was: &SnapshotEntry) -> Result<FileState, ToolError> {
        let copy = was.copy.as_ref().map(|copy| self.directory.existing(&copy.name())).transpose()?.flatten();
        was.state(copy.as_ref()).map_err(|error| ToolError::io("A copy for undo can't be read", &error))
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if self.is_settled {
            self.parent.discard(&self.name);
        }
        // Unlocked explicitly: a child process that is just being started may still have the file open.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

/// The first number that no copy has.
fn first_free(places: &BTreeMap<WorkspacePath, SnapshotEntry>) -> u64 {
    places.values().filter_map(|was| was.copy.as_ref()).map(|copy| copy.number() + 1).max().unwrap_or_default()
}
