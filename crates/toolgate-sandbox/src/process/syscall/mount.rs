//! `mount_setattr`: changes the attributes of a mount, or of a whole tree of mounts, in one call.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::checked;

/// Nothing on the mount can be changed.
pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
/// Set-user-ID and set-group-ID bits are ignored.
pub(crate) const NO_SETUID: u64 = libc::MOUNT_ATTR_NOSUID;
/// Device files can't be opened.
pub(crate) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;

const NO_CHANGE: libc::mount_attr = libc::mount_attr { attr_set: 0, attr_clr: 0, propagation: 0, userns_fd: 0 };
const NOT_RECURSIVE: libc::c_int = 0;

/// Makes a mount namespace for this process, with a copy of every mount that it sees now.
pub(crate) fn unshare() -> Result<(), Errno> {
    // SAFETY: the process sees the same files at the same paths, and keeps its memory and descriptors.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
}

/// Sets attributes on a mount and on all mounts below it.
pub(crate) fn set(mount: BorrowedFd<'_>, attributes: u64) -> Result<(), Errno> {
    change(mount, libc::AT_RECURSIVE, libc::mount_attr { attr_set: attributes, ..NO_CHANGE })
}

/// Sets attributes on one mount.
pub(crate) fn set_one(mount: BorrowedFd<'_>, attributes: u64) -> Result<(), Errno> {
    change(mount, NOT_RECURSIVE, libc::mount_attr { attr_set: attributes, ..NO_CHANGE })
}

/// Makes a mount and all mounts below it private: later mounts and unmounts on the host don't show up in them.
pub(crate) fn make_private(mount: BorrowedFd<'_>) -> Result<(), Errno> {
    change(mount, libc::AT_RECURSIVE, libc::mount_attr { propagation: libc::MS_PRIVATE, ..NO_CHANGE })
}

fn change(mount: BorrowedFd<'_>, recursion: libc::c_int, attributes: libc::mount_attr) -> Result<(), Errno> {
    // SAFETY: an empty path means the descriptor itself; the kernel reads as many bytes as the structure has.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursion,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    checked(answer)?;
    Ok(())
}
