//! The host's side of the zygote: starts it, sends it plans, and makes sure that it ends.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::cgroup::MemoryCgroup;
use super::error::{HostContext, SandboxError};
use super::launch::SandboxOptions;
use super::setup::zygote_main::{ZYGOTE_NAME, was_asked_for};
use super::syscall::async_fd::watch;
use super::wire;

/// How long a program may take until it reports that it is a zygote. One that doesn't call
/// [`zygote_main_if_asked`](super::zygote_main_if_asked) never will.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A running zygote. Dropping it ends it and every sandbox that came out of it.
#[derive(Debug)]
pub(super) struct Zygote {
    process: Child,
    socket: AsyncFd<OwnedFd>,
    /// How many more sandboxes are made before a spare one is kept.
    until_spare: AtomicUsize,
    /// Removed after the process has ended, with whatever the process leaves in it.
    cgroup: Option<MemoryCgroup>,
}

impl Zygote {
    /// Executes the program as a zygote and waits until it answers. It and all its sandboxes together can use as much memory as the
    /// options say, where a cgroup can be made.
    pub(super) async fn start(options: &SandboxOptions) -> Result<Self, SandboxError> {
        if was_asked_for() {
            let reason = "this program was started as one but went on; call `zygote_main_if_asked` first in `main`";
            return Err(SandboxError::Zygote { reason: reason.into() });
        }
        let (ours, theirs) = wire::pair().doing("Making a socket for the zygote")?;
        rustix::io::ioctl_fionbio(&ours, true).doing("Making a socket for the zygote")?;
        let mut command = std::process::Command::new(options.program.as_deref().unwrap_or("/proc/self/exe".as_ref()));
        // It needs no environment variable, and can't pass on what it doesn't have.
        let cgroup = options.memory.and_then(MemoryCgroup::make);
        command.arg0(ZYGOTE_NAME).args(cgroup.as_ref().map(MemoryCgroup::directory)).env_clear().current_dir("/");
        command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(|error| SandboxError::Zygote { reason: error.to_string() })?;
        // Keeps the other end from staying open in `command`.
        drop(command);
        let socket = watch(ours).doing("Watching the zygote's socket")?;
        let cgroup = cgroup.filter(|cgroup| cgroup.add_process(process.id()));
        let zygote = Self { process, socket, until_spare: AtomicUsize::new(options.spare_after), cgroup };
        match tokio::time::timeout(START_TIMEOUT, receive(&zygote.socket)).await {
            Ok(Ok(Some(_))) => Ok(zygote),
            _ => Err(SandboxError::Zygote {
                reason: "it didn't answer; does its `main` call `zygote_main_if_asked` first?".into(),
            }),
        }
    }

    /// Whether the memory of all its sandboxes together is limited.
    pub(super) fn limits_memory(&self) -> bool {
        self.cgroup.is_some()
    }

    /// Asks for a sandbox: sends its plan and its end of its socket pair, and says whether a spare one should be made afterwards.
    pub(super) async fn request(&self, plan: &OwnedFd, end: &OwnedFd) -> Result<(), Errno> {
        let one_less = |count: usize| count.checked_sub(1);
        let is_early = self.until_spare.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
        let message = if is_early { wire::PLACEHOLDER } else { wire::AND_A_SPARE };
        send(&self.socket, message, &[plan.as_fd(), end.as_fd()]).await
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        // Its sandboxes die with it.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Sends a message once the socket's buffer has space for it.
pub(super) async fn send(
    socket: &AsyncFd<OwnedFd>,
    bytes: &[u8],
    descriptors: &[std::os::fd::BorrowedFd<'_>],
) -> Result<(), Errno> {
    let sent = socket
        .async_io(Interest::WRITABLE, |socket| wire::send(socket.as_fd(), bytes, descriptors).map_err(Into::into))
        .await;
    sent.map_err(|error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Receives a message when there is one; `None` when the other end is closed.
pub(super) async fn receive(socket: &AsyncFd<OwnedFd>) -> Result<Option<wire::ReceivedMessage>, Errno> {
    let received = socket
        .async_io(Interest::READABLE, |socket| wire::receive_until_closed(socket.as_fd()).map_err(Into::into))
        .await;
    received.map_err(|error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
