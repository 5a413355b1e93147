//! `mount_setattr`: what may be done on a mount, or on a whole tree of them, in one call.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::checked;

/// Nothing can be changed.
pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
/// Programs don't run with their owner's rights.
pub(crate) const NO_SETUID: u64 = libc::MOUNT_ATTR_NOSUID;
/// Device files don't open devices.
pub(crate) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;

/// Sets attributes on the mount behind `mount` and on all below it.
pub(crate) fn set(mount: BorrowedFd<'_>, attributes: u64) -> Result<(), Errno> {
    let attributes = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    change(mount, libc::AT_RECURSIVE, attributes)
}

/// Sets attributes on the mount behind `mount` alone.
pub(crate) fn set_one(mount: BorrowedFd<'_>, attributes: u64) -> Result<(), Errno> {
    change(mount, 0, libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 })
}

/// Cuts the mount behind `mount`, and all below it, off from what happens to the mounts that they were copied from.
pub(crate) fn make_private(mount: BorrowedFd<'_>) -> Result<(), Errno> {
    let attributes = libc::mount_attr { attr_set: 0, attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd: 0 };
    change(mount, libc::AT_RECURSIVE, attributes)
}

fn change(mount: BorrowedFd<'_>, depth: libc::c_int, attributes: libc::mount_attr) -> Result<(), Errno> {
    // SAFETY: an empty path means the descriptor itself; the kernel reads as many bytes as the structure has.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | depth,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    checked(answer)?;
    Ok(())
}
