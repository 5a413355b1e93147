//! The kernel calls that no crate wraps, one file each. All `unsafe` code of the project is in here, and every block says
//! why it is sound.
#![allow(unsafe_code, reason = "raw kernel calls; each block says why it is sound")]

#[cfg(feature = "before-main")]
pub(super) mod before_main;
pub(super) mod clone;
pub(super) mod descriptors;
pub(super) mod execute;
pub(super) mod filter;
pub(super) mod heaps;
pub(crate) mod lease;
pub(super) mod loopback;
pub(super) mod mount_attributes;
pub(super) mod network;
pub(super) mod signals;
pub(super) mod watch;

use rustix::io::Errno;

/// What a C function's `-1` means.
fn checked(answer: libc::c_long) -> Result<libc::c_long, Errno> {
    if answer >= 0 { Ok(answer) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
