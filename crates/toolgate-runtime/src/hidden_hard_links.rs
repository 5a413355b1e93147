//! Hard links to hidden files: the same content under a name that policy doesn't hide. Such links are rare, so they are
//! looked for only if the number of a hidden file's links says that there are any.

use std::collections::BTreeMap;

use toolgate_contract::{EntryKind, FileMetadata, Files, STATE_DIRECTORY, ToolError, WorkspacePath};

/// A file, whatever its name: the device of its file system and its inode number.
pub(crate) type Inode = (u64, u64);

/// The hidden files that have more names than one.
#[derive(Debug, Default)]
pub(crate) struct HiddenHardLinks {
    /// Each such file with a name that policy hides, and how many of its names are not hidden.
    files: BTreeMap<Inode, (WorkspacePath, u64)>,
}

impl HiddenHardLinks {
    /// Those among the paths that policy hides, and in the directories among them.
    pub(crate) fn of(hidden: &[WorkspacePath], files: &dyn Files) -> Result<Self, ToolError> {
        let mut links = Self::default();
        for place in hidden {
            match files.node(place, false)? {
                Some(node) if node.state.is_directory() && !is_own_state(place) => links.add_directory(place, files)?,
                Some(node) if node.state.is_file() => links.add(place, &node),
                _ => {}
            }
        }
        Ok(links)
    }

    /// Adds every file in a hidden directory. A directory that can't be listed is left out: what is in it has no name
    /// that can be compared.
    fn add_directory(&mut self, directory: &WorkspacePath, files: &dyn Files) -> Result<(), ToolError> {
        for (place, kind) in entries(directory, files)? {
            match kind {
                EntryKind::Directory => self.add_directory(&place, files)?,
                EntryKind::File => files.node(&place, false)?.iter().for_each(|node| self.add(&place, node)),
                EntryKind::Link | EntryKind::Other => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, place: &WorkspacePath, node: &FileMetadata) {
        if node.links > 1 {
            let inode = (node.device, node.number);
            let (_, others) = self.files.entry(inode).or_insert_with(|| (place.clone(), node.links));
            *others = others.saturating_sub(1);
        }
    }

    /// The hidden name of a file.
    pub(crate) fn hidden_name(&self, inode: Inode) -> Option<&WorkspacePath> {
        self.files.get(&inode).map(|(place, _)| place)
    }

    /// Whether a hidden file has a name that policy doesn't hide. It may be outside of all roots.
    pub(crate) fn has_other_names(&self) -> bool {
        self.files.values().any(|(_, others)| *others > 0)
    }

    /// The other names in a directory.
    pub(crate) fn names_in(
        &self,
        directory: &WorkspacePath,
        files: &dyn Files,
    ) -> Result<Vec<WorkspacePath>, ToolError> {
        let mut names = Vec::new();
        for (place, _) in entries(directory, files)?.into_iter().filter(|(_, kind)| *kind == EntryKind::File) {
            let node = files.node(&place, false)?.filter(|node| node.links > 1);
            if node.is_some_and(|node| self.files.contains_key(&(node.device, node.number))) {
                names.push(place);
            }
        }
        Ok(names)
    }
}

/// Whether this is Toolgate's own state, which holds hard links to ordinary files: earlier contents and snapshots.
fn is_own_state(place: &WorkspacePath) -> bool {
    place.path.split('/').any(|name| name == STATE_DIRECTORY)
}

/// What is in a directory.
fn entries(directory: &WorkspacePath, files: &dyn Files) -> Result<Vec<(WorkspacePath, EntryKind)>, ToolError> {
    let mut found = Vec::new();
    files.look(directory, None, &mut |name, kind| {
        found.push((directory.join(name), kind));
    })?;
    Ok(found)
}
