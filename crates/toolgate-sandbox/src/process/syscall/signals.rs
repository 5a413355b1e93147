//! What signals do. A process inherits what its parent ignores, so the zygote starts afresh.

use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::checked;

/// Every signal does what it usually does, and none is blocked.
pub(crate) fn reset_all() -> Result<(), Errno> {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: SIG_DFL runs no code of ours. It fails for KILL, STOP and the two that the C library keeps; all as it should.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    block_none()
}

/// No signal is blocked.
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

/// From now on the end of children is told by a descriptor, which can be waited for beside others.
pub(crate) fn watch_children() -> Result<OwnedFd, Errno> {
    // SAFETY: a set with one signal, made by the functions for that; the kernel makes the descriptor for us.
    unsafe {
        let mut children: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut children);
        libc::sigaddset(&raw mut children, libc::SIGCHLD);
        checked(libc::sigprocmask(libc::SIG_BLOCK, &raw const children, std::ptr::null_mut()).into())?;
        let descriptor = libc::signalfd(-1, &raw const children, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        checked(descriptor.into())?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Children leave nothing behind when they end; nobody has to wait for them.
pub(crate) fn ignore_sigchld() {
    // SAFETY: SIG_IGN runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Children are waited for, as usual.
pub(crate) fn default_sigchld() {
    // SAFETY: SIG_DFL runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Kills every process of this process namespace but the first one, which has to be the one that asks.
pub(crate) fn kill_all_others() {
    if std::process::id() == 1 {
        // SAFETY: -1 means all that we can see and may signal; the kernel leaves out whoever asks.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// Sends a signal to the whole process group of the process behind `descriptor`; to it alone on kernels before 6.9.
pub(crate) fn send_to_group(descriptor: std::os::fd::BorrowedFd<'_>, signal: i32) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    const PROCESS_GROUP: libc::c_uint = 1 << 2;
    let send = |flags: libc::c_uint| {
        let nothing = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: no information goes along; the rest are numbers.
        checked(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, descriptor.as_raw_fd(), signal, nothing, flags) })
    };
    match send(PROCESS_GROUP) {
        Err(Errno::INVAL) => send(0).map(drop),
        other => other.map(drop),
    }
}
