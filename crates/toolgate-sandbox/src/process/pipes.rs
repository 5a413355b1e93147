//! The pipes between the host and a command.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use tokio::net::unix::pipe;
use toolgate_contract::Streams;

use super::error::{HostContext, SandboxError};

/// The host's ends of a command's pipes.
#[derive(Default)]
pub(super) struct HostPipes {
    pub(super) stdin: Option<pipe::Sender>,
    pub(super) stdout: Option<pipe::Receiver>,
    pub(super) stderr: Option<pipe::Receiver>,
}

/// Makes the streams: the host's ends, and the three that go inside. A terminal is made inside and comes from there.
pub(super) fn connect(streams: Streams) -> Result<(HostPipes, Vec<OwnedFd>), SandboxError> {
    const WHAT: &str = "Making pipes for the command";
    let pipe_pair = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC).doing(WHAT);
    let receiver = |end: OwnedFd| {
        rustix::io::ioctl_fionbio(&end, true).doing(WHAT)?;
        pipe::Receiver::from_owned_fd(end).doing(WHAT).map(Some)
    };
    let mut host = HostPipes::default();
    let input = match streams {
        Streams::Terminal(_) => return Ok((host, Vec::new())),
        Streams::Output => {
            rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).doing(WHAT)?
        }
        Streams::Input => {
            let (read, write) = pipe_pair()?;
            rustix::io::ioctl_fionbio(&write, true).doing(WHAT)?;
            host.stdin = Some(pipe::Sender::from_owned_fd(write).doing(WHAT)?);
            read
        }
    };
    let ((read_output, output), (read_errors, errors)) = (pipe_pair()?, pipe_pair()?);
    host.stdout = receiver(read_output)?;
    host.stderr = receiver(read_errors)?;
    Ok((host, vec![input, output, errors]))
}
