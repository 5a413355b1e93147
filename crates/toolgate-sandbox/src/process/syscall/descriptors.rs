//! File descriptors: closes inherited ones, and duplicates one to a given number.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

use super::checked;

/// The numbers of standard input, output and error.
pub(crate) const STANDARD_STREAMS: std::ops::RangeInclusive<RawFd> = libc::STDIN_FILENO..=libc::STDERR_FILENO;
/// The first number after the standard streams.
pub(crate) const FIRST_AFTER_STANDARD_STREAMS: RawFd = libc::STDERR_FILENO + 1;

const NO_FLAGS: libc::c_int = 0;

/// Closes every descriptor from `first` on. Only for a new process that never drops the owners of inherited descriptors.
pub(crate) fn close_from(first: RawFd) -> Result<(), Errno> {
    // SAFETY: only called in a process that forgets its inherited descriptors' owners.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, NO_FLAGS) })?;
    Ok(())
}

/// Sets close-on-exec for every descriptor from `first` on.
pub(crate) fn close_on_execute_from(first: RawFd) -> Result<(), Errno> {
    // SAFETY: changes a flag of descriptors; their numbers stay valid.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) })?;
    Ok(())
}

/// Duplicates `descriptor` to `number`, with or without close-on-exec.
pub(crate) fn duplicate_to(descriptor: BorrowedFd<'_>, number: RawFd, close_on_execute: bool) -> Result<(), Errno> {
    let flags = if close_on_execute { libc::O_CLOEXEC } else { NO_FLAGS };
    if descriptor.as_raw_fd() == number {
        // SAFETY: changes a flag of a descriptor that is open.
        checked(
            unsafe { libc::fcntl(number, libc::F_SETFD, if close_on_execute { libc::FD_CLOEXEC } else { NO_FLAGS }) }
                .into(),
        )?;
        return Ok(());
    }
    // SAFETY: both are plain numbers; the kernel closes what `number` was before, which every caller intends.
    checked(unsafe { libc::dup3(descriptor.as_raw_fd(), number, flags) }.into())?;
    Ok(())
}

/// Takes ownership of the descriptor `number`, which the parent process left open for us.
pub(crate) fn adopt(number: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: reads a flag; fails if the descriptor isn't open.
    checked(unsafe { libc::fcntl(number, libc::F_GETFD) }.into())?;
    // SAFETY: it is open, and by agreement it is ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
