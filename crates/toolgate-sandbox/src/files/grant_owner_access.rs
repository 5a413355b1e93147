//! Opens files that only their mode bits deny to us. A command can remove its own permissions, and what it wrote has to be
//! found all the same.

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Opens a file for reading that we own and can't read. Its mode is restored at once.
pub(crate) fn file(directory: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<File, Errno> {
    let closed = rustix::fs::openat(directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if !FileType::from_raw_mode(rustix::fs::fstat(&closed)?.st_mode).is_file() {
        return Err(Errno::ACCESS);
    }
    let before = allow(&closed, Mode::RUSR)?;
    let opened = rustix::fs::openat(CWD, itself(&closed), flags - OFlags::NOFOLLOW, Mode::empty());
    rustix::fs::chmod(itself(&closed), before)?;
    opened.map(File::from)
}

/// Adds permissions for the owner, and returns the mode before.
fn allow(closed: &OwnedFd, more: Mode) -> Result<Mode, Errno> {
    let found = rustix::fs::fstat(closed)?;
    let before = Mode::from_raw_mode(found.st_mode & 0o7777);
    rustix::fs::chmod(itself(closed), before | more)?;
    Ok(before)
}

fn itself(handle: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}
