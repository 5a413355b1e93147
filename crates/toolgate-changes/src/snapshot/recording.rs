//! From a difference to the journal, whatever moment a kill comes at. What a command changed is *collected*: the previous
//! content goes to the blob store, and the current content becomes the baseline. It is *sealed* by one signed record of the
//! snapshot, with the new baseline and the changes that the journal must have. Then the journal has them, and the rest is
//! tidying. Before the seal, a kill loses nothing: the difference is still there. After it, recovery only compares the record
//! with the journal. A final seal means that nothing is ever attributed to the command again.

use std::collections::BTreeSet;

use jiff::Timestamp;
use toolgate_contract::{Change, Files, ToolError, WorkspacePath};
use toolgate_journal::{BlobStore, ChangeNotice, FilesystemTime, NoticeKind};

use super::Snapshot;
use super::entry::SnapshotEntry;
use super::manifest::{SnapshotUpdate, encode};

/// What changed since the last seal.
#[derive(Default)]
pub(super) struct Unsealed {
    /// Paths whose entry isn't saved yet.
    places: BTreeSet<WorkspacePath>,
    /// Entries whose copies aren't needed after the next seal.
    replaced: Vec<SnapshotEntry>,
    /// Notices of other calls that are included.
    notices: Vec<String>,
}

impl Unsealed {
    fn is_empty(&self) -> bool {
        self.places.is_empty() && self.notices.is_empty()
    }
}

impl Snapshot {
    /// Finds what the command has changed, only at these paths if some are given, and stores the previous contents. What
    /// other calls changed isn't the command's. Directories that keep their owner out stay accessible until
    /// [`Snapshot::restore_modes`].
    pub(crate) fn collect(
        &mut self,
        files: &dyn Files,
        only: Option<&[WorkspacePath]>,
        contents: &BlobStore,
    ) -> Result<(), ToolError> {
        if self.is_final {
            return Ok(());
        }
        let moment = self.stored.time()?;
        self.read_notices(files, contents)?;
        for change in self.changes(files, only)? {
            self.store_previous_content(&change, contents)?;
            self.rebase(&change.place, &moment, files)?;
            self.unrecorded.push(change);
        }
        Ok(())
    }

    /// Makes everything that was collected durable, in one record. Returns the changes that the journal has to have, with
    /// their time; none if there are none.
    pub(crate) fn seal(
        &mut self,
        now: Timestamp,
        is_final: bool,
    ) -> Result<Option<(Timestamp, Vec<Change>)>, ToolError> {
        if !self.unsealed.is_empty() || is_final && !self.is_final {
            self.found_at = now;
            self.is_final |= is_final;
            self.save_update()?;
        }
        Ok(self.unrecorded())
    }

    /// Changes that were found and that the journal may not have yet, with their time.
    pub(crate) fn unrecorded(&self) -> Option<(Timestamp, Vec<Change>)> {
        (!self.unrecorded.is_empty()).then(|| (self.found_at, self.unrecorded.clone()))
    }

    /// Those of the changes that the workspace still has: no other call changed the path since.
    pub(crate) fn current(&self, changes: Vec<Change>) -> Vec<Change> {
        let mut places = BTreeSet::new();
        let last = changes.into_iter().rev().filter(|change| places.insert(change.place.clone()));
        last.filter(|change| match (self.places.get(&change.place), &change.after) {
            (Some(entry), Some(_)) => !entry.is_left_by_others(),
            (entry, after) => entry.is_none() && after.is_none(),
        })
        .collect()
    }

    /// Whether everything that the command changed is known.
    pub(crate) fn is_final(&self) -> bool {
        self.is_final
    }

    /// The journal has the changes: what only they needed is removed.
    pub(crate) fn tidy(&mut self, contents: &BlobStore) -> Result<(), ToolError> {
        let recorded = std::mem::take(&mut self.unrecorded);
        self.remove_sealed()?;
        let handed_over = recorded.iter().filter_map(|change| change.before.as_ref());
        // Copies are in a private directory; nobody else has them open.
        handed_over
            .filter(|before| before.is_file())
            .try_for_each(|before| Ok(contents.own(&before.sha256, &|_| false)?))
    }

