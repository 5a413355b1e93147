//! The network namespace, made by a helper process in parallel with the mounts. It takes about a quarter of the time in which a
//! sandbox starts, and the kernel needs nothing from us meanwhile.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions};
use rustix::thread::futex::{Flags, wait, wake};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces, unshare_unsafe};

use super::clone3::OneThread;
use super::last_error;

/// Bytes of the helper's stack. It makes a few system calls only.
const STACK_BYTES: usize = 64 << 10;

/// The state that the helper shares with us: no result yet, success, or else an `errno`.
const PENDING: u32 = u32::MAX;
const SUCCESS: u32 = 0;
/// Threads that wait for the result: the one that called `enter`.
const WAITERS: u32 = 1;

/// How long we wait for a result before we check whether the helper still runs.
const CHECK_INTERVAL: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A network namespace that is being made. Dropping it kills the helper.
pub(crate) struct PendingNetwork {
    helper: OwnedFd,
    state: Box<AtomicU32>,
    /// The helper runs on it.
    _stack: Vec<u128>,
}

/// Starts to make a network namespace, owned by the user namespace that we are in.
pub(crate) fn begin(_one: &OneThread) -> Result<PendingNetwork, Errno> {
    let state = Box::new(AtomicU32::new(PENDING));
    let mut stack: Vec<u128> = Vec::with_capacity(STACK_BYTES / size_of::<u128>());
    let mut pidfd: libc::c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: the helper runs on a stack of its own, whose top is one past the end of a live allocation and aligned for u128.
    // The stack and the state are kept until it has ended. It shares our memory, so it makes plain system calls only: it
    // neither allocates nor uses thread-local data such as `errno`.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        let argument = std::ptr::from_ref::<AtomicU32>(&state).cast_mut().cast();
        libc::clone(run_helper, top.cast(), flags, argument, &raw mut pidfd)
    };
    if pid < 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(PendingNetwork { helper: unsafe { OwnedFd::from_raw_fd(pidfd) }, state, _stack: stack })
}

/// The helper: makes a network namespace, stores the result, and keeps the namespace alive until it is killed.
extern "C" fn run_helper(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: it is the state of the `PendingNetwork`, which outlives this process.
    let state = unsafe { &*argument.cast::<AtomicU32>() };
    // SAFETY: a new network namespace takes no memory or descriptor away from the process.
    let result = match unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
        Ok(()) => SUCCESS,
        Err(error) => error.raw_os_error().unsigned_abs(),
    };
    state.store(result, Ordering::Release);
    let _ = wake(state, Flags::PRIVATE, WAITERS);
    loop {
        let _ = wait(state, Flags::PRIVATE, result, None);
    }
}

impl PendingNetwork {
    /// Waits until the namespace is made, and enters it.
    pub(crate) fn enter(self) -> Result<(), Errno> {
        let result = loop {
            match self.state.load(Ordering::Acquire) {
                PENDING if self.has_ended()? => return Err(Errno::SRCH),
                // Woken, interrupted or timed out: the state tells.
                PENDING => _ = wait(&self.state, Flags::PRIVATE, PENDING, Some(&CHECK_INTERVAL)),
                result => break result,
            }
        };
        match result {
            SUCCESS => move_into_thread_name_spaces(self.helper.as_fd(), ThreadNameSpaceType::NETWORK),
            error => Err(Errno::from_raw_os_error(error.cast_signed())),
        }
    }

    fn has_ended(&self) -> Result<bool, Errno> {
        Ok(poll(&mut [PollFd::new(&self.helper, PollFlags::IN)], Some(&Timespec::default()))? > 0)
    }
}

impl Drop for PendingNetwork {
    fn drop(&mut self) {
        let _ = rustix::process::pidfd_send_signal(&self.helper, Signal::KILL);
        // The stack may be freed only when the helper has ended.
        while let Err(Errno::INTR) = rustix::process::waitid(WaitId::PidFd(self.helper.as_fd()), WaitIdOptions::EXITED)
        {
        }
    }
}
