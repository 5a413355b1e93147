//! The last guard against decoys: what stands in for a hidden file must never reach the workspace, an index or an object.

use std::collections::BTreeSet;

use gix_hash::{Kind, ObjectId};
use toolgate_contract::{Change, DECOY_CONTENT, WorkspacePath, sha256};

use super::index::GitIndex;
use super::layout::{GitLayout, loose_object};
use super::objects::blob_id;
use crate::settle::NewContent;

/// The largest index, and list of a pack's objects, that is searched. Anything larger counts as if it held a decoy.
const MAX_BYTES: u64 = 512 * 1024 * 1024;

const COPY: &str = "it is a copy of the decoy that stands in for a hidden file";
const IN_REPOSITORY: &str = "its repository would hold the decoy that stands in for a hidden file, so none of the repository's \
                             changes are applied";

/// Which of a command's changes hold a decoy.
pub(crate) struct DecoyGuard {
    /// The hash of a decoy's content.
    content: String,
    layout: GitLayout,
    /// The git directories that would hold a decoy.
    directories: BTreeSet<WorkspacePath>,
}

impl DecoyGuard {
    /// Looks through the changes of one command.
    pub(crate) fn new<'c>(changes: impl Iterator<Item = &'c Change> + Clone, new_content: &NewContent<'_>) -> Self {
        let ids: Vec<ObjectId> =
            [Kind::Sha1, Kind::Sha256].into_iter().filter_map(|kind| blob_id(kind, DECOY_CONTENT)).collect();
        let layout = GitLayout::of(changes.clone().map(|change| &change.place));
        let mut directories = BTreeSet::new();
        for change in changes.filter(|change| change.after.as_ref().is_some_and(|after| after.is_file())) {
            if let Some(directory) = layout.directory_of(&change.place)
                && !directories.contains(directory)
                && holds_decoy(&change.place, &ids, new_content)
            {
                directories.insert(directory.clone());
            }
        }
        Self { content: sha256(DECOY_CONTENT), layout, directories }
    }

    /// Why a change can't be applied; none if it holds no decoy.
    pub(crate) fn reason(&self, change: &Change) -> Option<&'static str> {
        let in_repository =
            self.layout.directory_of(&change.place).is_some_and(|found| self.directories.contains(found));
        let is_copy = change.after.as_ref().is_some_and(|after| after.sha256 == self.content);
        if in_repository { Some(IN_REPOSITORY) } else { is_copy.then_some(COPY) }
    }
}

/// Whether a file of git's is the decoy as an object, or refers to that object.
fn holds_decoy(place: &WorkspacePath, ids: &[ObjectId], new_content: &NewContent<'_>) -> bool {
    let name = place.path.rsplit('/').next().unwrap_or_default();
    let holds = |find: &dyn Fn(&[u8]) -> bool| match new_content(place, MAX_BYTES) {
        Ok(Some(content)) => find(&content.bytes),
        _ => true,
    };
    if let Some(object) = loose_object(place) {
        return ids.contains(&object);
    }
    if name == "index" {
        return holds(&|bytes| {
            GitIndex::decode(bytes).is_some_and(|index| index.objects().any(|id| ids.contains(&id)))
        });
    }
    name.starts_with("pack-")
        && name.ends_with(".idx")
        && holds(&|bytes| ids.iter().any(|id| bytes.windows(id.as_slice().len()).any(|window| window == id.as_slice())))
}
