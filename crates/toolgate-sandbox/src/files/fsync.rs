//! Bringing new files to the disk before they take the places of old ones: otherwise a power cut could leave names that lead
//! to nothing. A few are synced one by one. For many that takes minutes, so their whole file system is synced once.

use std::collections::BTreeMap;
use std::fs::File;

use rustix::io::Errno;

/// Syncing a file system waits for whatever others write there, too: from this many files on, that takes less time.
const MANY: usize = 1_000;

/// Files that have to reach the disk.
pub(crate) struct SyncBatch {
    is_many: bool,
    /// One file of each file system that is to be synced.
    systems: BTreeMap<u64, File>,
}

impl SyncBatch {
    /// For this many files at the most.
    pub(crate) fn of(count: usize) -> Self {
        Self { is_many: count >= MANY, systems: BTreeMap::new() }
    }

    /// One more, which is whole.
    pub(crate) fn add(&mut self, file: File) -> Result<(), Errno> {
        if !self.is_many {
            return rustix::fs::fsync(&file);
        }
        self.systems.entry(rustix::fs::fstat(&file)?.st_dev).or_insert(file);
        Ok(())
    }

    /// All of them are on the disk when this returns.
    pub(crate) fn finish(&mut self) -> Result<(), Errno> {
        std::mem::take(&mut self.systems).values().try_for_each(rustix::fs::syncfs)
    }
}
