//! Where private caches are kept, one directory for each workspace:
//!
//! ```text
//! caches/<key>/files/       what commands see
//! caches/<key>/workspace    the path of the workspace, for people
//! caches/<key>/layers       what of the user's caches is mirrored
//! caches/<key>/lock         locked by every process that may run commands
//! caches/<key>/looked-at    when the size was looked at last
//! ```
//!
//! Once a day, the first process that uses a cache looks at its size: above the quota, the largest caches of single managers go as a
//! whole, since half of a cache is a broken one. Caches of workspaces that are gone go too.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::FlockOperation;

use crate::process::remove;

const FILES: &str = "files";
const WORKSPACE: &str = "workspace";
const LOCK: &str = "lock";
const LOOKED_AT: &str = "looked-at";
/// How often sizes are looked at.
const BETWEEN_LOOKS: Duration = Duration::from_secs(24 * 60 * 60);
/// The units of `st_blocks`.
const BLOCK: u64 = 512;

/// The private caches of all workspaces.
#[derive(Debug, Clone)]
pub struct CacheStore {
    directory: PathBuf,
    /// Bytes that one workspace's caches may have.
    quota: u64,
}

/// The caches of one workspace, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCache {
    /// The name of its directory.
    pub key: String,
    /// The workspace, as its path was last.
    pub workspace: PathBuf,
    /// The bytes on disk by manager, largest first. What is mirrored from the user's caches by symlinks has none.
    pub managers: Vec<(String, u64)>,
    /// Whether a running Toolgate uses them.
    pub is_in_use: bool,
}

impl StoredCache {
    /// All bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.managers.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Whether the workspace isn't there any more.
    pub fn is_orphaned(&self) -> bool {
        !self.workspace.is_dir()
    }
}

impl CacheStore {
    /// The caches in this directory.
    pub fn new(directory: PathBuf, quota: u64) -> Self {
        Self { directory, quota }
    }

    /// The directory of a workspace's caches that commands see.
    pub(super) fn private_directory(directory: &Path) -> PathBuf {
        directory.join(FILES)
    }

    /// Opens a workspace's caches, and makes them if there are none. They can't be cleared while the returned lock is held.
    pub(super) fn open(&self, key: &str, workspace: &Path) -> io::Result<(PathBuf, File)> {
        let directory = self.directory.join(key);
        DirBuilder::new().recursive(true).mode(0o700).create(Self::private_directory(&directory))?;
        let lock = lock_file(&directory)?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() && self.is_due(&directory) {
            self.keep_to_quota(&directory);
            self.remove_orphans(key);
        }
        rustix::fs::flock(&lock, FlockOperation::LockShared)?;
        let path = workspace.as_os_str().as_bytes();
        if fs::read(directory.join(WORKSPACE)).is_ok_and(|known| known != path) || !directory.join(WORKSPACE).exists() {
            fs::write(directory.join(WORKSPACE), path)?;
        }
        Ok((directory, lock))
    }

    /// All caches there are.
    pub fn list(&self) -> io::Result<Vec<StoredCache>> {
        let mut found: Vec<StoredCache> = self.keys()?.iter().filter_map(|key| self.stored(key)).collect();
        found.sort_by_key(|cache| std::cmp::Reverse(cache.bytes()));
        Ok(found)
    }

    /// The caches under one key, if there are some.
    pub fn stored(&self, key: &str) -> Option<StoredCache> {
        let directory = self.directory.join(key);
        let workspace = PathBuf::from(std::ffi::OsString::from_vec(fs::read(directory.join(WORKSPACE)).ok()?));
        let is_in_use = lock_file(&directory)
            .is_ok_and(|lock| rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err());
        let managers = sizes(&Self::private_directory(&directory));
        Some(StoredCache { key: key.to_owned(), workspace, managers, is_in_use })
    }

    /// Removes the caches under one key. Fails with `WouldBlock` while a running Toolgate uses them.
    pub fn clear(&self, key: &str) -> io::Result<()> {
        let directory = self.directory.join(key);
        let lock = lock_file(&directory)?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        remove(&directory);
        match directory.exists() {
            true => Err(ErrorKind::DirectoryNotEmpty.into()),
            false => Ok(()),
        }
    }

