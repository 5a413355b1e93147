//! The directories in `layers`, each locked by the process that made it. They are inside the workspace, so a repository could
//! come with some: no symlink is followed to them or out of them, and they are removed by descriptor.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use toolgate_contract::ToolError;

use crate::files::openat2;
use crate::files::openat2::OpenMethod;

/// The file that is locked by the process in charge, and holds what the layers are for.
const LOCK: &str = "lock";
const NOTE: &str = "layers";

/// How long staged changes wait to be committed.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// A locked directory for layers. It is removed when this is dropped, unless it is kept.
pub(crate) struct LayerDirectory {
    path: PathBuf,
    name: String,
    parent: OwnedFd,
    itself: OwnedFd,
    lock: File,
    pub(super) kept: bool,
}

impl LayerDirectory {
    /// Makes a new directory in `parent`.
    pub(crate) fn make(parent: &Path) -> Result<Self, ToolError> {
        let fault = |error: io::Error| ToolError::io("A directory for a command's changes can't be made", &error);
        match rustix::fs::mkdir(parent, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(fault(errno.into())),
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        for number in 0..u32::MAX {
            let name = format!("{now:x}-{:x}-{number}", std::process::id());
            match Self::make_as(parent, &name) {
                // Another process has the name, or removed the directory as an abandoned one.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::AlreadyExists | ErrorKind::WouldBlock | ErrorKind::NotFound
                    ) => {}
                made => return made.map_err(fault),
            }
        }
        Err(ToolError::internal("There are no more names for a command's changes."))
    }

    fn make_as(parent: &Path, name: &str) -> io::Result<Self> {
        rustix::fs::mkdirat(open_directory(parent)?, name, Mode::RWXU)?;
        let made = Self::open(parent, name)?;
        // The directory may have been removed before it was locked.
        rustix::fs::statat(&made.itself, LOCK, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(made)
    }

    /// Locks an existing directory, by its name in `parent`.
    pub(super) fn open(parent: &Path, name: &str) -> io::Result<Self> {
        let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_plain {
            return Err(ErrorKind::NotFound.into());
        }
        let (path, parent) = (parent.join(name), open_directory(parent)?);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let itself = rustix::fs::openat(&parent, name, flags, Mode::empty())?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let lock = File::from(rustix::fs::openat(&itself, LOCK, flags, Mode::RUSR | Mode::WUSR)?);
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, name: name.to_owned(), parent, itself, lock, kept: false })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// When the directory was made.
    pub(super) fn begun(&self) -> io::Result<Timestamp> {
        let found = self.lock.metadata()?;
        Ok(Timestamp::new(found.ctime(), found.ctime_nsec() as i32).unwrap_or(Timestamp::MIN))
    }

    /// The note that was stored with the layers.
    pub(super) fn note(&self) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut bytes = Vec::new();
        File::from(rustix::fs::openat(&self.itself, NOTE, flags, Mode::empty())?).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Stores a note with the layers. From then on they wait to be committed.
    pub(super) fn put_note(&self, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(rustix::fs::openat(&self.itself, NOTE, flags, Mode::RUSR | Mode::WUSR)?).write_all(bytes)
    }

    /// Makes a directory in it for a command's temporary files.
    pub(crate) fn make_scratch(&self) -> Result<PathBuf, ToolError> {
        let fault = |errno: Errno| ToolError::io("A directory for temporary files can't be made", &errno.into());
        rustix::fs::mkdirat(&self.itself, "room", Mode::RWXU).map_err(fault)?;
        Ok(self.path.join("room"))
    }

    /// Whether its changes wait to be committed.
    fn waits(&self) -> bool {
        let note = rustix::fs::statat(&self.itself, NOTE, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        note.is_ok_and(|note| now.saturating_sub(note.st_mtime as u64) < KEPT_FOR.as_secs())
    }
}

impl Drop for LayerDirectory {
    fn drop(&mut self) {
        if !self.kept {
            crate::process::remove(&Path::new(&format!("/proc/self/fd/{}", self.parent.as_raw_fd())).join(&self.name));
        }
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Removes abandoned directories: of processes that were killed, and of rehearsals that weren't committed in time.
pub(crate) fn sweep(parent: &Path) {
    let Ok(handle) = open_directory(parent) else { return };
    let names = fs::read_dir(format!("/proc/self/fd/{}", handle.as_raw_fd())).into_iter().flatten().flatten();
    for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
        if let Ok(mut left) = LayerDirectory::open(parent, &name) {
            left.kept = left.waits();
        }
    }
}

/// Opens a directory by path, without following symlinks.
fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, "/", flags, Mode::empty())?;
    let beneath = path.strip_prefix("/").unwrap_or(path);
    Ok(openat2::open(OpenMethod::probe(), root.as_fd(), beneath.as_os_str().as_bytes(), flags)?)
}
