//! The file contents that undo needs: every file before and after a change, stored once by hash. A quota limits the
//! size. The oldest contents are evicted first; undoing a change whose content was evicted fails with a message that
//! says so.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, linkat};
use toolgate_contract::{Blob, Change, ChangeSource, Durability, FileOwner, FileState, sha256_of};

use crate::JournalError;
use crate::directory::{DirectoryHandle, is_draft};

/// The default quota, in bytes.
const DEFAULT_QUOTA: u64 = 1 << 30;

/// File contents, stored by hash.
pub struct BlobStore {
    directory: DirectoryHandle,
    quota: u64,
    durability: Durability,
    stored: Mutex<StoredSize>,
    /// Hashes of contents that changes in progress need, and how many of them do.
    pinned: Mutex<HashMap<String, usize>>,
}

/// How much is stored.
#[derive(Default)]
struct StoredSize {
    /// The bytes, as far as they are known; other processes may add to them.
    total: Option<u64>,
    /// Where pinned contents exceed the quota, the total from which on it is worth looking for others to evict again.
    next_look: u64,
}

/// Protects contents from eviction while it lives.
pub struct BlobPin<'a> {
    contents: &'a BlobStore,
    hashes: Vec<String>,
}

impl Drop for BlobPin<'_> {
    fn drop(&mut self) {
        let mut pinned = self.contents.pinned.lock();
        for hash in self.hashes.drain(..) {
            if let Entry::Occupied(mut users) = pinned.entry(hash) {
                *users.get_mut() -= 1;
                if *users.get() == 0 {
                    users.remove();
                }
            }
        }
        drop(pinned);
        // What can't be evicted now is evicted when more is stored.
        let _ = self.contents.evict_unpinned();
    }
}

impl BlobStore {
    pub(crate) fn new(directory: DirectoryHandle, durability: Durability) -> Self {
        Self { directory, quota: DEFAULT_QUOTA, durability, stored: Mutex::default(), pinned: Mutex::default() }
    }

    /// Sets the quota, in bytes.
    #[must_use]
    pub fn with_quota(mut self, bytes: u64) -> Self {
        self.quota = bytes;
        self
    }

    /// The quota, in bytes.
    pub fn quota(&self) -> u64 {
        self.quota
    }

    /// How many bytes stay stored when the quota is reached: the contents of one change have to fit.
    pub fn room(&self) -> u64 {
        self.quota / 5 * 4
    }

