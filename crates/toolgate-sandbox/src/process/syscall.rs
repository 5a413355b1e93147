//! System calls that no crate wraps, one file each. All `unsafe` code of the project is in here, and every block says why it
//! is sound.
#![allow(unsafe_code, reason = "raw system calls; each block says why it is sound")]

pub(super) mod arenas;
pub(super) mod async_fd;
#[cfg(feature = "before-main")]
pub(super) mod before_main;
pub(super) mod clone3;
pub(super) mod companion;
pub(super) mod connect;
pub(super) mod descriptors;
pub(super) mod execve;
pub(crate) mod lease;
pub(super) mod loopback;
pub(super) mod mount;
pub(super) mod network_namespace;
pub(super) mod seccomp;
pub(super) mod signals;

use rustix::io::Errno;

/// Turns the `-1` of a C function into its `errno`.
fn checked(answer: libc::c_long) -> Result<libc::c_long, Errno> {
    if answer >= 0 { Ok(answer) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
