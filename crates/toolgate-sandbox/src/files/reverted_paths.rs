//! Paths of the workspace that we ourselves restored, after the changes of a command couldn't be applied. Nobody else changed them
//! while the command ran, so its changes still fit.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_contract::{FileMetadata, WorkspacePath};

/// Each restored path, with its change time (ctime) afterwards.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RevertedPaths(BTreeMap<WorkspacePath, Timestamp>);

impl RevertedPaths {
    /// Adds a path that was just restored.
    pub(crate) fn add(&mut self, place: &WorkspacePath, node: &FileMetadata) {
        self.0.insert(place.clone(), node.changed);
    }

    /// Whether a path is still as it was restored.
    pub(crate) fn has(&self, place: &WorkspacePath, node: &FileMetadata) -> bool {
        self.0.get(place) == Some(&node.changed)
    }
}
