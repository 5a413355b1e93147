//! One sandbox, seen from the host: its socket, its first process, and the messages received from it so far.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
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
    /// The PID of the first process, asked for before anything can have ended it.
    first_pid: Option<u32>,
    findings: Option<SetupFindings>,
    /// The listeners of its network namespace, which the host serves.
    listeners: Vec<OwnedFd>,
    /// The inotify descriptor that reports which decoys are opened.
    watch: Option<OwnedFd>,
    /// A netlink socket that lists the Unix sockets of its network namespace.
    bound: Option<OwnedFd>,
    /// The listener that asks about the command's connections.
    connects: Option<OwnedFd>,
    /// The exit status of a command that has ended, if that was received before somebody asked for it.
    status: OnceLock<i32>,
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
        let plan = wire::bytes_to_memfd(plan).doing("Writing the sandbox's plan to a memfd")?;
        zygote.request(&plan, &theirs).await.doing("Asking for a sandbox")?;
        let socket = watch(ours).doing("Watching a sandbox's socket")?;
        let memory_limited = zygote.limits_memory();
        let (first_process, findings, listeners, watch) = (None, None, Vec::new(), None);
        let (bound, connects, gone, status) = (None, None, AtomicBool::new(false), OnceLock::new());
        Ok(Self {
            tier,
            memory_limited,
            socket,
            first_process,
            first_pid: None,
            findings,
            listeners,
            watch,
            bound,
            connects,
            status,
            gone,
        })
    }

    /// Waits until it is confined and could run a command.
    pub(super) async fn ready(&mut self) -> Result<SetupFindings, SandboxError> {
        loop {
            if let (Some(findings), Some(_)) = (&self.findings, &self.first_process) {
                return Ok(findings.clone());
            }
            self.note_next().await?;
        }
    }

    /// Sends a command and its streams, and waits until its program is executed.
    pub(super) async fn launch(
        &mut self,
        request: &ExecRequest,
        streams: &[OwnedFd],
    ) -> Result<LaunchedCommand, SandboxError> {
        let request = wire::MessageValue::new(request).doing("Writing the command to a memfd")?;
        let handed: Vec<BorrowedFd<'_>> = request.memfd().into_iter().chain(wire::borrow(streams)).collect();
        // If sending fails because the sandbox has ended, its last message, received below, says why it did.
        let _ = send(&self.socket, request.bytes(), &handed).await;
        let mut started = None;
        loop {
            // The zygote and the sandbox send on the same socket, and either message may come first.
            if let (Some(_), Some(descriptors)) = (&self.first_process, &mut started) {
                let mut descriptors = std::mem::take::<Vec<OwnedFd>>(descriptors).into_iter();
                let process = descriptors.next().ok_or(SandboxError::Vanished)?;
                return Ok(LaunchedCommand { process, terminal: descriptors.next() });
            }
            started = self.note_next().await?.or(started);
        }
    }

    /// Receives and notes one message. Returns the descriptors that come with `Started`.
    async fn note_next(&mut self) -> Result<Option<Vec<OwnedFd>>, SandboxError> {
        let (message, descriptors) = self.next_message().await?;
        match message {
            SandboxMessage::Created => {
                self.first_process = descriptors.into_iter().next();
                self.first_pid = self.first_process.as_ref().and_then(|process| pid_of(process.as_fd()));
            }
            SandboxMessage::Ready(findings) => {
                self.listeners = descriptors;
                self.connects = if findings.asks_for_connects { self.listeners.pop() } else { None };
                self.watch = if findings.watched { self.listeners.pop() } else { None };
                self.bound = if findings.lists_sockets { self.listeners.pop() } else { None };
                self.findings = Some(SetupFindings { memory_limited_together: self.memory_limited, ..findings });
            }
            SandboxMessage::Refused(fault) => return Err(SandboxError::Step(fault)),
            SandboxMessage::Started => return Ok(Some(descriptors)),
            SandboxMessage::Stopped => {}
            SandboxMessage::Ended(status) => _ = self.status.set(status),
        }
        Ok(None)
    }

    async fn next_message(&self) -> Result<(SandboxMessage, Vec<OwnedFd>), SandboxError> {
        let received = receive(&self.socket).await.doing("Receiving from a sandbox")?;
        let received = received.ok_or(SandboxError::Vanished)?;
        Ok((wire::decode(&received.bytes).doing("Decoding a sandbox's message")?, received.descriptors))
    }

    /// Waits for the end of the command and of everything else inside. `None` means that it was killed from outside.
    pub(super) async fn ended(&self) -> Result<Option<i32>, SandboxError> {
        let status = self.status().await?;
        // A first process that has sent the status has already killed everything else.
        if let (Some(first_process), None) = (&self.first_process, status) {
            let watched = first_process.try_clone().and_then(watch).doing("Watching the end of a sandbox")?;
            // A pidfd becomes readable when its process has ended, and the first process ends last.
            drop(watched.readable().await.doing("Watching the end of a sandbox")?);
        }
        self.gone.store(true, Ordering::Release);
        Ok(status)
    }

    /// Waits until the command is stopped, as by Ctrl-Z; for ever if it ends before that.
    pub(super) async fn stopped(&self) {
        loop {
            match self.next_message().await {
                Ok((SandboxMessage::Stopped, _)) => return,
                Ok((SandboxMessage::Ended(status), _)) => _ = self.status.set(status),
                Ok(_) => {}
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// The status that the sandbox sends when the command has ended.
    async fn status(&self) -> Result<Option<i32>, SandboxError> {
        if let Some(status) = self.status.get() {
            return Ok(Some(*status));
        }
        loop {
            match self.next_message().await {
                Ok((SandboxMessage::Ended(status), _)) => return Ok(Some(status)),
                Ok((SandboxMessage::Refused(fault), _)) => return Err(SandboxError::Step(fault)),
                Ok(_) => {}
                // A sandbox that was killed sends no status.
                Err(SandboxError::Vanished) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the listeners of its network namespace.
    pub(super) fn take_listeners(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.listeners)
    }

    /// Takes the listener that asks about the command's connections.
    pub(super) fn take_connects(&mut self) -> Option<OwnedFd> {
        self.connects.take()
    }

    /// Takes the netlink socket that lists the Unix sockets of its network namespace.
    pub(super) fn take_bound(&mut self) -> Option<OwnedFd> {
        self.bound.take()
    }

    /// Takes the inotify descriptor that reports which decoys are opened.
    pub(super) fn take_watch(&mut self) -> Option<OwnedFd> {
        self.watch.take()
    }

    /// Whether its first process has said that it is confined. Before that it runs nothing.
    pub(super) fn is_confined(&self) -> bool {
        self.findings.is_some()
    }

    /// What its first process found out while it confined itself.
    pub(super) fn findings(&self) -> SetupFindings {
        self.findings.clone().unwrap_or_default()
    }

    /// Kills everything inside. In a PID namespace of our own it is enough to kill the first process; without one the first
    /// process kills the others itself, once its socket is closed.
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

    /// The PID of the first process on this machine.
    pub(super) fn first_pid(&self) -> Option<u32> {
        self.first_pid
    }
}

/// The PID behind a pidfd; none if the process has ended and was waited for.
pub(super) fn pid_of(pidfd: BorrowedFd<'_>) -> Option<u32> {
    let facts = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    // Of a process that is gone, the kernel says -1.
    facts.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
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

/// Whether an error means that the other process has ended.
pub(super) fn is_gone(error: &SandboxError) -> bool {
    matches!(error, SandboxError::Vanished | SandboxError::Host { error: Errno::PIPE | Errno::CONNRESET, .. })
}
