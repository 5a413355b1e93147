//! The host's side of a command's terminal.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use toolgate_contract::TerminalSize;

use crate::process::error::{HostContext, SandboxError};
use crate::process::syscall::async_fd::watch;

/// The host's side of a command's terminal.
#[derive(Debug)]
pub(in crate::process) struct PtyMaster {
    descriptor: AsyncFd<OwnedFd>,
}

impl PtyMaster {
    pub(in crate::process) fn new(descriptor: OwnedFd) -> Result<Self, SandboxError> {
        rustix::io::ioctl_fionbio(&descriptor, true).doing("Opening a terminal")?;
        Ok(Self { descriptor: watch(descriptor).doing("Opening a terminal")? })
    }

    /// Reads what was written to it; 0 means that no process has it open any more.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut read = |descriptor: &OwnedFd| match rustix::io::read(descriptor, &mut *buffer) {
            // EIO: no process has the other end open.
            Err(Errno::IO) => Ok(0),
            other => other.map_err(Into::into),
        };
        self.descriptor.async_io(Interest::READABLE, |descriptor| read(descriptor)).await
    }

    /// Writes to it, as if typed; may write less than everything.
    pub(super) async fn write(&self, bytes: &[u8]) -> std::io::Result<usize> {
        let write = |descriptor: &OwnedFd| rustix::io::write(descriptor, bytes).map_err(Into::into);
        self.descriptor.async_io(Interest::WRITABLE, write).await
    }

    /// Changes its size.
    pub(super) fn resize(&self, size: TerminalSize) -> std::io::Result<()> {
        let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(self.descriptor.get_ref(), size)?)
    }
}
