//! Mirrors a directory of the user's cache into a private one, by symlinks to files that commands see read-only, or by copies.
//!
//! Commands that run at the same time can change the private side in any way, so nothing there is ever reached by path: each
//! directory is opened from its parent's descriptor, and no symlink is followed. What a command made is never replaced.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::managers::MirrorMethod;

/// Names that are never mirrored: locks, which have to be the workspace's own, and what is being written.
const LEFT_OUT: &[&str] = &[".lock", ".tmp", "FETCH_HEAD", "tmp"];
const LEFT_OUT_ENDINGS: &[&str] = &[".lock", ".lck", ".part", ".tmp"];
/// Files of a git repository that git writes in place, or beside which it makes a lock.
const OF_GIT: &[&str] = &["HEAD", "config", "packed-refs"];
/// Directories deeper than this are left out.
const MOST_DEPTH: u32 = 32;

/// The directory of a Python's modules.
const SITE_PACKAGES: &str = "site-packages";
/// The file in it that leads to the user's modules.
const MODULE_PATH: &str = "toolgate-user.pth";

/// A directory to mirror.
pub(super) struct Mirror<'a> {
    /// The user's directory, absolute, as commands see it.
    pub(super) source: &'a Path,
    pub(super) method: MirrorMethod,
    /// Directories below the source that are mirrored in another way.
    pub(super) except: &'a [PathBuf],
}

impl Mirror<'_> {
    /// Adds what is missing to the directory at `target` below `private`, and removes symlinks whose file is gone.
    pub(super) fn update(&self, private: BorrowedFd<'_>, target: &Path) -> io::Result<()> {
        let (parent, name, depth) = match self.method {
            MirrorMethod::Configuration | MirrorMethod::FileCopy | MirrorMethod::FileLink => {
                (target.parent().unwrap_or(Path::new("")), target.file_name(), MOST_DEPTH)
            }
            _ => (target, None, 0),
        };
        let directory = make_directories(private, parent)?;
        if self.method == MirrorMethod::ModulePaths {
            return self.add_module_paths(directory.as_fd());
        }
        self.remove_dangling(directory.as_fd(), depth);
        match name {
            None => self.add(self.source, directory.as_fd(), 1),
            Some(name) if self.source.is_file() => self.add_file(self.source, directory.as_fd(), name),
            Some(_) => {}
        }
        Ok(())
    }

    /// Adds the entries of one directory. An entry that can't be added is left out: then it is downloaded again.
    fn add(&self, source: &Path, target: BorrowedFd<'_>, depth: u32) {
        let entries = std::fs::read_dir(source).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| !is_left_out(&entry.file_name())) {
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_symlink() {
                if let Ok(leads_to) = std::fs::read_link(&path) {
                    link(&leads_to, target, &name);
                }
            } else if matches!(self.method, MirrorMethod::EntryLinks(at) if at == depth) {
                link(&path, target, &name);
            } else if kind.is_dir() && depth < MOST_DEPTH && !self.except.contains(&path) {
                if let Ok(inner) = make_directory(target, &name) {
                    self.add(&path, inner.as_fd(), depth + 1);
                }
            } else if kind.is_file() {
                self.add_file(&path, target, &name);
            }
        }
    }

    fn add_file(&self, source: &Path, target: BorrowedFd<'_>, name: &OsStr) {
        let copied = match self.method {
            MirrorMethod::NewerCopies => copy(source, target, name, true),
            MirrorMethod::Copies | MirrorMethod::FileCopy => copy(source, target, name, false),
            MirrorMethod::FileLinks if OF_GIT.iter().any(|own| name == *own) => copy(source, target, name, false),
            MirrorMethod::FileLinks
            | MirrorMethod::FileLink
            | MirrorMethod::EntryLinks(_)
            | MirrorMethod::Configuration
            | MirrorMethod::ModulePaths => {
                link(source, target, name);
                Ok(())
            }
        };
        // What couldn't be copied is downloaded again.
        drop(copied);
    }

    /// Lets each version of Python find the modules of the user's behind those of the workspace.
    fn add_module_paths(&self, target: BorrowedFd<'_>) -> io::Result<()> {
        for entry in std::fs::read_dir(self.source).into_iter().flatten().flatten() {
            let (modules, name) = (entry.path().join(SITE_PACKAGES), entry.file_name());
            let Some(path) = modules.to_str().filter(|path| !path.contains(['\n', '\r', '\'', '\\'])) else { continue };
            if !name.as_bytes().starts_with(b"python") || !modules.is_dir() {
                continue;
            }
            let version = make_directory(target, &name)?;
            let directory = make_directory(version.as_fd(), OsStr::new(SITE_PACKAGES))?;
            // So that `.pth` files of the user's count too.
            put(directory.as_fd(), MODULE_PATH, format!("import site; site.addsitedir('{path}')\n").as_bytes())?;
        }
        Ok(())
    }

    /// Removes symlinks to files of the source that are gone: a manager would try to write through them.
    fn remove_dangling(&self, directory: BorrowedFd<'_>, depth: u32) {
        let Ok(entries) = Dir::read_from(directory) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            match entry.file_type() {
                FileType::Symlink => {
                    let Ok(leads_to) = rustix::fs::readlinkat(directory, name, Vec::new()) else { continue };
                    let leads_to = Path::new(OsStr::from_bytes(leads_to.to_bytes()));
                    if leads_to.starts_with(self.source) && rustix::fs::lstat(leads_to).is_err() {
                        let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
                    }
                }
                FileType::Directory if !matches!(name.to_bytes(), b"." | b"..") && depth < MOST_DEPTH => {
                    if let Ok(inner) = open_directory(directory, OsStr::from_bytes(name.to_bytes())) {
                        self.remove_dangling(inner.as_fd(), depth + 1);
                    }
                }
                _ => {}
            }
        }
    }
}

