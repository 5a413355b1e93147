//! The bytes behind undo: every file's before and after, by hash, once each. A quota bounds it; what is evicted, oldest
//! first, can't be taken back any more, and asking for it says so.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;

use rustix::fs::AtFlags;
use toolgate_contract::Blob;

use crate::folder::Folder;
use crate::{Durability, JournalError};

/// How much is kept, unless somebody says otherwise.
const USUAL_QUOTA: u64 = 1 << 30;

/// A store of contents by hash.
pub struct Contents {
    folder: Folder,
    quota: u64,
    durability: Durability,
    /// What is stored, as far as it is known; other processes may add to it.
    stored: Mutex<Option<u64>>,
}

impl Contents {
    pub(crate) fn new(folder: Folder, durability: Durability) -> Self {
        Self { folder, quota: USUAL_QUOTA, durability, stored: Mutex::default() }
    }

    /// The same store with another quota, in bytes.
    #[must_use]
    pub fn with_quota(mut self, bytes: u64) -> Self {
        self.quota = bytes;
        self
    }

    /// Stores content under its hash.
    pub fn put(&self, content: &Blob) -> Result<(), JournalError> {
        let (hash, size) = (content.sha256(), content.len() as u64);
        let stored = self.folder.existing(hash)?;
        if stored.is_none_or(|file| file.metadata().is_ok_and(|facts| facts.len() != size)) {
            self.folder.put(hash, content, self.durability)?;
            self.count(size)?;
        }
        Ok(())
    }

    /// The content with this hash; none when it was evicted, or isn't what it was.
    pub fn get(&self, hash: &str) -> Result<Option<Blob>, JournalError> {
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(mut file) = (if is_hash { self.folder.existing(hash)? } else { None }) else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| self.folder.error("couldn't be read", hash, error))?;
        Ok(Some(Blob::from(bytes)).filter(|content| content.sha256() == hash))
    }

    fn count(&self, added: u64) -> Result<(), JournalError> {
        let mut stored = self.stored.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let total = match *stored {
            Some(known) => known + added,
            None => self.entries()?.iter().map(|entry| entry.bytes).sum(),
        };
        *stored = Some(if total > self.quota { self.evict()? } else { total });
        Ok(())
    }

    /// Lets the oldest go until a fifth of the quota is free again; the newest always stays.
    fn evict(&self) -> Result<u64, JournalError> {
        let mut entries = self.entries()?;
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.modified));
        let (mut total, room) = (0, self.quota / 5 * 4);
        for (index, entry) in entries.iter().enumerate() {
            if index > 0 && total + entry.bytes > room {
                self.folder.remove(&entry.name)?;
            } else {
                total += entry.bytes;
            }
        }
        Ok(total)
    }

    fn entries(&self) -> Result<Vec<Stored>, JournalError> {
        let path = self.folder.path();
        let list = std::fs::read_dir(path).map_err(|error| self.folder.error("couldn't be listed", ".", error))?;
        let stored = list.filter_map(|entry| {
            let entry = entry.ok()?;
            let facts = entry.metadata().ok()?;
            let modified = (facts.mtime(), facts.mtime_nsec());
            Some(Stored { name: entry.file_name().into_string().ok()?, bytes: facts.len(), modified })
        });
        Ok(stored.collect())
    }
}

struct Stored {
    name: String,
    bytes: u64,
    modified: (i64, i64),
}

impl Folder {
    /// Removes a file; one that is gone already is no fault.
    pub(crate) fn remove(&self, name: &str) -> Result<(), JournalError> {
        match rustix::fs::unlinkat(self.fd(), name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(self.error("couldn't be removed", name, error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    fn contents() -> (tempfile::TempDir, Contents) {
        let workspace = tempfile::tempdir().unwrap();
        let contents = State::open(workspace.path()).unwrap().contents(Durability::Os).unwrap();
        (workspace, contents)
    }

    #[test]
    fn content_comes_back_by_its_hash_or_not_at_all() {
        let (_workspace, contents) = contents();
        let text = Blob::from(b"some text".to_vec());
        contents.put(&text).unwrap();
        contents.put(&text).unwrap();
        let hash = text.sha256();
        assert_eq!(contents.get(hash).unwrap(), Some(text.clone()));
        assert_eq!(contents.get(&"0".repeat(64)).unwrap(), None);
        assert_eq!(contents.get("../index.db").unwrap(), None);
        std::fs::write(contents.folder.path().join(hash), "other txt").unwrap();
        assert_eq!(contents.get(hash).unwrap(), None, "content that was tampered with is no content");
    }

    #[test]
    fn the_oldest_go_first_and_the_newest_stays() {
        let (_workspace, contents) = contents();
        let contents = contents.with_quota(1_000);
        let is_kept = |blob: &Blob| contents.get(blob.sha256()).unwrap().is_some();
        let blobs: Vec<Blob> = (0..20u8).map(|n| Blob::from(vec![n; 100])).collect();
        blobs.iter().for_each(|blob| contents.put(blob).unwrap());
        let kept: Vec<bool> = blobs.iter().map(is_kept).collect();
        assert!(kept[19] && !kept[0], "{kept:?}");
        assert!(kept.iter().filter(|kept| **kept).count() <= 10, "{kept:?}");
        let large = Blob::from(vec![9; 5_000]);
        contents.put(&large).unwrap();
        assert!(is_kept(&large), "even when it is larger than the quota");
    }
}
