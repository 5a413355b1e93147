//! Descriptors that the async runtime watches.

use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;

/// Has a descriptor watched for as long as it lives.
pub(crate) fn watch(descriptor: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` means the same open file from its making to its end, which is what the runtime asks for.
    unsafe { AsyncFd::register(descriptor) }.map_err(Into::into)
}
