//! Which managers a workspace uses, and what of the user's caches is mirrored already: a small file beside the private
//! directory, out of reach of commands.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::managers::{MirrorMethod, UserLayer};

/// The name of the file.
const FILE: &str = "layers";
/// Subdirectories whose times are looked at. Managers spread their files over 256 of them at most.
const MOST_SUBDIRECTORIES: usize = 260;
/// Some changes of a cache leave no trace in the times that are looked at, so everything is compared once a day.
const SECONDS_OF_A_DAY: u64 = 24 * 60 * 60;

/// Stamps by the target of a layer; a manager in use is an entry with its name.
#[derive(Debug)]
pub(super) struct LayerStamps {
    file: PathBuf,
    stamps: BTreeMap<String, u64>,
    is_changed: bool,
}

impl LayerStamps {
    /// Reads the stamps of a workspace. What can't be read is mirrored anew.
    pub(super) fn load(directory: &Path) -> Self {
        let file = directory.join(FILE);
        let text = fs::read_to_string(&file).unwrap_or_default();
        let entry =
            |line: &str| line.rsplit_once(' ').and_then(|(name, stamp)| Some((name.to_owned(), stamp.parse().ok()?)));
        Self { file, stamps: text.lines().filter_map(entry).collect(), is_changed: false }
    }

    pub(super) fn uses(&self, manager: &str) -> bool {
        self.stamps.contains_key(manager)
    }

    pub(super) fn set_used(&mut self, manager: &str) {
        self.set(manager, 1);
    }

    pub(super) fn set(&mut self, name: &str, stamp: u64) {
        self.stamps.insert(name.to_owned(), stamp);
        self.is_changed = true;
    }

    /// The new stamp of a source, if it has changed since it was mirrored, or if the mirror was removed.
    pub(super) fn stamp_if_changed(
        &self,
        layer: &UserLayer,
        source: &Path,
        witness: Option<&Path>,
        is_removed: bool,
    ) -> Option<u64> {
        // The entries of such a directory are complete once they are there, and there may be thousands.
        let has_subdirectories = layer.method != MirrorMethod::EntryLinks(1);
        let stamp = stamp(source, witness, has_subdirectories);
        (is_removed || self.stamps.get(layer.target) != Some(&stamp)).then_some(stamp)
    }

    /// Writes the stamps, if there are new ones. Another process may have written its own meanwhile: then something is mirrored
    /// twice, and nothing else happens.
    pub(super) fn save(&mut self) {
        if !std::mem::take(&mut self.is_changed) {
            return;
        }
        let text: String = self.stamps.iter().map(|(name, stamp)| format!("{name} {stamp}\n")).collect();
        let temporary = self.file.with_extension(std::process::id().to_string());
        let _ = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, &self.file));
    }
}

/// A number that changes when something is added to a directory or removed from it: the times of the directory, of its
/// subdirectories and of a witness, and the day.
fn stamp(source: &Path, witness: Option<&Path>, has_subdirectories: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut add = |path: &Path| {
        let found = fs::symlink_metadata(path).map(|found| (found.ino(), found.mtime(), found.mtime_nsec())).ok();
        found.hash(&mut hasher);
    };
    add(source);
    witness.into_iter().for_each(&mut add);
    let entries = has_subdirectories.then(|| fs::read_dir(source)).into_iter().flatten().flatten().flatten();
    let mut directories: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .take(MOST_SUBDIRECTORIES)
        .collect();
    directories.sort();
    directories.iter().for_each(|path| add(path));
    let day = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / SECONDS_OF_A_DAY;
    day.hash(&mut hasher);
    hasher.finish()
}
