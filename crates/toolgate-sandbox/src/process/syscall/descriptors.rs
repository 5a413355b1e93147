//! Closing what was inherited, and putting a descriptor at a number.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

use super::checked;

/// Closes every descriptor from `first` on. Whoever calls this owns none of them any more: it is for a new process, which
/// drops nothing that it inherited.
pub(crate) fn close_from(first: RawFd) -> Result<(), Errno> {
    // SAFETY: only called in a process that forgets its inherited descriptors' owners.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) })?;
    Ok(())
}

/// Marks every descriptor from `first` on to be closed when a program is executed.
pub(crate) fn close_on_execute_from(first: RawFd) -> Result<(), Errno> {
    // SAFETY: changes a flag of descriptors; their numbers stay valid.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) })?;
    Ok(())
}

/// Makes `number` mean what `descriptor` means; it stays open when a program is executed, unless asked otherwise.
pub(crate) fn duplicate_to(descriptor: BorrowedFd<'_>, number: RawFd, close_on_execute: bool) -> Result<(), Errno> {
    let flags = if close_on_execute { libc::O_CLOEXEC } else { 0 };
    if descriptor.as_raw_fd() == number {
        // SAFETY: changes a flag of a descriptor that is open.
        checked(
            unsafe { libc::fcntl(number, libc::F_SETFD, if close_on_execute { libc::FD_CLOEXEC } else { 0 }) }.into(),
        )?;
        return Ok(());
    }
    // SAFETY: both are plain numbers; what `number` meant before is closed by the kernel, and every caller means that.
    checked(unsafe { libc::dup3(descriptor.as_raw_fd(), number, flags) }.into())?;
    Ok(())
}

/// Takes over the descriptor `number`, which somebody left open for us.
pub(crate) fn adopt(number: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: asks for a flag; fails if the descriptor isn't open.
    checked(unsafe { libc::fcntl(number, libc::F_GETFD) }.into())?;
    // SAFETY: it is open, and by agreement it is ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
