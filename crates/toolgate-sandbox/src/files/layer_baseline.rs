//! What is known about the workspace beneath a layer, beside what is there now: which paths existed when the changes were first
//! compared, and which ones we ourselves restored after the changes couldn't be applied.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_contract::{FileMetadata, WorkspacePath};

/// What a layer was made over.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LayerBaseline {
    /// Paths that the command changed, removed or gave another name: one that is missing now was removed by somebody else.
    existing: BTreeSet<WorkspacePath>,
    /// Each restored path, with its change time (ctime) afterwards: nobody else changed it while the command ran.
    restored: BTreeMap<WorkspacePath, Timestamp>,
}

impl LayerBaseline {
    /// Remembers what there was when the changes were compared.
    pub(crate) fn remember<'a>(&mut self, existing: impl Iterator<Item = &'a WorkspacePath>) {
        self.existing.extend(existing.cloned());
    }

    /// Whether a path was there when the changes were compared before.
    pub(crate) fn existed(&self, place: &WorkspacePath) -> bool {
        self.existing.contains(place)
    }

    /// Adds a path that was just restored.
    pub(crate) fn restored(&mut self, place: &WorkspacePath, node: &FileMetadata) {
        self.restored.insert(place.clone(), node.changed);
    }

    /// Whether a path is still as it was restored.
    pub(crate) fn is_restored(&self, place: &WorkspacePath, node: &FileMetadata) -> bool {
        self.restored.get(place) == Some(&node.changed)
    }
}