    /// Protects the contents of changes from eviction while they are made: the new ones, which are to be written, and the
    /// previous ones, without which changes that fail or are killed half way couldn't be reverted.
    pub fn pin(&self, changes: &[Change]) -> BlobPin<'_> {
        let states = changes.iter().flat_map(|change| [&change.before, &change.after]).flatten();
        let hashes: Vec<String> = states.map(|state| state.sha256.clone()).collect();
        let mut pinned = self.pinned.lock();
        hashes.iter().for_each(|hash| *pinned.entry(hash.clone()).or_default() += 1);
        BlobPin { contents: self, hashes }
    }

    /// Stores content under its hash.
    pub fn put(&self, content: &Blob) -> Result<(), JournalError> {
        let (hash, size) = (content.sha256(), content.len() as u64);
        if self.directory.size_of(hash) != Some(size) {
            self.directory.put(hash, content, self.durability)?;
            self.count(size)?;
        }
        Ok(())
    }

    /// The content with this hash; none when it was evicted or damaged.
    pub fn get(&self, hash: &str) -> Result<Option<Blob>, JournalError> {
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(mut file) = (if is_hash { self.directory.existing(hash)? } else { None }) else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| self.directory.error("couldn't be read", hash, error))?;
        Ok(Some(Blob::from(bytes)).filter(|content| content.sha256() == hash))
    }

    /// Whether the content of this state is stored.
    pub fn has(&self, state: &FileState) -> bool {
        self.directory.size_of(&state.sha256) == Some(state.bytes)
    }

    /// Stores the content of a file that is about to be replaced. If `alone`, the file has no other name and nobody has it
    /// open for writing: then it is hard-linked into the store instead of copied, unless its mode keeps its owner
    /// out. Call [`BlobStore::own`] afterwards, whether the file was replaced or not. False if the file doesn't have that content any more.
    pub fn adopt(&self, file: &File, state: &FileState, alone: bool) -> Result<bool, JournalError> {
        match self.directory.size_of(&state.sha256) {
            Some(bytes) if bytes == state.bytes => return Ok(true),
            Some(_) => self.directory.remove(&state.sha256)?,
            None => {}
        }
        let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
        let is_readable = state.mode & Mode::RUSR.as_raw_mode() != 0;
        let linked = (alone && is_readable)
            .then(|| linkat(CWD, itself, self.directory.fd(), &state.sha256, AtFlags::SYMLINK_FOLLOW));
        if linked.is_none_or(|linked| linked.is_err()) && !self.copy(file, &state.sha256)? {
            return Ok(false);
        }
        self.count(state.bytes)?;
        Ok(true)
    }

    /// Makes sure that adopted content can't be changed any more: that it has no other name, and that nobody who
    /// `has_writers` tells of can write to it. Where it was changed already, it isn't that content any more, and goes.
    pub fn own(&self, hash: &str, has_writers: &dyn Fn(&File) -> bool) -> Result<(), JournalError> {
        let Some(file) = self.directory.existing(hash)? else { return Ok(()) };
        let facts = file.metadata().map_err(|error| self.directory.error("couldn't be inspected", hash, error))?;
        if facts.nlink() == 1 && !has_writers(&file) {
            return rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)
                .map_err(|errno| self.directory.error("couldn't be made private", hash, errno.into()));
        }
        match self.copy(&file, hash)? {
            true => Ok(()),
            false => self.directory.remove(hash),
        }
    }

    /// Copies a file into the store. False if it doesn't have the content with this hash; then nothing is stored.
    fn copy(&self, file: &File, hash: &str) -> Result<bool, JournalError> {
        let fault = |error| self.directory.error("couldn't be written", hash, error);
        let (mut draft, mut from) = (self.directory.draft()?, file);
        from.seek(SeekFrom::Start(0)).and_then(|_| std::io::copy(&mut from, &mut draft.file)).map_err(fault)?;
        draft.file.seek(SeekFrom::Start(0)).map_err(fault)?;
        // The copy is verified, not the file: a process that has the file open could change it in between.
        if sha256_of(&draft.file).map_err(fault)?.0 != hash {
            return Ok(false);
        }
        draft.place(&self.directory, hash, self.durability)?;
        Ok(true)
    }

    /// Writes the content of a state to a new file in another directory, readable only by its owner at first. What was
    /// written is verified: content that is no longer what was stored is never restored.
    fn write_file(&self, state: &FileState, directory: BorrowedFd<'_>, name: &str) -> std::io::Result<File> {
        let gone = || std::io::Error::new(ErrorKind::NotFound, "its content is no longer stored");
        let mut stored = self.directory.existing(&state.sha256).ok().flatten().ok_or_else(gone)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?);
        std::io::copy(&mut stored, &mut file)?;
        file.seek(SeekFrom::Start(0))?;
        if sha256_of(&file)?.0 != state.sha256 {
            rustix::fs::unlinkat(directory, name, AtFlags::empty())?;
            return Err(gone());
        }
        Ok(file)
    }

    fn count(&self, added: u64) -> Result<(), JournalError> {
        let mut stored = self.stored.lock();
        let total = match stored.total {
            Some(known) => known + added,
            None => self.entries()?.iter().map(|entry| entry.bytes).sum(),
        };
        stored.total = Some(total);
        if total > self.quota && total >= stored.next_look {
            *stored = self.evict()?;
        }
        Ok(())
    }

    /// Evicts what a pin kept beyond the quota.
    fn evict_unpinned(&self) -> Result<(), JournalError> {
        let mut stored = self.stored.lock();
        if stored.total.is_some_and(|total| total > self.quota) {
            *stored = self.evict()?;
        }
        Ok(())
    }

    /// Evicts the oldest contents until a fifth of the quota is free again. The newest content and protected contents
    /// always stay; a newest content that is larger than the quota evicts nothing else.
    fn evict(&self) -> Result<StoredSize, JournalError> {
        let mut entries = self.entries()?;
        let pinned = self.pinned.lock();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.modified));
        let (mut total, mut counted, mut is_held, room) = (0, 0, false, self.room());
        for (index, entry) in entries.iter().enumerate() {
            let is_newest = index == 0;
            let is_beyond = !is_newest && counted + entry.bytes > room;
            if is_beyond && !pinned.contains_key(&entry.name) {
                self.directory.remove(&entry.name)?;
                continue;
            }
            is_held |= is_beyond;
            total += entry.bytes;
            counted += if is_newest && entry.bytes > room { 0 } else { entry.bytes };
        }
        Ok(StoredSize { total: Some(total), next_look: if is_held { total + self.quota - room } else { 0 } })
    }

    fn entries(&self) -> Result<Vec<StoredBlob>, JournalError> {
        let path = self.directory.path();
        let list = std::fs::read_dir(path).map_err(|error| self.directory.error("couldn't be listed", ".", error))?;
        let stored = list.filter_map(|entry| {
            let entry = entry.ok()?;
            let facts = entry.metadata().ok()?;
            if is_being_written(&entry.file_name(), &facts) {
                return None;
            }
            // The ctime, because the mtime of an adopted file can be years old.
            let modified = (facts.ctime(), facts.ctime_nsec());
            Some(StoredBlob { name: entry.file_name().into_string().ok()?, bytes: facts.len(), modified })
        });
        Ok(stored.collect())
    }
}

