//! The zygote: our own program, executed anew when the host starts. It is small and has one thread, so copying it is
//! cheap and safe, whatever the host has become since. It waits for plans and makes a first process for each; that
//! process does the rest. It ends when the host does, and everything that it made ends with it.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};

use super::super::cgroup;
use super::super::enforcement::Tier;
use super::super::plan::SandboxPlan;
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::clone3::{self, ForkResult, OneThread};
use super::super::syscall::{descriptors, signals};
use super::super::wire::{self, SandboxMessage};
use super::namespaces::Identity;
use super::{bubblewrap, first_process};

/// How the program is called when it is to be the zygote.
pub(in super::super) const ZYGOTE_NAME: &str = "toolgate-zygote";
/// How it is called when it is to be the first process of a sandbox that `bwrap` made.
pub(in super::super) const INNER_NAME: &str = "toolgate-inner";
/// Where the inner one finds its socket.
pub(in super::super) const INNER_SOCKET: i32 = 3;
/// Where the inner one finds its plan.
pub(in super::super) const INNER_PLAN: i32 = 4;

/// Becomes the zygote if this program was started as one, and then doesn't come back. A program that uses the sandbox calls
/// this first thing in `main`, before it starts a thread.
pub fn zygote_main_if_asked() {
    let called = std::env::args_os().next().unwrap_or_default();
    if called == OsStr::new(ZYGOTE_NAME) {
        let ended = run_zygote();
        if let Some(pen) = std::env::args_os().nth(1) {
            cgroup::leave_and_remove(Path::new(&pen));
        }
        clone3::end(ended.map_or(1, |()| 0));
    }
    // `bwrap` names a program by its path.
    if Path::new(&called).file_name() == Some(OsStr::new(INNER_NAME)) {
        first_process::run_inside_bubblewrap();
    }
}

/// Whether this program was started as a zygote and has gone on all the same.
pub(in super::super) fn was_asked_for() -> bool {
    std::env::args_os().next().is_some_and(|name| name.as_bytes() == ZYGOTE_NAME.as_bytes())
}

fn run_zygote() -> Result<(), Errno> {
    let one = OneThread::check().ok_or(Errno::BUSY)?;
    let host = rustix::process::getppid().ok_or(Errno::SRCH)?;
    let host = rustix::process::pidfd_open(host, PidfdFlags::empty())?;
    let socket = take_socket()?;
    descriptors::close_on_execute_from(3)?;
    signals::reset_all()?;
    signals::ignore_sigchld();
    // Says that this program knows how to be a zygote; one that doesn't never answers.
    wire::send(socket.as_fd(), wire::NUDGE, &[])?;
    while let Some((plan, end)) = next_request(&socket, &host)? {
        make_sandbox(&one, plan, end);
    }
    Ok(())
}

/// The socket came as standard input. It moves away from there, so that no sandbox takes it for its own.
fn take_socket() -> Result<OwnedFd, Errno> {
    let input = rustix::stdio::stdin();
    let is_socket = rustix::net::sockopt::socket_type(input)? == rustix::net::SocketType::SEQPACKET;
    let socket = if is_socket { rustix::io::fcntl_dupfd_cloexec(input, 10)? } else { return Err(Errno::NOTSOCK) };
    let nothing = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    Ok(socket)
}

/// Waits for a plan and the sandbox's end of its socket; `None` when the host is gone.
fn next_request(socket: &OwnedFd, host: &OwnedFd) -> Result<Option<(SandboxPlan, OwnedFd)>, Errno> {
    let mut waiting = [PollFd::new(socket, PollFlags::IN), PollFd::new(host, PollFlags::IN)];
    match poll(&mut waiting, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return next_request(socket, host),
        Err(error) => return Err(error),
    }
    if waiting[1].revents().intersects(PollFlags::IN) {
        return Ok(None);
    }
    let Some(received) = wire::receive(socket.as_fd())? else { return Ok(None) };
    let mut descriptors = received.descriptors.into_iter();
    let (plan, end) = (descriptors.next().ok_or(Errno::BADMSG)?, descriptors.next().ok_or(Errno::BADMSG)?);
    Ok(Some((wire::unpack(plan)?, end)))
}

/// Makes the first process of a sandbox. If that fails, the sandbox's socket says so.
fn make_sandbox(one: &OneThread, plan: SandboxPlan, end: OwnedFd) {
    let identity = Identity::current();
    match clone3::copy_process(one, namespaces(&plan)) {
        Ok(ForkResult::Child) => become_sandbox(one, &plan, identity, end),
        Ok(ForkResult::Parent(descriptor)) => {
            let _ = wire::say(end.as_fd(), &SandboxMessage::Born, &[descriptor.as_fd()]);
        }
        Err(error) => {
            let fault =
                SetupFault { step: SetupStep::MakeNamespaces, subject: String::new(), errno: error.raw_os_error() };
            let _ = wire::say(end.as_fd(), &SandboxMessage::Refused(fault), &[]);
        }
    }
}

fn namespaces(plan: &SandboxPlan) -> i32 {
    match plan.tier {
        Tier::Namespaces => clone3::NAMESPACES,
        Tier::Bubblewrap | Tier::Landlock | Tier::Open => 0,
    }
}

/// Never goes back into the zygote's loop, not even by a panic: there must not be two zygotes.
fn become_sandbox(one: &OneThread, plan: &SandboxPlan, identity: Identity, end: OwnedFd) -> ! {
    let attempt = std::panic::AssertUnwindSafe(|| {
        let end = keep_only(end)?;
        match plan.tier {
            Tier::Bubblewrap => bubblewrap::run(one, plan, &end),
            Tier::Namespaces | Tier::Landlock | Tier::Open => first_process::run(one, plan, identity, end),
        }
    });
    let status = match std::panic::catch_unwind(attempt) {
        Ok(Ok(status)) => status,
        Ok(Err(_)) | Err(_) => 1,
    };
    clone3::end(status)
}

/// Puts the socket at its number and closes everything else but the standard streams, which lead nowhere.
fn keep_only(end: OwnedFd) -> Result<OwnedFd, SetupFault> {
    descriptors::duplicate_to(end.as_fd(), INNER_SOCKET, true).during(SetupStep::CloseDescriptors)?;
    // What is closed below has owners in this copy of the zygote; they are never dropped, as this process doesn't return.
    std::mem::forget(end);
    descriptors::close_from(INNER_SOCKET + 1).during(SetupStep::CloseDescriptors)?;
    descriptors::adopt(INNER_SOCKET).during(SetupStep::CloseDescriptors)
}

/// A C string made of what is known to hold no NUL.
pub(super) fn c_string(text: impl Into<Vec<u8>>) -> CString {
    CString::new(text).unwrap_or_default()
}

/// The number of this process, as text for `/proc`.
pub(super) fn own_pid() -> i32 {
    Pid::as_raw(Some(rustix::process::getpid()))
}
