//! A network of its own, made by a helper while we go on. It is about a quarter of what a sandbox takes to start, and the
//! kernel needs nothing from us meanwhile.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions};
use rustix::thread::futex::{Flags, wait, wake};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces, unshare_unsafe};

use super::clone3::OneThread;
use super::last_error;

/// Room for the helper, which does next to nothing.
const STACK: usize = 64 << 10;

/// What the helper has to tell: not yet anything, that it is made, or else an error's number.
const MAKING: u32 = u32::MAX;
const MADE: u32 = 0;

/// How long the helper's word is waited for before somebody looks whether it is still there.
const LOOK_AFTER: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A network that is being made. Its helper ends with it.
pub(crate) struct PendingNetwork {
    helper: OwnedFd,
    word: Box<AtomicU32>,
    /// The helper's, for as long as it is there.
    _stack: Vec<u128>,
}

/// Begins to make a network. It belongs to the user namespace that we are in.
pub(crate) fn begin(_one: &OneThread) -> Result<PendingNetwork, Errno> {
    let word = Box::new(AtomicU32::new(MAKING));
    let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
    let mut descriptor: libc::c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: the helper runs on a stack of its own, whose top is one past the end of a live allocation and aligned for u128.
    // That and the word are kept until it has ended. It shares our memory, so it makes plain kernel calls and nothing else:
    // it neither allocates nor uses what belongs to a thread, such as `errno`.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        let argument = std::ptr::from_ref::<AtomicU32>(&word).cast_mut().cast();
        libc::clone(make, top.cast(), flags, argument, &raw mut descriptor)
    };
    if pid < 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(PendingNetwork { helper: unsafe { OwnedFd::from_raw_fd(descriptor) }, word, _stack: stack })
}

/// The helper: makes a network, tells so, and holds it until it is killed.
extern "C" fn make(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: it is the word of the `PendingNetwork` that outlives this process.
    let word = unsafe { &*argument.cast::<AtomicU32>() };
    // SAFETY: it takes no memory or descriptor from anybody.
    let told = match unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
        Ok(()) => MADE,
        Err(error) => error.raw_os_error().unsigned_abs(),
    };
    word.store(told, Ordering::Release);
    let _ = wake(word, Flags::PRIVATE, 1);
    loop {
        let _ = wait(word, Flags::PRIVATE, told, None);
    }
}

impl PendingNetwork {
    /// Waits until the network is made, and goes into it.
    pub(crate) fn enter(self) -> Result<(), Errno> {
        let told = loop {
            match self.word.load(Ordering::Acquire) {
                MAKING if self.is_gone()? => return Err(Errno::SRCH),
                // Whether it was woken, interrupted or late, the word tells.
                MAKING => _ = wait(&self.word, Flags::PRIVATE, MAKING, Some(&LOOK_AFTER)),
                told => break told,
            }
        };
        match told {
            MADE => move_into_thread_name_spaces(self.helper.as_fd(), ThreadNameSpaceType::NETWORK),
            error => Err(Errno::from_raw_os_error(error.cast_signed())),
        }
    }

    fn is_gone(&self) -> Result<bool, Errno> {
        Ok(poll(&mut [PollFd::new(&self.helper, PollFlags::IN)], Some(&Timespec::default()))? > 0)
    }
}

impl Drop for PendingNetwork {
    fn drop(&mut self) {
        let _ = rustix::process::pidfd_send_signal(&self.helper, Signal::KILL);
        // Its memory is ours again only when it has ended.
        while let Err(Errno::INTR) = rustix::process::waitid(WaitId::PidFd(self.helper.as_fd()), WaitIdOptions::EXITED)
        {
        }
    }
}