    /// Another call of this process changed these paths, and a notice says so too: the current content is the baseline.
    /// Notices of other processes that are there by now are taken in as well.
    pub(crate) fn changed_by_others<'a>(
        &mut self,
        mut places: impl Iterator<Item = &'a WorkspacePath>,
        files: &dyn Files,
        contents: &BlobStore,
        now: Timestamp,
    ) -> Result<(), ToolError> {
        if self.is_final {
            return Ok(());
        }
        let moment = self.stored.time()?;
        self.read_notices(files, contents)?;
        // A command may have taken away its own access to the directory of a path.
        let rebased = places.try_for_each(|place| match self.rebase(place, &moment, files) {
            Err(_) if self.suspend_closed_modes(files) => self.rebase(place, &moment, files),
            rebased => rebased,
        });
        self.restore_modes(files);
        rebased?;
        self.found_at = now;
        self.save_update()?;
        self.remove_sealed()
    }

    /// Removes copies and notices that the last record made superfluous.
    fn remove_sealed(&mut self) -> Result<(), ToolError> {
        for replaced in std::mem::take(&mut self.unsealed.replaced) {
            self.forget(Some(replaced))?;
        }
        for notice in std::mem::take(&mut self.unsealed.notices) {
            self.stored.remove_notice(&notice)?;
        }
        Ok(())
    }

    /// Takes in what other calls changed, of this process or another, in order. Where the command changed a path before them,
    /// that is its own change.
    fn read_notices(&mut self, files: &dyn Files, contents: &BlobStore) -> Result<(), ToolError> {
        let mut notices = self.stored.notices()?;
        notices.retain(|(name, _)| !self.notices.contains(name));
        let is_reverted = |notice: &ChangeNotice| notice.kind == NoticeKind::Reverted;
        let reverted: BTreeSet<String> =
            notices.iter().filter(|(_, notice)| is_reverted(notice)).map(|(_, notice)| notice.id.clone()).collect();
        for (name, notice) in notices {
            let counts = !reverted.contains(&notice.id);
            for change in notice.changes.into_iter().filter(|_| counts) {
                self.follow(change, notice.kind, files, contents)?;
            }
            self.notices.insert(name.clone());
            self.unsealed.notices.push(name);
        }
        Ok(())
    }

    /// Another call changed a path: what was there before that is the command's, what it left is the new baseline. Of what
    /// another command was found to have changed, nothing is this one's: nobody can tell which of both came first, or
    /// whether the snapshot came in between.
    fn follow(
        &mut self,
        theirs: Change,
        kind: NoticeKind,
        files: &dyn Files,
        contents: &BlobStore,
    ) -> Result<(), ToolError> {
        let place = theirs.place;
        if !self.scope.covers(&place) {
            return Ok(());
        }
        let entry = self.places.get(&place);
        let is_comparable = entry.is_none_or(SnapshotEntry::has_content);
        let was = entry.map(|entry| self.state(entry)).transpose()?;
        let change = Change { path: files.shown(&place), place: place.clone(), before: was, after: theirs.before };
        if kind == NoticeKind::Made && is_comparable && !change.is_nothing() {
            self.store_previous_content(&change, contents)?;
            self.unrecorded.push(change);
        }
        self.replace_entry(&place, theirs.after.as_ref().map(SnapshotEntry::left_by_others));
        Ok(())
    }

    /// Makes the current content of a path the baseline.
    fn rebase(&mut self, place: &WorkspacePath, moment: &FilesystemTime, files: &dyn Files) -> Result<(), ToolError> {
        if !self.scope.covers(place) {
            return Ok(());
        }
        self.replace_entry(place, None);
        if let Some(node) = files.node(place, false)? {
            self.keep(place.clone(), &node, moment, files)?;
        }
        Ok(())
    }

    fn replace_entry(&mut self, place: &WorkspacePath, entry: Option<SnapshotEntry>) {
        if let Some(was) = self.places.remove(place) {
            self.room += was.copied_bytes();
            self.unsealed.replaced.push(was);
        }
        self.places.extend(entry.map(|entry| (place.clone(), entry)));
        self.unsealed.places.insert(place.clone());
    }

    /// Appends one record with everything that isn't saved yet.
    pub(super) fn save_update(&mut self) -> Result<(), ToolError> {
        let unrecorded = match self.unrecorded() {
            Some((time, changes)) => {
                let changes =
                    serde_json::to_string(&changes).map_err(|error| ToolError::internal(error.to_string()))?;
                Some((time, changes))
            }
            None => None,
        };
        let places = self.unsealed.places.iter().map(|place| (place, self.places.get(place))).collect();
        let notices = self.unsealed.notices.clone();
        let update = SnapshotUpdate { places, unrecorded, notices, is_final: self.is_final };
        self.stored.append(&encode(&update)?)?;
        self.unsealed.places.clear();
        Ok(())
    }

    /// Copies the previous content of a path to the blob store, before its entry is replaced.
    fn store_previous_content(&self, change: &Change, contents: &BlobStore) -> Result<(), ToolError> {
        let (Some(was), Some(before)) = (self.places.get(&change.place), &change.before) else { return Ok(()) };
        if let Some(target) = &was.target {
            contents.put(&target.clone().into())?;
        }
        if let Some(copy) = &was.copy
            && let Some(file) = self.stored.copy(copy.number())?
        {
            contents.adopt(&file, before, true)?;
        }
        Ok(())
    }
}
