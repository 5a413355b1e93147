//! A directory held by its file descriptor. Everything below is opened one plain name at a time, and no symbolic link
//! is ever followed, so a repository with a `.toolgate` of its own can't redirect the record elsewhere. Everything
//! created here is private to its owner: directories 0700, files 0600.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use toolgate_contract::{Durability, sha256};
use uuid::Uuid;

use crate::JournalError;

type Result<T, E = JournalError> = std::result::Result<T, E>;

const DIRECTORY_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open directory, and its path for messages.
pub(crate) struct DirectoryHandle {
    handle: OwnedFd,
    path: PathBuf,
}

impl DirectoryHandle {
    /// Opens a directory by path. Symbolic links in this path are followed.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| JournalError::io(format!("`{}` couldn't be opened", path.display()))(errno.into()))?;
        Ok(Self { handle, path: path.to_owned() })
    }

    /// Its file descriptor.
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.handle
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the directory `name` in here, and creates it if there is none.
    pub(crate) fn make(&self, name: &str) -> Result<Self> {
        match rustix::fs::mkdirat(&self.handle, name, DIRECTORY_MODE) {
            Ok(()) | Err(Errno::EXIST) => self.open(name),
            Err(errno) => Err(self.error("couldn't be created", name, errno.into())),
        }
    }

    /// Creates the directory `name` in here; false when that name exists already.
    pub(crate) fn make_new(&self, name: &str) -> Result<bool> {
        match rustix::fs::mkdirat(&self.handle, name, DIRECTORY_MODE) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(self.error("couldn't be created", name, errno.into())),
        }
    }

    /// Opens the directory `name` in here and removes the access rights of others.
    pub(crate) fn open(&self, name: &str) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::empty())
            .map_err(|errno| self.wrong_kind(name, "directory", errno))?;
        let mode = Mode::from_raw_mode(
            rustix::fs::fstat(&handle).map_err(|e| self.error("couldn't be inspected", name, e.into()))?.st_mode,
        );
        if mode.intersects(Mode::RWXG | Mode::RWXO) {
            rustix::fs::fchmod(&handle, DIRECTORY_MODE)
                .map_err(|errno| self.error("couldn't be made private", name, errno.into()))?;
        }
        Ok(Self { handle, path: self.path.join(name) })
    }

    /// Opens the regular file `name` in here.
    pub(crate) fn file(&self, name: &str, flags: OFlags) -> Result<File> {
        // Without NONBLOCK, opening a pipe of that name would block.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.handle, name, flags, FILE_MODE)
            .map(File::from)
            .map_err(|errno| self.wrong_kind(name, "file", errno))?;
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(file),
            Ok(_) => Err(JournalError::WrongKind { path: self.path.join(name), wanted: "file" }),
            Err(error) => Err(self.error("couldn't be inspected", name, error)),
        }
    }

    /// Opens a file for reading; none if it doesn't exist.
    pub(crate) fn existing(&self, name: &str) -> Result<Option<File>> {
        match self.file(name, OFlags::RDONLY) {
            Ok(file) => Ok(Some(file)),
            Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The size of a file; none if there is no file of this name.
    pub(crate) fn size_of(&self, name: &str) -> Option<u64> {
        let found = rustix::fs::statat(self.fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        FileType::from_raw_mode(found.st_mode).is_file().then_some(found.st_size as u64)
    }

    /// Creates the first file of `stem1`, `stem2`, … that doesn't exist yet, and returns its name.
    pub(crate) fn numbered(&self, stem: &str) -> Result<(File, String)> {
        for number in 1_u64.. {
            let name = format!("{stem}{number}");
            match self.file(&name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
                Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
                other => return other.map(|file| (file, name)),
            }
        }
        unreachable!("there are more numbers than files")
    }

    /// Writes a complete file in one atomic step: no reader ever sees half of it.
    pub(crate) fn put(&self, name: &str, bytes: &[u8], durability: Durability) -> Result<()> {
        let mut draft = self.draft()?;
        draft.file.write_all(bytes).map_err(|error| self.error("couldn't be written", name, error))?;
        draft.place(self, name, durability)
    }

    /// A new file under a temporary name.
    pub(crate) fn draft(&self) -> Result<TemporaryFile> {
        let name = draft_name();
        let file = self.file(&name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        self.drafted(file, name, true)
    }

    /// A new file without any name (`O_TMPFILE`), which disappears when its writer is killed. Where the file system
    /// doesn't support this, a file under a temporary name.
    pub(crate) fn nameless_draft(&self) -> Result<TemporaryFile> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.handle, ".", flags, FILE_MODE) {
            Ok(file) => self.drafted(file.into(), draft_name(), false),
            Err(_) => self.draft(),
        }
    }

    fn drafted(&self, file: File, name: String, linked: bool) -> Result<TemporaryFile> {
        let directory = self.handle.try_clone().map_err(|error| self.error("couldn't be opened", ".", error))?;
        Ok(TemporaryFile { file, directory, name, linked })
    }

    /// The names in here.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let failed = |errno: Errno| self.error("couldn't be read", ".", errno.into());
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.handle).map_err(failed)? {
            names.extend(entry.map_err(failed)?.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    /// Syncs the directory, so that the names in it survive a power failure.
    pub(crate) fn sync(&self) -> Result<()> {
        rustix::fs::fsync(&self.handle).map_err(|errno| self.error("couldn't be synced", ".", errno.into()))
    }

    pub(crate) fn error(&self, what: &str, name: &str, error: io::Error) -> JournalError {
        JournalError::Io { what: format!("`{}` {what}", self.path.join(name).display()), source: error }
    }

    /// The error number for a symbolic link differs with the flags, so check the file type.
    fn wrong_kind(&self, name: &str, wanted: &'static str, errno: Errno) -> JournalError {
        let path = self.path.join(name);
        match (errno, rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)) {
            (Errno::LOOP | Errno::NOTDIR | Errno::EXIST, Ok(stat))
                if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink =>
            {
                JournalError::Link { path }
            }
            (Errno::NOTDIR | Errno::ISDIR | Errno::NXIO, _) => JournalError::WrongKind { path, wanted },
            _ => self.error("couldn't be opened", name, errno.into()),
        }
    }
}

/// What the temporary names of files begin with.
const DRAFT: &str = ".draft-";

fn draft_name() -> String {
    format!("{DRAFT}{}", Uuid::now_v7().simple())
}

/// Whether a file of this name isn't complete yet.
pub(crate) fn is_draft(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(DRAFT.as_bytes())
}

/// A file that will be renamed into place. Dropped before that, it is deleted.
pub(crate) struct TemporaryFile {
    /// The file.
    pub(crate) file: File,
    directory: OwnedFd,
    name: String,
    /// Whether it currently has the temporary name.
    linked: bool,
}

impl TemporaryFile {
    /// Renames the file to `name` in `directory`, which is the one it was created in.
    pub(crate) fn place(mut self, directory: &DirectoryHandle, name: &str, durability: Durability) -> Result<()> {
        if durability == Durability::Sync {
            self.file.sync_all().map_err(|error| directory.error("couldn't be synced", name, error))?;
        }
        let misplaced = |errno: Errno| directory.error("couldn't be put in place", name, errno.into());
        if !self.linked {
            let itself = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            rustix::fs::linkat(CWD, itself, &self.directory, &self.name, AtFlags::SYMLINK_FOLLOW).map_err(misplaced)?;
            self.linked = true;
        }
        rustix::fs::renameat(&self.directory, &self.name, &self.directory, name).map_err(misplaced)?;
        self.linked = false;
        match durability {
            Durability::Sync => directory.sync(),
            Durability::Os => Ok(()),
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if self.linked {
            let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}

/// An `flock` against other processes and other handles, held until it is dropped.
pub(crate) struct FileLock<'a>(&'a File);

impl<'a> FileLock<'a> {
    /// Excludes every other holder.
    pub(crate) fn exclusive(file: &'a File) -> io::Result<Self> {
        retry_on_intr(|| rustix::fs::flock(file, FlockOperation::LockExclusive))?;
        Ok(Self(file))
    }

    /// Excludes writers.
    pub(crate) fn shared(file: &'a File) -> io::Result<Self> {
        retry_on_intr(|| rustix::fs::flock(file, FlockOperation::LockShared))?;
        Ok(Self(file))
    }
}

impl Drop for FileLock<'_> {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(self.0, FlockOperation::Unlock);
    }
}

/// Appends all bytes with a single `write`, or truncates the file back to `size` bytes.
pub(crate) fn append_once(file: &File, bytes: &[u8], size: u64) -> io::Result<()> {
    let written = retry_on_intr(|| rustix::io::write(file, bytes)).map_err(io::Error::from);
    let fault = match written {
        Ok(count) if count == bytes.len() => return Ok(()),
        Ok(_) => io::Error::new(io::ErrorKind::StorageFull, "only a part could be written"),
        Err(error) => error,
    };
    // If even this fails, the next process that takes the lock finds a torn line and recovers.
    let _ = file.set_len(size);
    Err(fault)
}

/// The name of a call's own directory or file. Callers choose call ids freely; an id that can't be a file name is
/// replaced by its hash.
pub(crate) fn call_name(tool_call_id: &str) -> String {
    match check_id("call", tool_call_id) {
        Ok(()) => tool_call_id.to_owned(),
        Err(_) => format!("sha256-{}", sha256(tool_call_id)),
    }
}

/// Refuses an id that isn't a plain directory name.
pub(crate) fn check_id(of: &'static str, id: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match (1..=64).contains(&id.len()) && id.bytes().all(plain) {
        true => Ok(()),
        false => Err(JournalError::BadId { of, id: id.chars().take(80).collect() }),
    }
}
