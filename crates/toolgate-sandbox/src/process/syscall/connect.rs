//! `connect` with an address as bytes, of whatever family.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

use super::checked;

/// Connects a socket to an address that a process gave.
pub(crate) fn connect(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    let length = address.len().try_into().map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel copies `length` bytes from the address, which lives during the call, and checks them.
    let answer = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    checked(answer.into())?;
    Ok(())
}
