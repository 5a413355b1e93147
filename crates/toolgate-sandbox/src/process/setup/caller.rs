//! A thread that waits for the answer to a system call: what its arguments point to, and the files that they name.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// A page: a read of memory that ends at a multiple of it doesn't touch the next page, which may not be there.
const PAGE_BYTES: u64 = 4096;

/// A thread of the sandbox.
pub(super) struct CallingThread {
    thread: u32,
}

/// An entry of a directory, by name.
pub(super) struct NamedEntry {
    pub(super) directory: OwnedFd,
    pub(super) name: CString,
}

impl CallingThread {
    pub(super) fn new(thread: u32) -> Self {
        Self { thread }
    }

    /// The name of the program that it executes, as the kernel has it.
    pub(super) fn program(&self) -> String {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", self.thread)).unwrap_or_default();
        name.trim_end().to_owned()
    }

    /// The entry that a path names, which is at an address and relative to one of the caller's descriptors. Paths through
    /// `/proc/self` mean another process here, and are an error.
    pub(super) fn entry(&self, (directory, path): (i32, u64)) -> Result<NamedEntry, Errno> {
        let path = self.text(path)?;
        let path = Path::new(OsStr::from_bytes(&path));
        let base = match directory {
            _ if path.is_absolute() => rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?,
            libc::AT_FDCWD => self.open("cwd")?,
            number => self.open(&format!("fd/{number}"))?,
        };
        // `file_name` ignores slashes at the end, as the kernel does for directories; `.` and `..` have none.
        let is_plain = !path.as_os_str().as_bytes().ends_with(b"/.");
        let name = path.file_name().filter(|_| is_plain).ok_or(Errno::INVAL)?;
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat2(base, parent, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
        Ok(NamedEntry { directory, name })
    }

    /// Whether a path names a directory, itself and not by a link.
    pub(super) fn names_directory(&self, (directory, path): (i32, u64)) -> bool {
        let Ok(path) = self.text(path) else { return false };
        let base = match directory {
            _ if path.starts_with(b"/") => String::new(),
            libc::AT_FDCWD => format!("/proc/{}/cwd/", self.thread),
            number => format!("/proc/{}/fd/{number}/", self.thread),
        };
        let path = [base.into_bytes(), path].concat();
        let found = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir())
    }

    fn open(&self, name: &str) -> Result<OwnedFd, Errno> {
        let path = format!("/proc/{}/{name}", self.thread);
        rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    }

    /// The text at an address, up to its NUL.
    fn text(&self, mut address: u64) -> Result<Vec<u8>, Errno> {
        let path = format!("/proc/{}/mem", self.thread);
        let memory = File::from(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?);
        let mut text = Vec::new();
        while text.len() < libc::PATH_MAX as usize {
            let mut page = vec![0; (PAGE_BYTES - address % PAGE_BYTES) as usize];
            memory.read_exact_at(&mut page, address).map_err(|_| Errno::FAULT)?;
            let end = page.iter().position(|byte| *byte == 0);
            text.extend_from_slice(&page[..end.unwrap_or(page.len())]);
            if end.is_some() {
                return Ok(text);
            }
            address += page.len() as u64;
        }
        Err(Errno::NAMETOOLONG)
    }
}

impl NamedEntry {
    /// The entry itself, not what it links to.
    pub(super) fn stat(&self) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(super) fn unlink(&self) -> Result<(), Errno> {
        rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty())
    }
}
