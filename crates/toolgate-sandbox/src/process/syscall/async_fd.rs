//! Descriptors that the async runtime polls.

use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;

/// Registers a descriptor with the async runtime.
pub(crate) fn watch(descriptor: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` refers to the same open file until it is dropped, which is what the runtime requires.
    unsafe { AsyncFd::register(descriptor) }.map_err(Into::into)
}
