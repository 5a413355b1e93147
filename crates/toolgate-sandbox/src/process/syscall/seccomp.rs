//! `seccomp`: installs a BPF program as system-call filter, and answers the system calls that a filter asks about.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::checked;

const NO_FLAGS: libc::c_ulong = 0;

/// One BPF instruction: `struct sock_filter` (`linux/filter.h`).
pub(crate) type BpfInstruction = libc::sock_filter;

/// Installs the filter for this process and all that it starts. It can't be removed.
pub(crate) fn install(program: &[BpfInstruction]) -> Result<(), Errno> {
    set_filter(program, NO_FLAGS).map(drop)
}

/// `linux/seccomp.h`, since Linux 5.19: once the listener has received a notification, only a fatal signal interrupts the process
/// that waits for the answer. `libc` doesn't have it yet.
const WAIT_KILLABLE_RECV: libc::c_ulong = 1 << 5;

/// Installs a filter that asks a listener about some system calls, and returns the listener.
pub(crate) fn install_with_listener(program: &[BpfInstruction]) -> Result<OwnedFd, Errno> {
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let descriptor = match set_filter(program, flags | WAIT_KILLABLE_RECV) {
        Err(Errno::INVAL) => set_filter(program, flags)?,
        other => other?,
    };
    let descriptor = descriptor.try_into().map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel made this descriptor for us just now.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// `linux/seccomp.h`, since Linux 6.6: a listener's flag that has the process that asks and the one that answers take turns on one
/// processor, which takes a fraction of the time. `libc` doesn't have it yet.
const SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP: libc::c_ulong = 1;

/// Has the kernel switch directly between those who ask and the one process that answers. Older kernels don't know how.
pub(crate) fn take_turns(listener: &OwnedFd) {
    // SAFETY: the argument is a number.
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
    }
}

/// A system call that waits for an answer.
#[derive(Debug)]
pub(crate) struct Notification {
    id: u64,
    /// The number of the system call (`SYS_*`).
    pub(crate) call: libc::c_long,
    /// The thread that made it, as this process numbers threads.
    pub(crate) thread: u32,
    pub(crate) arguments: [u64; 6],
}

/// Receives the next notification.
pub(crate) fn receive(listener: &OwnedFd) -> Result<Notification, Errno> {
    // SAFETY: zeros are valid for all fields, and the kernel requires them.
    let mut received: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one structure of this size.
    let answer = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut received) };
    checked(answer.into())?;
    Ok(Notification {
        id: received.id,
        call: received.data.nr.into(),
        thread: received.pid,
        arguments: received.data.args,
    })
}

/// Fails if the thread that made the system call no longer waits for the answer.
pub(crate) fn check_waiting(listener: &OwnedFd, notification: &Notification) -> Result<(), Errno> {
    // SAFETY: the kernel reads one number.
    let answer =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const notification.id) };
    checked(answer.into())?;
    Ok(())
}

/// Answers a notification: the system call returns 0, or this error.
pub(crate) fn respond(listener: &OwnedFd, to: &Notification, answer: Result<(), Errno>) -> Result<(), Errno> {
    let error = answer.err().map_or(0, |error| -error.raw_os_error());
    send(listener, libc::seccomp_notif_resp { id: to.id, val: 0, error, flags: 0 })
}

/// Answers a notification: the kernel goes on with the system call. Its arguments may be others by then.
pub(crate) fn let_continue(listener: &OwnedFd, to: &Notification) -> Result<(), Errno> {
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    send(listener, libc::seccomp_notif_resp { id: to.id, val: 0, error: 0, flags })
}

fn send(listener: &OwnedFd, mut response: libc::seccomp_notif_resp) -> Result<(), Errno> {
    // SAFETY: the kernel reads one structure of this size.
    let answer = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) };
    checked(answer.into())?;
    Ok(())
}

fn set_filter(program: &[BpfInstruction], flags: libc::c_ulong) -> Result<libc::c_long, Errno> {
    let length = program.len().try_into().map_err(|_| Errno::TOOBIG)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies `len` instructions from `filter`, which lives during the call, and checks them.
    checked(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) })
}
