//! Signals: handlers, masks, a signalfd, and signals to process groups. A process inherits the ignored signals of its parent,
//! so the zygote resets them all.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::checked;

/// Signals are numbered from here to `SIGRTMAX`.
const FIRST_SIGNAL: libc::c_int = 1;
/// The PID of the first process of a PID namespace.
const INIT_PID: u32 = 1;
/// To `signalfd`: make a new descriptor.
const NEW_DESCRIPTOR: libc::c_int = -1;
/// To `kill`: every process that may be signalled, apart from the caller.
const EVERY_PROCESS: libc::pid_t = -1;

/// Resets all signals to their default handlers, and blocks none.
pub(crate) fn reset_all() -> Result<(), Errno> {
    for signal in FIRST_SIGNAL..=libc::SIGRTMAX() {
        // SAFETY: SIG_DFL runs no code of ours. It fails for SIGKILL, SIGSTOP and the two that the C library
        // reserves, as it should.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    block_none()
}

/// Unblocks all signals.
pub(crate) fn block_none() -> Result<(), Errno> {
    // SAFETY: an empty set, made by the function for that, then used as the mask.
    let answer = unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut())
    };
    checked(answer.into())?;
    Ok(())
}

/// Blocks one signal.
pub(crate) fn block(signal: libc::c_int) -> Result<(), Errno> {
    // SAFETY: a set with one signal, made by the functions for that, then added to the mask.
    let answer = unsafe {
        let mut one: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut one);
        libc::sigaddset(&raw mut one, signal);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const one, std::ptr::null_mut())
    };
    checked(answer.into())?;
    Ok(())
}

/// Blocks SIGCHLD and returns a signalfd that tells of it, which can be polled beside other descriptors.
pub(crate) fn watch_children() -> Result<OwnedFd, Errno> {
    // SAFETY: a set with one signal, made by the functions for that; the kernel makes the descriptor for us.
    unsafe {
        let mut children: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut children);
        libc::sigaddset(&raw mut children, libc::SIGCHLD);
        checked(libc::sigprocmask(libc::SIG_BLOCK, &raw const children, std::ptr::null_mut()).into())?;
        let descriptor = libc::signalfd(NEW_DESCRIPTOR, &raw const children, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        checked(descriptor.into())?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Ignores SIGCHLD: children don't become zombies, and needn't be waited for.
pub(crate) fn ignore_sigchld() {
    // SAFETY: SIG_IGN runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Restores the default for SIGCHLD: children have to be waited for.
pub(crate) fn default_sigchld() {
    // SAFETY: SIG_DFL runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Kills every other process in this PID namespace. Does nothing unless this process is its init.
pub(crate) fn kill_all_others() {
    if std::process::id() == INIT_PID {
        // SAFETY: sends a signal to every process that we may signal, apart from this one.
        unsafe { libc::kill(EVERY_PROCESS, libc::SIGKILL) };
    }
}

/// Sends a signal to the process group of a process; before Linux 6.9, to that process alone.
pub(crate) fn send_to_group(pidfd: BorrowedFd<'_>, signal: i32) -> Result<(), Errno> {
    let send = |flags: libc::c_uint| {
        let no_info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the pointer may be null; the rest are numbers.
        checked(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, no_info, flags) })
    };
    match send(libc::PIDFD_SIGNAL_PROCESS_GROUP) {
        Err(Errno::INVAL) => send(0).map(drop),
        other => other.map(drop),
    }
}
