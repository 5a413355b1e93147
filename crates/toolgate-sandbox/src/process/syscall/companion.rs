//! A second process that shares memory and descriptors with its maker and takes turns with it, as after `vfork`: one of them
//! works while the other one waits. It has namespaces and a root directory of its own, so it can work in the mounts that its maker
//! has left, or before its maker enters others.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions};

use super::clone3::{OneThread, STACK_BYTES};
use super::last_error;

/// One event, as an eventfd counts them.
const ONE_EVENT: [u8; 8] = 1u64.to_ne_bytes();

/// A process that waits for its turn. Dropping it kills it.
pub(crate) struct Companion {
    process: OwnedFd,
    shared: Box<SharedState>,
    /// It runs on it.
    _stack: Vec<u128>,
}

/// What both processes use.
struct SharedState {
    /// Tells it to begin, and its maker that it is done.
    begin: OwnedFd,
    done: OwnedFd,
    work: Option<Box<dyn FnOnce()>>,
}

impl Companion {
    /// Makes the process. It waits, and does its work when it is its turn.
    pub(crate) fn make(_one: &OneThread, work: impl FnOnce() + 'static) -> Result<Self, Errno> {
        let (begin, done) = (eventfd(0, EventfdFlags::CLOEXEC)?, eventfd(0, EventfdFlags::CLOEXEC)?);
        let mut shared = Box::new(SharedState { begin, done, work: Some(Box::new(work)) });
        let mut stack: Vec<u128> = Vec::with_capacity(STACK_BYTES / size_of::<u128>());
        let mut pidfd: libc::c_int = -1;
        let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_PIDFD | libc::SIGCHLD;
        // SAFETY: the new process runs on a stack of its own, whose top is one past the end of a live allocation and aligned for
        // u128. The stack and the state are kept until it has ended. It shares our memory, allocator and thread-local data with
        // us, so it makes plain system calls only until `take_turns` lets it work, which doesn't return before it is done.
        let pid = unsafe {
            let top = stack.as_mut_ptr().add(stack.capacity());
            libc::clone(run, top.cast(), flags, (&raw mut *shared).cast(), &raw mut pidfd)
        };
        if pid < 0 {
            return Err(last_error());
        }
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(Self { process: unsafe { OwnedFd::from_raw_fd(pidfd) }, shared, _stack: stack })
    }

    /// Lets it work, and waits until it is done.
    pub(crate) fn take_turns(&self) -> Result<(), Errno> {
        rustix::io::write(&self.shared.begin, &ONE_EVENT)?;
        loop {
            let mut waiting =
                [PollFd::new(&self.shared.done, PollFlags::IN), PollFd::new(&self.process, PollFlags::IN)];
            match poll(&mut waiting, None) {
                Ok(_) if !waiting[0].revents().is_empty() => return Ok(()),
                // It was killed.
                Ok(_) => return Err(Errno::SRCH),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The process: waits for its turn, works, and ends.
extern "C" fn run(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: it is the state of the `Companion`, which outlives this process, and whose maker doesn't touch the work.
    let shared = unsafe { &mut *argument.cast::<SharedState>() };
    let mut count = ONE_EVENT;
    while let Err(Errno::INTR) = rustix::io::read(&shared.begin, &mut count) {}
    if let Some(work) = shared.work.take() {
        // The maker finds that there is no result.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    }
    let _ = rustix::io::write(&shared.done, &ONE_EVENT);
    0
}

impl Drop for Companion {
    fn drop(&mut self) {
        let _ = rustix::process::pidfd_send_signal(&self.process, Signal::KILL);
        // Its stack may be freed only when it has ended.
        while let Err(Errno::INTR) = rustix::process::waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED)
        {
        }
    }
}
