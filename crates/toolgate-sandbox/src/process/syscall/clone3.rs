//! New processes. Copying a process that has several threads copies locks that nobody will ever release, so both ways
//! ask for the proof that there is one thread only.

use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::{checked, last_error};

/// Proof that this process has one thread.
#[derive(Debug)]
pub(crate) struct OneThread(());

impl OneThread {
    /// Counts the threads. Nothing in the zygote ever starts one, so asking once is enough.
    pub(crate) fn check() -> Option<Self> {
        let threads = std::fs::read_dir("/proc/self/task").ok()?.count();
        (threads == 1).then_some(Self(()))
    }
}

/// Which side of a copied process this is.
#[derive(Debug)]
pub(crate) enum ForkResult {
    /// The one that asked, with a descriptor of the new one.
    Parent(OwnedFd),
    /// The new one.
    Child,
}

/// Every namespace there is, apart from time's, and from the network's, which is made meanwhile.
pub(crate) const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Copies this process into new namespaces (`CLONE_NEW*` bits; none is fine too).
pub(crate) fn copy_process(_one: &OneThread, namespaces: i32) -> Result<ForkResult, Errno> {
    let mut descriptor: libc::c_int = -1;
    let flags = (libc::CLONE_PIDFD | namespaces) as u32 as u64;
    // SAFETY: `clone_args` is plain numbers, for which zero means "not used".
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = flags;
    arguments.pidfd = (&raw mut descriptor) as u64;
    arguments.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: with no stack given, the child goes on here on a copy of this stack, as after fork; there is one thread, so
    // no lock is held by somebody else. `descriptor` lives until the call is back.
    let answer = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) };
    let copied = match checked(answer) {
        // Container runtimes hide this call, since their filters can't look into its arguments. The older one does the same.
        Err(Errno::NOSYS) => {
            let (nothing, flags) = (std::ptr::null::<libc::c_void>(), flags | libc::SIGCHLD as u64);
            // SAFETY: as above. The descriptor goes where the third argument points; the last two are another order on some
            // machines, and are nothing on all.
            checked(unsafe { libc::syscall(libc::SYS_clone, flags, nothing, &raw mut descriptor, nothing, nothing) })
        }
        other => other,
    };
    match copied? {
        0 => Ok(ForkResult::Child),
        // SAFETY: the kernel has just made this descriptor for us.
        _ => Ok(ForkResult::Parent(unsafe { OwnedFd::from_raw_fd(descriptor) })),
    }
}

/// Room for the child that shares our memory. Pages that aren't touched cost nothing.
const STACK: usize = 256 << 10;

/// A process that was started while sharing our memory.
#[derive(Debug)]
pub(crate) struct SpawnedProcess {
    /// Its number, as seen from here.
    pub(crate) pid: i32,
    /// Its descriptor.
    pub(crate) descriptor: OwnedFd,
}

/// Starts a process that runs `child` in our memory while we wait, until it executes a program or ends. It copies nothing,
/// so it costs the same however large we are, and what `child` writes down before it ends can be read here.
pub(crate) fn spawn_vfork<F: FnMut() -> i32>(_one: &OneThread, mut child: F) -> Result<SpawnedProcess, Errno> {
    extern "C" fn enter<F: FnMut() -> i32>(argument: *mut libc::c_void) -> libc::c_int {
        // SAFETY: `argument` is the `child` below, which the waiting parent keeps alive and doesn't touch.
        let child = unsafe { &mut *argument.cast::<F>() };
        child()
    }
    let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
    let mut descriptor: libc::c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: the child runs on a stack of its own, whose top is one past the end of a live allocation and aligned for
    // u128; CLONE_VFORK keeps us from running (and from freeing anything) until it is done with our memory.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        libc::clone(enter::<F>, top.cast(), flags, (&raw mut child).cast(), &raw mut descriptor)
    };
    if pid < 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(SpawnedProcess { pid, descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } })
}

/// Ends this process at once, without running what was registered for the end by whoever it was copied from.
pub(crate) fn end(status: i32) -> ! {
    // SAFETY: `_exit` takes any number and doesn't come back.
    unsafe { libc::_exit(status) }
}
