//! Where the search index of a workspace is stored: `.toolgate/search/`. Each file is signed for its name and its directory,
//! since a repository could bring an index of its own. What isn't signed, or isn't whole, is as if it weren't there.

use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, OFlags};
use toolgate_contract::Durability;

use crate::directory::DirectoryHandle;
use crate::{JournalError, SigningKey};

const LOCK: &str = "lock";
/// How often a lock that another process holds is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// The stored search index of one workspace.
pub struct SearchStore {
    directory: DirectoryHandle,
    key: SigningKey,
    /// Device and inode of the directory.
    identity: String,
}

/// Held by the process that changes the index.
pub struct SearchLock {
    _file: File,
}

/// A file of the index.
#[derive(Debug, PartialEq, Eq)]
pub enum StoredPart {
    /// There is none.
    Missing,
    /// It isn't whole, or nobody with this key wrote it.
    Damaged,
    /// Its content.
    Content(Vec<u8>),
}

/// Which version of a file is there: its inode, size and time of change.
pub type PartVersion = (u64, u64, i64, i64);

impl SearchStore {
    pub(crate) fn new(directory: DirectoryHandle, key: SigningKey) -> Result<Self, JournalError> {
        let facts = rustix::fs::fstat(directory.fd())
            .map_err(|errno| directory.error("couldn't be inspected", ".", errno.into()))?;
        let identity = format!("{}:{}", facts.st_dev, facts.st_ino);
        Ok(Self { directory, key, identity })
    }

    /// Waits at most this long until no other process changes the index; none if one still does.
    pub fn lock(&self, wait: Duration) -> Result<Option<SearchLock>, JournalError> {
        let file = self.directory.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        let begun = Instant::now();
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(SearchLock { _file: file })),
                Err(rustix::io::Errno::WOULDBLOCK) if begun.elapsed() >= wait => return Ok(None),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => std::thread::sleep(RETRY),
                Err(errno) => return Err(self.directory.error("couldn't be locked", LOCK, errno.into())),
            }
        }
    }

    /// Which version of a file is there; none if there is no such file.
    pub fn version(&self, name: &str) -> Option<PartVersion> {
        let facts = rustix::fs::statat(self.directory.fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((facts.st_ino, facts.st_size as u64, facts.st_ctime, facts.st_ctime_nsec as i64))
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> Result<StoredPart, JournalError> {
        let Some(mut file) = self.directory.existing(name)? else { return Ok(StoredPart::Missing) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| self.directory.error("couldn't be read", name, error))?;
        match self.key.unseal(&self.purpose(name), &bytes) {
            Some(content) => Ok(StoredPart::Content(content.to_vec())),
            None => Ok(StoredPart::Damaged),
        }
    }

    /// Writes a file completely, or not at all.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), JournalError> {
        // What is lost in a power failure is indexed again.
        self.directory.put(name, &self.key.seal(&self.purpose(name), content), Durability::Os)
    }

    /// Removes everything but these files and the lock. The caller holds the lock.
    pub fn retain(&self, kept: &[&str]) -> Result<(), JournalError> {
        for name in self.directory.names()? {
            if !matches!(name.as_str(), "." | ".." | LOCK) && !kept.contains(&name.as_str()) {
                let _ = rustix::fs::unlinkat(self.directory.fd(), name.as_str(), AtFlags::empty());
            }
        }
        Ok(())
    }

    /// How many bytes the files take.
    pub fn size(&self) -> Result<u64, JournalError> {
        Ok(self.directory.names()?.iter().filter_map(|name| self.directory.size_of(name)).sum())
    }

    fn purpose(&self, name: &str) -> String {
        format!("search index {} {name}", self.identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_here_is_read() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = |path: &std::path::Path, key: u8| {
            SearchStore::new(DirectoryHandle::at(path).unwrap(), SigningKey::from([key; 32])).unwrap()
        };
        let own = store(here.path(), 1);
        assert_eq!(own.read("part").unwrap(), StoredPart::Missing);
        own.write("part", b"numbers").unwrap();
        assert_eq!(own.read("part").unwrap(), StoredPart::Content(b"numbers".to_vec()));
        assert_eq!(store(here.path(), 2).read("part").unwrap(), StoredPart::Damaged, "another user's key");
        std::fs::copy(here.path().join("part"), here.path().join("other")).unwrap();
        assert_eq!(own.read("other").unwrap(), StoredPart::Damaged, "under another name");
        std::fs::copy(here.path().join("part"), there.path().join("part")).unwrap();
        assert_eq!(store(there.path(), 1).read("part").unwrap(), StoredPart::Damaged, "of another workspace");
        own.retain(&["part"]).unwrap();
        assert_eq!(own.read("other").unwrap(), StoredPart::Missing);
        let held = own.lock(Duration::ZERO).unwrap();
        assert!(held.is_some() && store(here.path(), 1).lock(Duration::ZERO).unwrap().is_none());
    }
}
