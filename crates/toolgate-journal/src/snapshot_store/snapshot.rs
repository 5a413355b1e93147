//! A snapshot that was taken: what differs from it by now, and how it goes on when that is on record.

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

/// What the workspace was.
pub struct Snapshot {
    scope: SnapshotScope,
    places: BTreeMap<WorkspacePath, SnapshotEntry>,
    list: SnapshotManifest,
    era: Option<ClockEpoch>,
    /// Names that aren't text, as they can be shown: no tool could reach them. Those at the beginning, and by now.
    unspeakable: [BTreeSet<WorkspacePath>; 2],
    /// The number of the next copy, and how many bytes more can be kept.
    next: u64,
    room: u64,
    directory: DirectoryHandle,
    parent: DirectoryHandle,
    /// The name that it has in there.
    name: String,
    is_settled: bool,
    // Who has it goes with it.
    lock: File,
}

impl Snapshot {
    /// Takes hold of one; none if somebody else has.
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
        let (scope, places, unspeakable) = (SnapshotScope::empty(), BTreeMap::new(), Default::default());
        let (era, next, room, is_settled) = (ClockEpoch::now(), 0, 0, false);
        Ok(Some(Self { scope, places, list, era, unspeakable, next, room, directory, parent, name, is_settled, lock }))
    }

    /// Takes everything that is there, and the copies of an earlier one where nothing has changed since.
    pub(super) fn fill(
        &mut self,
        scope: SnapshotScope,
        mut earlier: BTreeMap<WorkspacePath, SnapshotEntry>,
        files: &dyn Files,
    ) -> Result<(), ToolError> {
        let moment = FilesystemTime::now(&self.lock)?;
        (self.room, self.scope, self.next) = (scope.quota, scope, first_free(&earlier));
        let (places, unspeakable) = self.look(files)?;
        self.unspeakable[0] = unspeakable;
        let mut found = Vec::new();
        for place in places {
            found.extend(files.node(&place, false)?.map(|node| (place, node)));
        }
        // The smallest first: then most can be kept, and what people write is small.
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

    /// What was noted of it; none unless that was noted here.
    pub(super) fn load_manifest(mut self) -> Result<Option<Self>, JournalError> {
        let Some(ManifestContents { scope, era, places }) = self.list.read(&self.directory)? else { return Ok(None) };
        let places: BTreeMap<WorkspacePath, SnapshotEntry> = places.into_iter().collect();
        let kept: u64 = places.values().filter_map(|was| was.copy.as_ref()).map(FileCopy::bytes).sum();
        (self.next, self.room) = (first_free(&places), scope.quota.saturating_sub(kept));
        (self.scope, self.era, self.places) = (scope, era, places);
        Ok(Some(self))
    }

    /// What it knows, if the clock only went forward since.
    pub(super) fn into_entries_of_this_epoch(mut self) -> Option<BTreeMap<WorkspacePath, SnapshotEntry>> {
        let is_still = self.era.is_some() && self.era == ClockEpoch::now();
        is_still.then(|| std::mem::take(&mut self.places))
    }

    /// Whose it is.
    pub fn scope(&self) -> &SnapshotScope {
        &self.scope
    }

    /// What differs by now from what it was, in the order of places; only at these places if some are given.
    pub fn changes(&mut self, files: &dyn Files, only: Option<&[WorkspacePath]>) -> Result<Vec<Change>, ToolError> {
        let places = match only {
            Some(places) => places.iter().filter(|place| self.scope.covers(place)).cloned().collect(),
            None => {
                let (mut places, unspeakable) = self.look(files)?;
                self.unspeakable[1] = unspeakable;
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

    /// What came meanwhile under names that aren't text, as they can be shown; by the last look at everything.
    pub fn unspeakable(&self, files: &dyn Files) -> Vec<String> {
        let [then, now] = &self.unspeakable;
        now.difference(then).map(|place| files.shown(place)).collect()
    }

    /// Hands what these places were over to the store of contents. The record comes next, then [`Snapshot::go_on`].
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

    /// These changes are on record: from now on, what is there counts as what was there.
    pub fn go_on(&mut self, changes: &[Change], contents: &BlobStore, files: &dyn Files) -> Result<(), ToolError> {
        self.refresh(changes.iter().map(|change| &change.place), files)?;
        let handed_over = changes.iter().filter_map(|change| change.before.as_ref());
        handed_over.filter(|before| before.is_file()).try_for_each(|before| Ok(contents.own(&before.sha256)?))
    }

    /// From now on, what is at these places counts as what they were.
    pub fn refresh<'a>(
        &mut self,
        places: impl Iterator<Item = &'a WorkspacePath>,
        files: &dyn Files,
    ) -> Result<(), ToolError> {
        let moment = FilesystemTime::now(&self.lock)?;
        let (mut anew, mut before) = (Vec::new(), Vec::new());
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
            anew.push(place);
        }
        // Noted first: whoever is killed here leaves a list of which every copy is there.
        let noted: Vec<_> = anew.into_iter().map(|place| (place, self.places.get(place))).collect();
        self.list.add(&self.directory, &noted)?;
        before.into_iter().try_for_each(|was| Ok(self.forget(Some(was))?))
    }

    /// Everything is on record: the next snapshot can begin from this one.
    pub fn rest(mut self) {
        let keeps_times = FilesystemTime::now(&self.lock).is_ok_and(|moment| moment.keeps_times());
        let can_be_begun_from = keeps_times && self.list.is_sealed() && self.era.is_some();
        if can_be_begun_from {
            self.parent.discard(LAST);
        }
        self.is_settled = !can_be_begun_from || self.rename(LAST).is_err();
    }

    /// Nothing of it is needed any more.
    pub fn done(mut self) {
        self.is_settled = true;
    }

    /// Writes the list down, for whoever comes after somebody was killed.
    pub(super) fn note(&mut self) -> Result<(), JournalError> {
        let places = std::mem::take(&mut self.places).into_iter().collect();
        let noted = ManifestContents { scope: self.scope.clone(), era: self.era.clone(), places };
        let written = self.list.write(&self.directory, &noted);
        self.places = noted.places.into_iter().collect();
        written
    }

    pub(super) fn rename(&mut self, name: &str) -> Result<(), JournalError> {
        self.parent.rename(&self.name, name)?;
        name.clone_into(&mut self.name);
        Ok(())
    }

    /// Everything that is there, and what is there under a name that isn't text.
    fn look(&self, files: &dyn Files) -> Result<(BTreeSet<WorkspacePath>, BTreeSet<WorkspacePath>), ToolError> {
        let found = Mutex::new((BTreeSet::new(), BTreeSet::new()));
        let visitors = || -> Visitor<'_> {
            Box::new(|walked: &VisitedEntry<'_>| {
                if self.scope.except.contains(walked.place) {
                    return WalkStep::Past;
                }
                // A place that only shows a name leads nowhere.
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
                // A command can close a directory behind it; it doesn't hide anything there.
                files.open_up(*root, &self.scope.except)?;
                files.walk(&top, &everything, &visitors)?;
            }
        }
        Ok(found.into_inner())
    }

    /// Notes what is at a place, and copies it if there is room.
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
        let is_lasting = !has_writers && moment.vouches_for(node);
        self.places.insert(place, SnapshotEntry::new(node, copy, target).known(moment.is_young(node), is_lasting));
        Ok(())
    }

    /// Copies a file, and says whether somebody might write to it unseen. Where the file system can share blocks, this does.
    fn copy(&mut self, place: &WorkspacePath, files: &dyn Files) -> Result<(Option<FileCopy>, bool), ToolError> {
        // What can't be opened can't be changed by the command either, or it is gone already.
        let Ok(mut opened) = files.open(place) else { return Ok((None, true)) };
        let fault = |error: std::io::Error| ToolError::io(&format!("`{}` can't be kept for undo", place.path), &error);
        // Asked first: whoever opens it later gives it another time of change.
        let has_writers = files.has_writers(&opened);
        let mut copy = self.directory.file(&self.next.to_string(), OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        std::io::copy(&mut opened.file, &mut copy).map_err(fault)?;
        let copied = FileCopy::new(self.next, &copy).map_err(fault)?;
        self.next += 1;
        self.room = self.room.saturating_sub(copied.bytes());
        Ok((Some(copied), has_writers))
    }

    /// Removes the copy that belongs to what was somewhere.
    fn forget(&self, was: Option<SnapshotEntry>) -> Result<(), JournalError> {
        was.and_then(|was| was.copy).map_or(Ok(()), |copy| self.directory.remove(&copy.name()))
    }

    /// What a place was, with its hash.
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
        // Not by closing it alone: a process that is just being started may still have it open too.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

/// The number of a copy that none of these has.
fn first_free(places: &BTreeMap<WorkspacePath, SnapshotEntry>) -> u64 {
    places.values().filter_map(|was| was.copy.as_ref()).map(|copy| copy.number() + 1).max().unwrap_or_default()
}