fn is_left_out(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    LEFT_OUT.iter().any(|left| name == *left) || LEFT_OUT_ENDINGS.iter().any(|end| bytes.ends_with(end.as_bytes()))
}

/// Makes a symlink, unless there is something of that name.
fn link(leads_to: &Path, directory: BorrowedFd<'_>, name: &OsStr) {
    let _ = rustix::fs::symlinkat(leads_to, directory, name);
}

/// Opens a directory and makes those of its path that are missing.
fn make_directories(private: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let mut directory = private.try_clone_to_owned()?;
    for name in path.components() {
        directory = make_directory(directory.as_fd(), name.as_os_str())?;
    }
    Ok(directory)
}

fn make_directory(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => open_directory(parent, name),
        Err(error) => Err(error),
    }
}

fn open_directory(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Copies a file, unless there is one, or one that is as new. The copy shares its blocks with the original where the file system can do that.
fn copy(source: &Path, directory: BorrowedFd<'_>, name: &OsStr, replaces_older: bool) -> io::Result<()> {
    let there = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    if there.is_some() && !replaces_older {
        return Ok(());
    }
    let original = File::open(source)?;
    let modified = original.metadata()?;
    let is_older = |there: rustix::fs::Stat| {
        (there.st_mtime, there.st_mtime_nsec as i64) < (modified.mtime(), modified.mtime_nsec())
    };
    if there.is_some_and(|there| !is_older(there)) {
        return Ok(());
    }
    // Another Toolgate that mirrors the same file has a name of its own.
    let temporary = CString::new(format!(".toolgate-{}", std::process::id()))?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = File::from(rustix::fs::openat(directory, &temporary, flags, Mode::from_raw_mode(0o644))?);
    let written = write_copy(original, &made, Timespec { tv_sec: modified.mtime(), tv_nsec: modified.mtime_nsec() });
    let placed = written.and_then(|()| Ok(rustix::fs::renameat(directory, &temporary, directory, name)?));
    if placed.is_err() {
        let _ = rustix::fs::unlinkat(directory, &temporary, AtFlags::empty());
    }
    placed
}

/// Writes a small file in one step, in place of what is there.
fn put(directory: BorrowedFd<'_>, name: &str, content: &[u8]) -> io::Result<()> {
    let temporary = CString::new(format!(".toolgate-{}", std::process::id()))?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut made = File::from(rustix::fs::openat(directory, &temporary, flags, Mode::from_raw_mode(0o644))?);
    let written = io::Write::write_all(&mut made, content);
    let placed = written.and_then(|()| Ok(rustix::fs::renameat(directory, &temporary, directory, name)?));
    if placed.is_err() {
        let _ = rustix::fs::unlinkat(directory, &temporary, AtFlags::empty());
    }
    placed
}

fn write_copy(mut original: File, mut made: &File, modified: Timespec) -> io::Result<()> {
    if rustix::fs::ioctl_ficlone(made, &original).is_err() {
        io::copy(&mut original, &mut made)?;
    }
    Ok(rustix::fs::futimens(made, &Timestamps { last_access: modified, last_modification: modified })?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Caches {
        directory: tempfile::TempDir,
    }

    impl Caches {
        fn new(files: &[&str]) -> Self {
            let caches = Self { directory: tempfile::tempdir().unwrap() };
            fs::create_dir_all(caches.private()).unwrap();
            files.iter().for_each(|name| caches.put(&caches.user().join(name), name));
            caches
        }

        fn user(&self) -> PathBuf {
            self.directory.path().join("user")
        }

        fn private(&self) -> PathBuf {
            self.directory.path().join("private")
        }

        fn put(&self, path: &Path, content: &str) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        fn mirror(&self, method: MirrorMethod) {
            let private = File::open(self.private()).unwrap();
            let source = self.user();
            Mirror { source: &source, method, except: &[] }.update(private.as_fd(), Path::new("cache")).unwrap();
        }

        /// The kind of each private path, and what it holds.
        fn found(&self, name: &str) -> String {
            let path = self.private().join("cache").join(name);
            match fs::symlink_metadata(&path) {
                Err(_) => "nothing".into(),
                Ok(found) if found.is_symlink() => {
                    format!("link to {}", fs::read_to_string(&path).unwrap_or_else(|_| "?".into()))
                }
                Ok(found) if found.is_dir() => "directory".into(),
                Ok(_) => format!("file with {}", fs::read_to_string(&path).unwrap()),
            }
        }
    }

    #[test]
    fn each_method_makes_links_or_copies_and_locks_stay_out() {
        let files = ["a/b/content", "a/b/index.lock", "a/.lock", "a/HEAD"];
        for (method, expected) in [
            (MirrorMethod::Copies, ["directory", "file with a/b/content", "nothing", "nothing", "file with a/HEAD"]),
            (MirrorMethod::FileLinks, ["directory", "link to a/b/content", "nothing", "nothing", "file with a/HEAD"]),
            // The path goes through the link, so there is a file, and the lock with it.
            (
                MirrorMethod::EntryLinks(2),
                ["link to ?", "file with a/b/content", "file with a/b/index.lock", "nothing", "link to a/HEAD"],
            ),
        ] {
            let caches = Caches::new(&files);
            caches.mirror(method);
            let found = ["a/b", "a/b/content", "a/b/index.lock", "a/.lock", "a/HEAD"].map(|name| caches.found(name));
            assert_eq!(found, expected, "{method:?}");
            caches.mirror(method);
            assert_eq!(caches.found("a/b/content"), expected[1], "{method:?}, twice");
        }
    }

    #[test]
    fn what_a_command_wrote_stays_and_what_the_user_removed_goes() {
        let caches = Caches::new(&["a/kept", "a/removed"]);
        caches.put(&caches.private().join("cache/a/kept"), "own");
        caches.mirror(MirrorMethod::FileLinks);
        assert_eq!(caches.found("a/kept"), "file with own");
        fs::remove_file(caches.user().join("a/removed")).unwrap();
        caches.put(&caches.user().join("a/new"), "new");
        caches.mirror(MirrorMethod::FileLinks);
        assert_eq!(caches.found("a/removed"), "nothing");
        assert_eq!(caches.found("a/new"), "link to new");
    }

    #[test]
    fn a_newer_file_of_the_users_replaces_an_older_copy_only_where_it_should() {
        for (method, expected) in [(MirrorMethod::NewerCopies, "newer"), (MirrorMethod::Copies, "index")] {
            let caches = Caches::new(&["index"]);
            caches.mirror(method);
            let tomorrow = std::time::SystemTime::now() + std::time::Duration::from_secs(86_400);
            fs::write(caches.user().join("index"), "newer").unwrap();
            File::options().write(true).open(caches.user().join("index")).unwrap().set_modified(tomorrow).unwrap();
            caches.mirror(method);
            assert_eq!(caches.found("index"), format!("file with {expected}"), "{method:?}");
        }
    }

    #[test]
    fn python_finds_the_modules_of_the_user_behind_its_own() {
        let caches = Caches::new(&["python3.11/site-packages/six.py", "python3.12/other", "node/site-packages/x"]);
        caches.mirror(MirrorMethod::ModulePaths);
        caches.mirror(MirrorMethod::ModulePaths);
        let expected = format!(
            "file with import site; site.addsitedir('{}')\n",
            caches.user().join("python3.11/site-packages").display()
        );
        assert_eq!(caches.found("python3.11/site-packages/toolgate-user.pth"), expected);
        assert_eq!(
            ["python3.11/site-packages/six.py", "python3.12", "node"].map(|name| caches.found(name)),
            ["nothing"; 3]
        );
    }

    #[test]
    fn a_directory_that_a_command_swapped_for_a_link_leads_nowhere() {
        let caches = Caches::new(&["a/b/file"]);
        let outside = caches.directory.path().join("outside");
        fs::create_dir_all(&outside).unwrap();
        for planted in ["cache", "cache/a", "cache/a/b"] {
            let link = caches.private().join(planted);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(&outside, &link).unwrap();
            let private = File::open(caches.private()).unwrap();
            let source = caches.user();
            for method in [MirrorMethod::Copies, MirrorMethod::FileLinks, MirrorMethod::ModulePaths] {
                let _ = Mirror { source: &source, method, except: &[] }.update(private.as_fd(), Path::new("cache"));
            }
            assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{planted}");
            fs::remove_file(link).unwrap();
        }
    }
}
