//! A command that runs confined: its streams, its end, and the ways to end it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::Signal;
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use toolgate_contract::Denial;

use super::decoy_watch::DecoyWatch;
use super::enforcement::Enforcement;
use super::error::{HostContext, SandboxError};
use super::instance::SandboxInstance;
use super::spec::PtySize;
use super::syscall::async_fd::watch;
use super::syscall::signals;
use crate::network::{DenialLog, EgressProxy};

/// A confined command. Dropping it kills everything that it has started.
#[derive(Debug)]
pub struct Child {
    /// What it reads, if it was started to be written to. Dropping it is the end of its input.
    pub stdin: Option<pipe::Sender>,
    /// What it writes, unless it has a terminal. It ends when no process inside holds it any more.
    pub stdout: Option<pipe::Receiver>,
    /// What it complains about, unless it has a terminal.
    pub stderr: Option<pipe::Receiver>,
    /// Its terminal, if it was started with one.
    pub terminal: Option<PtyMaster>,
    pub(super) enforcement: Enforcement,
    pub(super) instance: SandboxInstance,
    pub(super) process: OwnedFd,
    /// Its way out, which ends with it.
    pub(super) relay: Option<EgressProxy>,
    pub(super) decoys: Arc<DecoyWatch>,
    pub(super) ended: Option<ChildExit>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildExit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal; by `KILL` when its sandbox was ended.
    Signal(i32),
}

impl ChildExit {
    /// The code as a shell would give it: a signal is 128 and its number.
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    fn from_status(status: Option<i32>) -> Self {
        match status {
            None => Self::Signal(libc::SIGKILL),
            Some(status) if libc::WIFSIGNALED(status) => Self::Signal(libc::WTERMSIG(status)),
            Some(status) => Self::Code(libc::WEXITSTATUS(status)),
        }
    }
}

impl Child {
    /// What really confines it.
    pub fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    /// What was refused of what it wanted to reach, so far.
    pub fn denials(&self) -> Vec<Denial> {
        self.notes().all()
    }

    /// Names that it looked up and to which it has made no connection that could be seen: perhaps that is why it failed.
    pub fn unused_names(&self) -> Vec<Denial> {
        self.notes().unused()
    }

    /// The list of that, which goes on when this is gone.
    pub(crate) fn notes(&self) -> DenialLog {
        self.relay.as_ref().map(|relay| relay.notes().clone()).unwrap_or_default()
    }

    /// Hidden files that it opened so far, and saw a decoy of.
    pub fn opened(&self) -> Vec<PathBuf> {
        self.decoys.opened()
    }

    /// The same, for whoever asks when this is gone.
    pub(crate) fn decoys(&self) -> Arc<DecoyWatch> {
        Arc::clone(&self.decoys)
    }

    /// Waits until the command has ended and every process that it left behind is gone. May be given up and called again.
    pub async fn wait(&mut self) -> Result<ChildExit, SandboxError> {
        if let Some(ended) = self.ended {
            return Ok(ended);
        }
        let ended = ChildExit::from_status(self.instance.ended().await?);
        self.ended = Some(ended);
        self.decoys.close();
        Ok(ended)
    }

    /// Kills everything inside at once. [`wait`](Self::wait) tells when all are gone.
    pub fn kill(&self) {
        self.instance.kill();
    }

    /// Sends a signal to the command and its process group, for instance `Signal::INT`.
    pub fn signal(&self, signal: Signal) -> Result<(), SandboxError> {
        signals::send_to_group(self.process.as_fd(), signal.as_raw()).doing("Sending a signal")
    }

    /// Sends signals to the command also where it itself is busy being listened to.
    pub fn signaller(&self) -> Result<Signaller, SandboxError> {
        let held = |descriptor: BorrowedFd<'_>| descriptor.try_clone_to_owned().doing("Holding on to a process");
        let first_process = self.instance.first_process().map(held).transpose()?;
        Ok(Signaller { process: held(self.process.as_fd())?, first_process })
    }

    /// A descriptor of the command's own process.
    pub fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// A descriptor of the process that ends last.
    pub fn first_process(&self) -> Option<BorrowedFd<'_>> {
        self.instance.first_process()
    }
}

/// Sends signals to a command. Once that has ended, they reach nobody.
#[derive(Debug)]
pub struct Signaller {
    process: OwnedFd,
    first_process: Option<OwnedFd>,
}

impl Signaller {
    /// Sends a signal to the command and its process group.
    pub fn send(&self, signal: Signal) -> Result<(), SandboxError> {
        signals::send_to_group(self.process.as_fd(), signal.as_raw()).doing("Sending a signal")
    }

    /// Kills the process that everything inside ends with, at once.
    pub fn kill(&self) {
        let process = self.first_process.as_ref().unwrap_or(&self.process);
        let _ = rustix::process::pidfd_send_signal(process, Signal::KILL);
    }
}

/// The host's side of a command's terminal.
#[derive(Debug)]
pub struct PtyMaster {
    descriptor: AsyncFd<OwnedFd>,
}

impl PtyMaster {
    pub(super) fn new(descriptor: OwnedFd) -> Result<Self, SandboxError> {
        rustix::io::ioctl_fionbio(&descriptor, true).doing("Opening a terminal")?;
        Ok(Self { descriptor: watch(descriptor).doing("Opening a terminal")? })
    }

    /// Reads what was written to it; nothing means that everybody has left it.
    pub async fn read(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = |descriptor: &OwnedFd| match rustix::io::read(descriptor, &mut *buffer) {
            // How a terminal says that nobody is on the other side.
            Err(rustix::io::Errno::IO) => Ok(0),
            other => other.map_err(Into::into),
        };
        let mut read = read;
        self.descriptor.async_io(tokio::io::Interest::READABLE, |descriptor| read(descriptor)).await
    }

    /// Types into it; may take less than everything.
    pub async fn write(&self, bytes: &[u8]) -> std::io::Result<usize> {
        let write = |descriptor: &OwnedFd| rustix::io::write(descriptor, bytes).map_err(Into::into);
        self.descriptor.async_io(tokio::io::Interest::WRITABLE, write).await
    }

    /// Changes its size.
    pub fn resize(&self, size: PtySize) -> std::io::Result<()> {
        let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(self.descriptor.get_ref(), size)?)
    }
}
