//! A terminal for a command, from the sandbox's own set of them.

use std::os::fd::{AsFd, OwnedFd};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use toolgate_contract::TerminalSize;

use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::descriptors;

/// The two ends of a terminal.
#[derive(Debug)]
pub(super) struct PtyPair {
    /// The host's.
    pub(super) ours: OwnedFd,
    /// The command's.
    theirs: OwnedFd,
}

/// Opens a terminal of the given size.
pub(super) fn open(size: TerminalSize) -> Result<PtyPair, SetupFault> {
    let step = SetupStep::OpenTerminal;
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).during(step)?;
    unlockpt(&ours).during(step)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let theirs = ioctl_tiocgptpeer(&ours, flags).during(step)?;
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).during(step)?;
    Ok(PtyPair { ours, theirs })
}

/// Makes the terminal this session's own, and all three standard streams.
pub(super) fn take_control(terminal: &PtyPair) -> Result<(), SetupFault> {
    rustix::process::ioctl_tiocsctty(&terminal.theirs).during(SetupStep::OpenTerminal)?;
    for number in 0..3 {
        descriptors::duplicate_to(terminal.theirs.as_fd(), number, false).during(SetupStep::ConnectStreams)?;
    }
    Ok(())
}
