//! Syncs new files to disk before they replace old ones: otherwise a power failure could leave empty files. A few are synced
//! one by one. For many that takes minutes, so their whole file system is synced once.

use std::collections::BTreeMap;
use std::fs::File;

use rustix::io::Errno;

/// Syncing a file system also waits for the writes of other processes; from this many files on it is faster all the same.
const MANY: usize = 1_000;

/// Files that have to be synced.
pub(crate) struct SyncBatch {
    is_many: bool,
    /// One file of each file system that will be synced.
    systems: BTreeMap<u64, File>,
}

impl SyncBatch {
    /// For at most this many files.
    pub(crate) fn of(count: usize) -> Self {
        Self { is_many: count >= MANY, systems: BTreeMap::new() }
    }

    /// Adds a file that is complete.
    pub(crate) fn add(&mut self, file: File) -> Result<(), Errno> {
        if !self.is_many {
            return rustix::fs::fsync(&file);
        }
        self.systems.entry(rustix::fs::fstat(&file)?.st_dev).or_insert(file);
        Ok(())
    }

    /// Syncs all files.
    pub(crate) fn finish(&mut self) -> Result<(), Errno> {
        std::mem::take(&mut self.systems).values().try_for_each(rustix::fs::syncfs)
    }
}
