//! One sandbox, seen from the host: its socket, its first process, and what that has said so far.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Signal;
use tokio::io::unix::AsyncFd;

use super::enforcement::{SetupFindings, Tier};
use super::error::{HostContext, SandboxError};
use super::plan::ExecRequest;
use super::syscall::async_fd::watch;
use super::wire::{self, SandboxMessage};
use super::zygote::{Zygote, receive, send};

/// A sandbox that was asked for. Dropping it kills everything in it.
#[derive(Debug)]
pub(super) struct SandboxInstance {
    tier: Tier,
    memory_limited: bool,
    socket: AsyncFd<OwnedFd>,
    first_process: Option<OwnedFd>,
    findings: Option<SetupFindings>,
    /// The sockets of its network that are answered here.
    listeners: Vec<OwnedFd>,
    /// Tells which of its decoys are opened.
    watch: Option<OwnedFd>,
    /// How a command ended that was faster than the word of its birth.
    status: Option<i32>,
    /// Whether everything inside has ended.
    gone: AtomicBool,
}

/// A command's process, and its terminal if it has one.
#[derive(Debug)]
pub(super) struct LaunchedCommand {
    pub(super) process: OwnedFd,
    pub(super) terminal: Option<OwnedFd>,
}

impl SandboxInstance {
    /// Asks the zygote for a sandbox by `plan`, without waiting for it.
    pub(super) async fn request(zygote: &Zygote, tier: Tier, plan: &[u8]) -> Result<Self, SandboxError> {
        let (ours, theirs) = wire::pair().doing("Making a socket for a sandbox")?;
        rustix::io::ioctl_fionbio(&ours, true).doing("Making a socket for a sandbox")?;
        let plan = wire::pack_bytes(plan).doing("Writing down the sandbox's plan")?;
        zygote.request(&plan, &theirs).await.doing("Asking for a sandbox")?;
        let socket = watch(ours).doing("Watching a sandbox's socket")?;
        let memory_limited = zygote.limits_memory();
        let (first_process, findings, listeners, watch, status) = (None, None, Vec::new(), None, None);
        let gone = AtomicBool::new(false);
        Ok(Self { tier, memory_limited, socket, first_process, findings, listeners, watch, status, gone })
    }

    /// Waits until it is confined and could take an order.
    pub(super) async fn ready(&mut self) -> Result<SetupFindings, SandboxError> {
        loop {
            if let (Some(findings), Some(_)) = (&self.findings, &self.first_process) {
                return Ok(findings.clone());
            }
            self.note_next().await?;
        }
    }

    /// Sends an order and its streams, and waits until the program has taken over.
    pub(super) async fn launch(
        &mut self,
        order: &ExecRequest,
        streams: &[OwnedFd],
    ) -> Result<LaunchedCommand, SandboxError> {
        let order = wire::pack(order).doing("Writing down the command")?;
        let mut handed: Vec<BorrowedFd<'_>> = vec![order.as_fd()];
        handed.extend(wire::borrow(streams));
        // If it is gone already, what it said last tells why; so a failure to send is no reason not to listen.
        let _ = send(&self.socket, wire::NUDGE, &handed).await;
        let mut started = None;
        loop {
            // The zygote and the sandbox speak on the same socket, and either may come first.
            if let (Some(_), Some(descriptors)) = (&self.first_process, &mut started) {
                let mut descriptors = std::mem::take::<Vec<OwnedFd>>(descriptors).into_iter();
                let process = descriptors.next().ok_or(SandboxError::Vanished)?;
                return Ok(LaunchedCommand { process, terminal: descriptors.next() });
            }
            started = self.note_next().await?.or(started);
        }
    }

    /// Reads one word until the command has started. Descriptors come back with `Started`, and with nothing else.
    async fn note_next(&mut self) -> Result<Option<Vec<OwnedFd>>, SandboxError> {
        let (message, descriptors) = self.next_message().await?;
        match message {
            SandboxMessage::Born => self.first_process = descriptors.into_iter().next(),
            SandboxMessage::Ready(findings) => {
                self.listeners = descriptors;
                self.watch = if findings.watched { self.listeners.pop() } else { None };
                self.findings = Some(SetupFindings { memory_limited_together: self.memory_limited, ..findings });
            }
            SandboxMessage::Refused(fault) => return Err(SandboxError::Step(fault)),
            SandboxMessage::Started => return Ok(Some(descriptors)),
            SandboxMessage::Ended(status) => self.status = Some(status),
        }
        Ok(None)
    }

    async fn next_message(&self) -> Result<(SandboxMessage, Vec<OwnedFd>), SandboxError> {
        let received = receive(&self.socket).await.doing("Listening to a sandbox")?;
        let received = received.ok_or(SandboxError::Vanished)?;
        Ok((wire::understand(&received.bytes).doing("Understanding a sandbox")?, received.descriptors))
    }

    /// Waits for the end of the command and of everything else inside. `None` means that it was killed from outside.
    pub(super) async fn ended(&self) -> Result<Option<i32>, SandboxError> {
        let status = self.status().await?;
        // Once it has told the command's end, nobody is left but the first process itself.
        if let (Some(first_process), None) = (&self.first_process, status) {
            let watched = first_process.try_clone().and_then(watch).doing("Watching the end of a sandbox")?;
            // The descriptor of a process can be read once it is gone, and the first one goes last.
            drop(watched.readable().await.doing("Watching the end of a sandbox")?);
        }
        self.gone.store(true, Ordering::Release);
        Ok(status)
    }

    /// How the command ended, when the sandbox tells that.
    async fn status(&self) -> Result<Option<i32>, SandboxError> {
        if self.status.is_some() {
            return Ok(self.status);
        }
        loop {
            match self.next_message().await {
                Ok((SandboxMessage::Ended(status), _)) => return Ok(Some(status)),
                Ok((SandboxMessage::Refused(fault), _)) => return Err(SandboxError::Step(fault)),
                Ok(_) => {}
                // Whoever is killed says nothing more.
                Err(SandboxError::Vanished) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// The sockets of its network that are answered here, once.
    pub(super) fn take_listeners(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.listeners)
    }

    /// What tells which of its decoys are opened, once.
    pub(super) fn take_watch(&mut self) -> Option<OwnedFd> {
        self.watch.take()
    }

    /// What was found out about the walls.
    pub(super) fn findings(&self) -> SetupFindings {
        self.findings.clone().unwrap_or_default()
    }

    /// Kills everything inside. With a process namespace of our own that is its first process; otherwise the process that
    /// watches over it has to do it, and does when nobody listens any more.
    pub(super) fn kill(&self) {
        match (self.tier, &self.first_process) {
            (Tier::Namespaces, Some(process)) => {
                let _ = rustix::process::pidfd_send_signal(process, Signal::KILL);
            }
            _ => {
                let _ = rustix::net::shutdown(self.socket.get_ref(), rustix::net::Shutdown::Both);
            }
        }
    }

    /// The first process; it ends last.
    pub(super) fn first_process(&self) -> Option<BorrowedFd<'_>> {
        self.first_process.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for SandboxInstance {
    fn drop(&mut self) {
        if !self.gone.load(Ordering::Acquire) {
            self.kill();
        }
    }
}

/// How long the next sandbox waits before it is built, so as not to take the processor from the command that just started.
pub(super) const PAUSE_BEFORE_THE_NEXT: Duration = Duration::from_millis(5);

/// Whether an error means that the other side is gone.
pub(super) fn is_gone(error: &SandboxError) -> bool {
    matches!(error, SandboxError::Vanished | SandboxError::Host { error: Errno::PIPE | Errno::CONNRESET, .. })
}
