//! What a snapshot says: one record with every path, then one for each later update. It is written and read for every command,
//! so it is binary: parsing text would take longer than scanning the files themselves.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Change, ToolError, WorkspacePath};
use toolgate_journal::ClockEpoch;

use super::SnapshotScope;
use super::entry::SnapshotEntry;

/// The first record of a manifest.
#[derive(Serialize, Deserialize)]
pub(super) struct ManifestContents {
    pub(super) scope: SnapshotScope,
    pub(super) epoch: Option<ClockEpoch>,
    pub(super) places: Vec<(WorkspacePath, SnapshotEntry)>,
}

/// An update, in one record: after a kill all of it holds, or none.
#[derive(Serialize, Deserialize)]
pub(super) struct SnapshotUpdate<Place, Entry> {
    /// The current state of some paths; none for a path where nothing exists any more.
    pub(super) places: Vec<(Place, Option<Entry>)>,
    /// When the changes were found that the journal has to have by the next update, and the changes as JSON, which can leave
    /// out fields. None if there are none.
    pub(super) unrecorded: Option<(Timestamp, String)>,
    /// Notices of other calls that this update includes.
    pub(super) notices: Vec<String>,
    /// The command has ended, and everything that it changed is known.
    pub(super) is_final: bool,
}

/// What all records of a manifest say together.
pub(super) struct Manifest {
    pub(super) scope: SnapshotScope,
    pub(super) epoch: Option<ClockEpoch>,
    pub(super) places: BTreeMap<WorkspacePath, SnapshotEntry>,
    pub(super) unrecorded: Option<(Timestamp, Vec<Change>)>,
    pub(super) notices: BTreeSet<String>,
    pub(super) is_final: bool,
}

impl Manifest {
    /// None if the records can't be decoded.
    pub(super) fn decode(records: &[Vec<u8>]) -> Option<Self> {
        let (first, updates) = records.split_first()?;
        let ManifestContents { scope, epoch, places } = postcard::from_bytes(first).ok()?;
        let places = places.into_iter().collect();
        let mut manifest = Self { scope, epoch, places, unrecorded: None, notices: BTreeSet::new(), is_final: false };
        updates.iter().try_for_each(|record| manifest.update(postcard::from_bytes(record).ok()?))?;
        Some(manifest)
    }

    fn update(&mut self, update: SnapshotUpdate<WorkspacePath, SnapshotEntry>) -> Option<()> {
        for (place, entry) in update.places {
            match entry {
                Some(entry) => drop(self.places.insert(place, entry)),
                None => drop(self.places.remove(&place)),
            }
        }
        // An update is only written once the journal has the changes of the one before, or it repeats them.
        self.unrecorded = match update.unrecorded {
            Some((time, changes)) => Some((time, serde_json::from_str(&changes).ok()?)),
            None => None,
        };
        self.notices.extend(update.notices);
        self.is_final |= update.is_final;
        Some(())
    }
}

/// The bytes of a record.
pub(super) fn encode(content: &impl Serialize) -> Result<Vec<u8>, ToolError> {
    postcard::to_allocvec(content)
        .map_err(|error| ToolError::io("The manifest of a snapshot can't be written", &std::io::Error::other(error)))
}
