//! Looks up the paths of one plan. Most of them are beside each other, so directories that were found on the way are
//! remembered, and the next path in them costs a single system call.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::super::plan::PinnedPath;

/// The paths of one plan, as they are right now. A path that is replaced after it was looked up isn't mounted: whoever builds
/// the sandbox opens each one without following symlinks, and compares it with the file that was seen here.
#[derive(Debug, Default)]
pub(super) struct PathLookup {
    /// Directories without a symlink on the way.
    real: RefCell<HashSet<PathBuf>>,
}

impl PathLookup {
    /// A path, if it exists.
    pub(super) fn find(&self, path: &Path) -> Option<PinnedPath> {
        self.pin(path).ok()
    }

    /// Resolves the symlinks of a path, and notes which file it names.
    pub(super) fn pin(&self, path: &Path) -> Result<PinnedPath, Errno> {
        if !is_normalized(path) {
            return pin_behind_links(path);
        }
        match self.look_at(path)? {
            // Without symlinks, a normalized path is the real one.
            Some(found) => pinned(CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?, &found),
            None => pin_behind_links(path),
        }
    }

    /// What is at a normalized path; none if that is a symlink or behind one.
    fn look_at(&self, path: &Path) -> Result<Option<Stat>, Errno> {
        if !self.is_real_directory(path.parent().unwrap_or(path))? {
            return Ok(None);
        }
        let found = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        if kind.is_dir() {
            self.real.borrow_mut().insert(path.to_owned());
        }
        Ok((!kind.is_symlink()).then_some(found))
    }

    fn is_real_directory(&self, path: &Path) -> Result<bool, Errno> {
        let is_known = path == Path::new("/") || self.real.borrow().contains(path);
        Ok(is_known || self.look_at(path)?.is_some())
    }
}

/// Resolves the symlinks of a path by opening it: its real path is that of the opened descriptor.
fn pin_behind_links(path: &Path) -> Result<PinnedPath, Errno> {
    let opened = rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let real = rustix::fs::readlink(format!("/proc/self/fd/{}", opened.as_raw_fd()), Vec::new())?;
    pinned(real, &rustix::fs::fstat(&opened)?)
}

fn pinned(path: CString, found: &Stat) -> Result<PinnedPath, Errno> {
    let directory = FileType::from_raw_mode(found.st_mode).is_dir();
    Ok(PinnedPath { path, device: found.st_dev, inode: found.st_ino, directory })
}

/// Whether a path is absolute and has no `.`, no `..` and no empty component.
fn is_normalized(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let named = |part: &[u8]| !part.is_empty() && part != b"." && part != b"..";
    bytes.strip_prefix(b"/").is_some_and(|rest| rest.split(|byte| *byte == b'/').all(named))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn paths_are_found_by_their_real_names_whatever_was_looked_up_before() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let base = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("real/inner")).unwrap();
        std::fs::write(base.join("real/inner/file"), "").unwrap();
        symlink("real", base.join("link")).unwrap();
        symlink("inner/file", base.join("real/file-link")).unwrap();
        let lookup = PathLookup::default();
        for (name, real) in [
            ("real", "real"),
            ("link", "real"),
            ("link/inner/file", "real/inner/file"),
            ("real/inner", "real/inner"),
            ("real/inner/file", "real/inner/file"),
            ("real/file-link", "real/inner/file"),
            ("real/./inner/../inner/file", "real/inner/file"),
            ("real//inner/", "real/inner"),
        ] {
            let (found, expected) = (lookup.pin(&base.join(name)).unwrap(), base.join(real));
            let metadata = expected.metadata().unwrap();
            assert_eq!(found.path.to_bytes(), expected.as_os_str().as_bytes(), "{name}");
            assert_eq!(
                (found.device, found.inode, found.directory),
                (metadata.dev(), metadata.ino(), metadata.is_dir())
            );
        }
    }

    #[test]
    fn what_is_not_there_is_said() {
        let lookup = PathLookup::default();
        for path in ["/nowhere", "/nowhere/at/all", "/usr/nowhere", "/usr/nowhere/at/all"] {
            assert_eq!(lookup.pin(Path::new(path)), Err(Errno::NOENT), "{path}");
        }
        assert_eq!(lookup.pin(Path::new("/etc/passwd/x")), Err(Errno::NOTDIR));
    }
}
