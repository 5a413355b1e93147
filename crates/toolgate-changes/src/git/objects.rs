//! Names of objects, and whether git has one, loose or in a pack.

use std::path::{Path, PathBuf};

use gix_hash::{Kind, ObjectId};
use gix_object::{Exists, Find};

/// The name of a file's content as an object.
pub(crate) fn blob_id(kind: Kind, content: &[u8]) -> Option<ObjectId> {
    gix_object::compute_hash(kind, gix_object::Kind::Blob, content).ok()
}

/// The objects of a repository, or of several that lie inside of one another.
pub(crate) struct GitObjects {
    /// The git directory.
    directory: PathBuf,
}

impl GitObjects {
    /// The objects of the repository in this directory.
    pub(crate) fn in_directory(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The first of these objects that git doesn't have. `path` is the file in the git directory that refers to them: that of
    /// a submodule refers to the submodule's own objects.
    pub(crate) fn missing(&self, path: &str, ids: impl Iterator<Item = ObjectId>) -> Option<ObjectId> {
        let mut ids = ids.filter(|id| !id.is_null() && !id.is_empty_blob() && !id.is_empty_tree()).peekable();
        let kind = ids.peek()?.kind();
        let Some(store) = self.store_for(path, kind) else { return ids.next() };
        ids.find(|id| !store.exists(id))
    }

    /// The content of a blob. None if the repository borrows objects from elsewhere: they weren't shown to anybody here.
    pub(crate) fn blob(&self, id: ObjectId) -> Option<Vec<u8>> {
        let store = self.store_for("index", id.kind())?;
        if store.store_ref().alternate_db_paths().ok()?.is_empty() {
            let mut bytes = Vec::new();
            let kind = store.try_find(&id, &mut bytes).ok()??.kind;
            return (kind == gix_object::Kind::Blob).then_some(bytes);
        }
        None
    }

    fn store_for(&self, path: &str, kind: Kind) -> Option<gix_odb::Handle> {
        let mut inside = Path::new(path).ancestors().skip(1);
        inside.find_map(|inner| gix_odb::at(self.directory.join(inner).join("objects"), kind).ok())
    }
}
