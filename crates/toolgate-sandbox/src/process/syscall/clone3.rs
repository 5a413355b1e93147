//! `clone3`, `clone` and `vfork`: new processes. A fork of a process with several threads copies locks that no thread will
//! ever release, so both functions ask for the proof that there is only one.

use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::{checked, last_error};

/// Proof that this process has one thread.
#[derive(Debug)]
pub(crate) struct OneThread(());

impl OneThread {
    /// Counts the threads. The zygote never starts one, so checking once is enough.
    pub(crate) fn check() -> Option<Self> {
        let threads = std::fs::read_dir("/proc/self/task").ok()?.count();
        (threads == 1).then_some(Self(()))
    }
}

/// Which side of a fork this is.
#[derive(Debug)]
pub(crate) enum ForkResult {
    /// The parent, with a pidfd of the child.
    Parent(OwnedFd),
    /// The child.
    Child,
}

/// Every namespace but those of time, which a sandbox shares, and of the network, which is made in parallel.
pub(crate) const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// The namespaces of a sandbox that waits for a plan: with a network, and without mounts of its own yet.
pub(crate) const SPARE_NAMESPACES: i32 = NAMESPACES & !libc::CLONE_NEWNS | libc::CLONE_NEWNET;

/// Forks this process into new namespaces (`CLONE_NEW*` flags, or 0).
pub(crate) fn fork_into(_one: &OneThread, namespaces: i32) -> Result<ForkResult, Errno> {
    let mut pidfd: libc::c_int = -1;
    let flags = (libc::CLONE_PIDFD | namespaces) as u32 as u64;
    // SAFETY: `clone_args` is plain numbers, for which zero means "not used".
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = flags;
    arguments.pidfd = (&raw mut pidfd) as u64;
    arguments.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: with no stack given, the child continues here on a copy of this stack, as after fork; there is one thread, so
    // no other thread holds a lock. `pidfd` lives until the call returns.
    let answer = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) };
    let forked = match checked(answer) {
        // Container runtimes refuse `clone3`, because seccomp can't check its arguments. `clone` does the same.
        Err(Errno::NOSYS) => {
            let (null, flags) = (std::ptr::null::<libc::c_void>(), flags | libc::SIGCHLD as u64);
            // SAFETY: as above. The kernel writes the pidfd where the third argument points; the order of the last two differs
            // between architectures, and both are null.
            checked(unsafe { libc::syscall(libc::SYS_clone, flags, null, &raw mut pidfd, null, null) })
        }
        other => other,
    };
    match forked? {
        0 => Ok(ForkResult::Child),
        // SAFETY: the kernel has just made this descriptor for us.
        _ => Ok(ForkResult::Parent(unsafe { OwnedFd::from_raw_fd(pidfd) })),
    }
}

/// Bytes of the stack of a child that shares our memory. Pages that aren't touched cost nothing.
pub(super) const STACK_BYTES: usize = 256 << 10;

/// A process that was started by `spawn_vfork`.
#[derive(Debug)]
pub(crate) struct SpawnedProcess {
    /// The PID, as seen from here.
    pub(crate) pid: i32,
    /// The pidfd.
    pub(crate) pidfd: OwnedFd,
}

/// Starts a process that runs `child` in our memory (`CLONE_VM`) while we wait (`CLONE_VFORK`) until it executes a program or
/// ends. No page tables are copied, so the time doesn't depend on our size, and we can read what `child` wrote.
pub(crate) fn spawn_vfork<F: FnMut() -> i32>(_one: &OneThread, mut child: F) -> Result<SpawnedProcess, Errno> {
    extern "C" fn enter<F: FnMut() -> i32>(argument: *mut libc::c_void) -> libc::c_int {
        // SAFETY: `argument` is the `child` below, which the waiting parent keeps alive and doesn't touch.
        let child = unsafe { &mut *argument.cast::<F>() };
        child()
    }
    let mut stack: Vec<u128> = Vec::with_capacity(STACK_BYTES / size_of::<u128>());
    let mut pidfd: libc::c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: the child runs on a stack of its own, whose top is one past the end of a live allocation and aligned for
    // u128; CLONE_VFORK keeps us from running (and from freeing anything) until it is done with our memory.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        libc::clone(enter::<F>, top.cast(), flags, (&raw mut child).cast(), &raw mut pidfd)
    };
    if pid < 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(SpawnedProcess { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
}

/// Ends this process at once, without the exit handlers of the process that it was forked from.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: `_exit` takes any number and doesn't come back.
    unsafe { libc::_exit(status) }
}
