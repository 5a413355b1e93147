//! A pseudoterminal for a command, from the sandbox's own devpts.

use std::os::fd::{AsFd, OwnedFd};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use toolgate_contract::TerminalSize;

use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::{descriptors, signals};

/// The two ends of a pseudoterminal.
#[derive(Debug)]
pub(super) struct PtyPair {
    /// The host's end.
    pub(super) master: OwnedFd,
    /// The command's end.
    slave: OwnedFd,
}

/// Opens a pseudoterminal of the given size.
pub(super) fn open(size: TerminalSize) -> Result<PtyPair, SetupFault> {
    let step = SetupStep::OpenTerminal;
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).during(step)?;
    unlockpt(&master).during(step)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let slave = ioctl_tiocgptpeer(&master, flags).during(step)?;
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).during(step)?;
    Ok(PtyPair { master, slave })
}

/// Makes the pseudoterminal the controlling terminal of this session.
pub(super) fn control(terminal: &PtyPair) -> Result<(), SetupFault> {
    rustix::process::ioctl_tiocsctty(&terminal.slave).during(SetupStep::OpenTerminal)
}

/// Makes this process a job of its own, in the foreground of the session that it was started in. The kernel stops no process group
/// that has nobody in its session to continue it, so the command can't be the first of a session.
pub(super) fn become_job(terminal: &PtyPair) -> Result<(), SetupFault> {
    let step = SetupStep::OpenTerminal;
    rustix::process::setpgid(None, None).during(step)?;
    // Whoever does this from the background is stopped by SIGTTOU, unless it is blocked.
    signals::block(libc::SIGTTOU).during(step)?;
    rustix::termios::tcsetpgrp(&terminal.slave, rustix::process::getpid()).during(step)?;
    signals::block_none().during(step)
}

/// Makes the pseudoterminal the three standard streams.
pub(super) fn connect(terminal: &PtyPair) -> Result<(), SetupFault> {
    for number in descriptors::STANDARD_STREAMS {
        descriptors::duplicate_to(terminal.slave.as_fd(), number, false).during(SetupStep::ConnectStreams)?;
    }
    Ok(())
}