impl ChangeSource for BlobStore {
    fn write_out(&self, change: &Change, directory: BorrowedFd<'_>, temporary: &str) -> std::io::Result<Option<File>> {
        let Some(state) = &change.after else { return Err(ErrorKind::InvalidInput.into()) };
        if !state.is_link() {
            return self.write_file(state, directory, temporary).map(Some);
        }
        let target = self.get(&state.sha256).map_err(std::io::Error::other)?.ok_or(ErrorKind::NotFound)?;
        rustix::fs::symlinkat(&*target, directory, temporary)?;
        Ok(None)
    }

    fn put(&self, change: &Change, directory: BorrowedFd<'_>, name: &[u8], temporary: &str) -> std::io::Result<()> {
        let Some(state) = &change.after else { return Err(ErrorKind::InvalidInput.into()) };
        copy_ownership(directory, name, temporary);
        if let Some(FileOwner { user, group }) = state.owner {
            // Only root can give a file to somebody else.
            let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            let _ = rustix::fs::chownat(directory, temporary, user, group, AtFlags::SYMLINK_NOFOLLOW);
        }
        // `chown` clears the special bits, so the mode is set afterwards.
        if !state.is_link() {
            let permissions = Mode::from_raw_mode(state.permissions());
            rustix::fs::chmodat(directory, temporary, permissions, AtFlags::empty())?;
        }
        if let Some(modified) = state.modified {
            let omitted = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
            let modified = Timespec { tv_sec: modified.as_second(), tv_nsec: modified.subsec_nanosecond() as _ };
            let times = Timestamps { last_access: omitted, last_modification: modified };
            rustix::fs::utimensat(directory, temporary, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(rustix::fs::renameat(directory, temporary, directory, name)?)
    }
}

/// A file that replaces another keeps its owner and attributes; only root can change the owner.
fn copy_ownership(directory: BorrowedFd<'_>, name: &[u8], new: &str) {
    let Ok(old) = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
    let (user, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
    let _ = rustix::fs::chownat(directory, new, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW);
    let open = |name: &[u8]| {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::openat(directory, name, flags, Mode::empty())
    };
    if let (Ok(from), Ok(to)) = (open(name), open(new.as_bytes())) {
        copy_attributes(&from, &to);
    }
}

/// Copies the user attributes. An attribute that can't be read doesn't prevent the file from being restored.
fn copy_attributes(from: &OwnedFd, to: &OwnedFd) {
    let mut names = vec![0; 64 * 1024];
    let length = rustix::fs::flistxattr(from, &mut names).unwrap_or(0);
    for name in names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        let mut value = vec![0; 64 * 1024];
        if let Ok(length) = rustix::fs::fgetxattr(from, name, &mut value) {
            let _ = rustix::fs::fsetxattr(to, name, &value[..length], XattrFlags::empty());
        }
    }
}

/// How long a file under a temporary name may take to be written: an older one was left by a killed process.
const LONGEST_WRITE: Duration = Duration::from_secs(60 * 60);

/// Whether a file is the draft of a content, perhaps of another process: nobody else may remove it.
fn is_being_written(name: &OsStr, facts: &Metadata) -> bool {
    let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let age = age.saturating_sub(u64::try_from(facts.ctime()).unwrap_or_default());
    is_draft(name) && age < LONGEST_WRITE.as_secs()
}

struct StoredBlob {
    name: String,
    bytes: u64,
    modified: (i64, i64),
}

impl DirectoryHandle {
    /// Removes a file; a missing file is not an error.
    pub(crate) fn remove(&self, name: &str) -> Result<(), JournalError> {
        match rustix::fs::unlinkat(self.fd(), name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(self.error("couldn't be removed", name, error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use toolgate_contract::WorkspacePath;

    use super::*;
    use crate::StateDirectory;

    fn contents() -> (tempfile::TempDir, BlobStore) {
        let workspace = tempfile::tempdir().unwrap();
        let contents = StateDirectory::open(workspace.path()).unwrap().contents(Durability::Os).unwrap();
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
        std::fs::write(contents.directory.path().join(hash), "other txt").unwrap();
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
        assert!(is_kept(&blobs[19]), "which drives out nothing else");
        contents.put(&Blob::from(vec![8; 100])).unwrap();
        assert!(!is_kept(&large) && is_kept(&blobs[19]), "until something newer comes");
    }

    #[test]
    fn what_a_change_brings_is_not_evicted_by_what_it_replaces() {
        let (_workspace, contents) = contents();
        let contents = contents.with_quota(1_000);
        let (brought, others) = (Blob::from(vec![0; 100]), (1..40u8).map(|n| Blob::from(vec![n; 100])));
        contents.put(&brought).unwrap();
        let state = FileState::new(brought.sha256(), 100, 0o644);
        let change =
            Change { path: "a".into(), place: WorkspacePath::in_workspace("a"), before: None, after: Some(state) };
        let pinned = contents.pin(&[change]);
        others.clone().for_each(|blob| contents.put(&blob).unwrap());
        assert!(contents.get(brought.sha256()).unwrap().is_some());
        drop(pinned);
        (40..60u8).for_each(|n| contents.put(&Blob::from(vec![n; 100])).unwrap());
        assert!(contents.get(brought.sha256()).unwrap().is_none());
    }

    #[test]
    fn what_a_change_replaces_stays_until_it_is_made() {
        let (_workspace, contents) = contents();
        let contents = contents.with_quota(1_000);
        let replaced: Vec<Blob> = (0..40u8).map(|n| Blob::from(vec![n; 100])).collect();
        let change = |blob: &Blob| {
            let before = Some(FileState::new(blob.sha256(), 100, 0o644));
            Change { path: "a".into(), place: WorkspacePath::in_workspace("a"), before, after: None }
        };
        let changes: Vec<Change> = replaced.iter().map(change).collect();
        let kept = || replaced.iter().filter(|blob| contents.get(blob.sha256()).unwrap().is_some()).count();
        let pinned = contents.pin(&changes);
        replaced.iter().for_each(|blob| contents.put(blob).unwrap());
        assert_eq!(kept(), replaced.len(), "all of it could be reverted");
        drop(pinned);
        assert_eq!(kept(), 8, "the newest, up to the quota");
    }

    #[test]
    fn a_content_that_is_being_written_is_never_evicted() {
        let (_workspace, contents) = contents();
        let contents = contents.with_quota(1_000);
        let mut draft = contents.directory.draft().unwrap();
        draft.file.write_all(&[7; 900]).unwrap();
        (0..40u8).for_each(|n| contents.put(&Blob::from(vec![n; 100])).unwrap());
        draft.place(&contents.directory, "a", Durability::Os).unwrap();
    }
}
