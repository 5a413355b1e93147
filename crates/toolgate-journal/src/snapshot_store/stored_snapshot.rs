//! One snapshot on disk, locked by this process: its records, and numbered copies of files.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, OFlags};

use super::change_notice::{self, ChangeNotice};
use super::{FilesystemTime, LAST, SignedRecords};
use crate::JournalError;
use crate::directory::DirectoryHandle;

const LOCK: &str = "lock";

/// A snapshot on disk. Nobody else uses it until this is dropped.
pub struct StoredSnapshot {
    records: SignedRecords,
    directory: DirectoryHandle,
    parent: DirectoryHandle,
    /// Its name in the snapshot directory.
    name: String,
    is_discarded: bool,
    // The lock lives as long as the snapshot.
    lock: File,
}

impl StoredSnapshot {
    /// Locks a snapshot; none if another process holds it.
    pub(super) fn lock(
        parent: DirectoryHandle,
        directory: DirectoryHandle,
        records: SignedRecords,
    ) -> Result<Option<Self>, JournalError> {
        let lock = directory.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let name = directory.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Some(Self { records, directory, parent, name, is_discarded: false, lock }))
    }

    /// Its name among the snapshots.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The current time, by the clock of its file system.
    pub fn time(&self) -> Result<FilesystemTime, JournalError> {
        FilesystemTime::now(&self.lock)
    }

    /// Whether its records are signed.
    pub fn is_signed(&self) -> bool {
        self.records.key().is_some()
    }

    /// Its records in order; none unless there is one and every one has a valid signature.
    pub fn records(&mut self) -> Result<Option<Vec<Vec<u8>>>, JournalError> {
        self.records.read(&self.directory)
    }

    /// Replaces all records by this one.
    pub fn write(&mut self, record: &[u8]) -> Result<(), JournalError> {
        self.records.write(&self.directory, record)
    }

    /// Adds a record.
    pub fn append(&mut self, record: &[u8]) -> Result<(), JournalError> {
        self.records.append(&self.directory, record)
    }

    /// A new, empty file for a copy with this number. A copy that a killed process made but never listed gives way. It is
    /// unlinked, not truncated: it may be in the blob store as well.
    pub fn new_copy(&self, number: u64) -> Result<File, JournalError> {
        let (name, flags) = (number.to_string(), OFlags::RDWR | OFlags::CREATE | OFlags::EXCL);
        match self.directory.file(&name, flags) {
            Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                self.directory.remove(&name)?;
                self.directory.file(&name, flags)
            }
            other => other,
        }
    }

    /// Deletes copies that aren't listed: a process was killed before it could list or delete them.
    pub fn remove_unlisted(&self, listed: &BTreeSet<u64>) -> Result<(), JournalError> {
        let unlisted = |name: &String| name.parse().is_ok_and(|number| !listed.contains(&number));
        self.directory.names()?.iter().filter(|name| unlisted(name)).try_for_each(|name| self.directory.remove(name))
    }

    /// What other calls changed since the snapshot was taken, by the name of the notice, in order.
    pub fn notices(&self) -> Result<Vec<(String, ChangeNotice)>, JournalError> {
        change_notice::read(&self.directory, self.records.key())
    }

    /// Deletes a notice, once what it says is part of the records.
    pub fn remove_notice(&self, name: &str) -> Result<(), JournalError> {
        change_notice::remove(&self.directory, name)
    }

    /// The copy with this number; none if it is gone.
    pub fn copy(&self, number: u64) -> Result<Option<File>, JournalError> {
        self.directory.existing(&number.to_string())
    }

    /// Deletes the copy with this number.
    pub fn remove_copy(&self, number: u64) -> Result<(), JournalError> {
        self.directory.remove(&number.to_string())
    }

    /// Gives a draft that is complete its name: from now on it is found after a kill.
    pub fn publish(&mut self, name: &str) -> Result<(), JournalError> {
        self.parent.rename(&self.name, name)?;
        name.clone_into(&mut self.name);
        Ok(())
    }

    /// Keeps it as the last one, in place of the one before.
    pub fn keep_as_last(mut self) {
        change_notice::clear(&self.directory);
        self.parent.discard(LAST);
        self.is_discarded = self.publish(LAST).is_err();
    }

    /// Deletes it.
    pub fn discard(mut self) {
        self.is_discarded = true;
    }
}

impl Drop for StoredSnapshot {
    fn drop(&mut self) {
        if self.is_discarded {
            self.parent.discard(&self.name);
        }
        // Unlocked explicitly: a child process that is just being started may still have the file open.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}
