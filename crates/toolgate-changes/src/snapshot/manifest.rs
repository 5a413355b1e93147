//! What a snapshot says: one record with every path, then one for each later update of some paths. It is written and read for
//! every command, so it is binary: parsing text would take longer than scanning the files themselves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolgate_contract::{ToolError, WorkspacePath};
use toolgate_journal::ClockEpoch;

use super::SnapshotScope;
use super::entry::SnapshotEntry;

/// The contents of a manifest.
#[derive(Serialize, Deserialize)]
pub(super) struct ManifestContents {
    pub(super) scope: SnapshotScope,
    pub(super) epoch: Option<ClockEpoch>,
    pub(super) places: Vec<(WorkspacePath, SnapshotEntry)>,
}

impl ManifestContents {
    /// The contents that records say together; none if they can't be decoded.
    pub(super) fn decode(records: &[Vec<u8>]) -> Option<Self> {
        let (first, updates) = records.split_first()?;
        let mut contents: Self = postcard::from_bytes(first).ok()?;
        let mut places: BTreeMap<WorkspacePath, SnapshotEntry> = contents.places.into_iter().collect();
        for record in updates {
            let updates: Vec<(WorkspacePath, Option<SnapshotEntry>)> = postcard::from_bytes(record).ok()?;
            for (place, was) in updates {
                match was {
                    Some(was) => drop(places.insert(place, was)),
                    None => drop(places.remove(&place)),
                }
            }
        }
        contents.places = places.into_iter().collect();
        Some(contents)
    }
}

/// A record of these contents, or of an update: the current state of some paths; none for a path where nothing exists any
/// more.
pub(super) fn encode(content: &impl Serialize) -> Result<Vec<u8>, ToolError> {
    postcard::to_allocvec(content)
        .map_err(|error| ToolError::io("The manifest of a snapshot can't be written", &std::io::Error::other(error)))
}