    fn keys(&self) -> io::Result<Vec<String>> {
        match fs::read_dir(&self.directory) {
            Ok(entries) => Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn is_due(&self, directory: &Path) -> bool {
        let file = directory.join(LOOKED_AT);
        let last = fs::metadata(&file).and_then(|found| found.modified());
        let is_due = last.is_ok_and(|last| SystemTime::now().duration_since(last).is_ok_and(|age| age > BETWEEN_LOOKS));
        if is_due || !file.exists() {
            let _ = fs::write(&file, "");
        }
        is_due
    }

    /// Removes the largest caches until the rest is within the quota. Nobody else uses them, as they are locked.
    fn keep_to_quota(&self, directory: &Path) {
        let private = Self::private_directory(directory);
        let sizes = sizes(&private);
        let mut left: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
        for (name, bytes) in &sizes {
            if left <= self.quota {
                break;
            }
            remove(&private.join(name));
            left -= bytes;
        }
    }

    fn remove_orphans(&self, but: &str) {
        for key in self.keys().unwrap_or_default().iter().filter(|key| *key != but) {
            let path = fs::read(self.directory.join(key).join(WORKSPACE)).ok();
            let is_gone = path.is_some_and(|path| !PathBuf::from(std::ffi::OsString::from_vec(path)).is_dir());
            if is_gone {
                let _ = self.clear(key);
            }
        }
    }
}

fn lock_file(directory: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(directory.join(LOCK))
}

/// The bytes of each entry, largest first; `cache` holds those of several managers, so its entries are listed instead.
fn sizes(private: &Path) -> Vec<(String, u64)> {
    let names = |below: &str| {
        let entries = fs::read_dir(private.join(below)).into_iter().flatten().flatten();
        let below = below.to_owned();
        entries.filter_map(move |entry| Some(Path::new(&below).join(entry.file_name()).to_str()?.to_owned()))
    };
    let top = names("").filter(|name| name != "cache");
    let mut sizes: Vec<(String, u64)> =
        top.chain(names("cache")).map(|name| (name.clone(), size(&private.join(name)))).collect();
    sizes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    sizes
}

/// The bytes on disk of a file or a directory. No symlink is followed.
fn size(path: &Path) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else { return 0 };
    let inner = if found.is_dir() {
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path())).sum()
    } else {
        0
    };
    found.blocks() * BLOCK + inner
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Caches {
        directory: tempfile::TempDir,
    }

    impl Caches {
        fn new() -> Self {
            Self { directory: tempfile::tempdir().unwrap() }
        }

        fn store(&self, quota: u64) -> CacheStore {
            CacheStore::new(self.directory.path().join("caches"), quota)
        }

        fn workspace(&self, name: &str) -> PathBuf {
            let path = self.directory.path().join(name);
            fs::create_dir_all(&path).unwrap();
            path
        }

        /// Opens a cache as a process would a week later.
        fn open_later(&self, store: &CacheStore, key: &str, workspace: &Path) {
            let week_ago = SystemTime::now() - BETWEEN_LOOKS * 7;
            let looked_at = self.directory.path().join("caches").join(key).join(LOOKED_AT);
            File::options().write(true).open(looked_at).unwrap().set_modified(week_ago).unwrap();
            drop(store.open(key, workspace).unwrap());
        }
    }

    #[test]
    fn above_the_quota_the_largest_cache_goes_and_the_others_stay() {
        let (caches, workspace) = (Caches::new(), Caches::new());
        let (store, workspace) = (caches.store(1 << 20), workspace.workspace("w"));
        let (directory, lock) = store.open("k", &workspace).unwrap();
        let private = CacheStore::private_directory(&directory);
        for (name, bytes) in [("npm", 400_000), ("cache/pip", 900_000), ("cache/uv", 500_000)] {
            fs::create_dir_all(private.join(name)).unwrap();
            fs::write(private.join(name).join("file"), vec![1; bytes]).unwrap();
        }
        drop(lock);
        let names = |store: &CacheStore| -> Vec<String> {
            store.stored("k").unwrap().managers.into_iter().map(|(name, _)| name).collect()
        };
        drop(store.open("k", &workspace).unwrap());
        assert_eq!(names(&store), ["cache/pip", "cache/uv", "npm"], "it was looked at today");
        caches.open_later(&store, "k", &workspace);
        assert_eq!(names(&store), ["cache/uv", "npm"]);
    }

    #[test]
    fn a_cache_in_use_is_neither_cleared_nor_trimmed() {
        let caches = Caches::new();
        let (store, workspace) = (caches.store(0), caches.workspace("w"));
        let (directory, lock) = store.open("k", &workspace).unwrap();
        let file = CacheStore::private_directory(&directory).join("npm");
        fs::write(&file, "x").unwrap();
        caches.open_later(&store, "k", &workspace);
        assert!(file.exists(), "another process uses it");
        assert!(store.stored("k").unwrap().is_in_use);
        assert_eq!(store.clear("k").unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(lock);
        store.clear("k").unwrap();
        assert_eq!(store.list().unwrap(), []);
    }

    #[test]
    fn the_cache_of_a_workspace_that_is_gone_goes_too() {
        let caches = Caches::new();
        let store = caches.store(u64::MAX);
        let (gone, there) = (caches.workspace("gone"), caches.workspace("there"));
        drop(store.open("a", &gone).unwrap());
        drop(store.open("b", &there).unwrap());
        fs::remove_dir(&gone).unwrap();
        assert_eq!(store.list().unwrap().iter().filter(|cache| cache.is_orphaned()).count(), 1);
        caches.open_later(&store, "b", &there);
        assert_eq!(store.list().unwrap().iter().map(|cache| cache.key.as_str()).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn clearing_follows_no_link_and_removes_what_is_read_only() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let caches = Caches::new();
        let (store, workspace) = (caches.store(u64::MAX), caches.workspace("w"));
        let outside = caches.workspace("outside");
        fs::write(outside.join("file"), "x").unwrap();
        let (directory, lock) = store.open("k", &workspace).unwrap();
        let module = CacheStore::private_directory(&directory).join("go/pkg/mod/m@v1");
        fs::create_dir_all(&module).unwrap();
        fs::write(module.join("file"), "x").unwrap();
        symlink(&outside, module.join("link")).unwrap();
        fs::set_permissions(&module, fs::Permissions::from_mode(0o555)).unwrap();
        drop(lock);
        store.clear("k").unwrap();
        assert!(outside.join("file").exists());
    }
}
