//! The zygote: our own program, executed again when the host starts. It is small and has one thread, so forking it is cheap
//! and safe, whatever the host has become since. It waits for plans and forks a first process for each, which does the
//! rest. It ends when the host ends, and everything that it started ends with it.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
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
use super::spare::SpareSandboxes;
use super::{bubblewrap, first_process, seccomp};

/// The `argv[0]` with which the program becomes the zygote.
pub(in super::super) const ZYGOTE_NAME: &str = "toolgate-zygote";
/// The `argv[0]` with which it becomes the first process of a sandbox that `bwrap` made.
pub(in super::super) const INNER_NAME: &str = "toolgate-inner";
/// The descriptor of the first process's socket.
pub(in super::super) const INNER_SOCKET: i32 = 3;
/// The descriptor of the plan, in a sandbox that `bwrap` made.
pub(in super::super) const INNER_PLAN: i32 = 4;
/// The zygote's socket moves here or above, out of the way of the descriptors above.
const FIRST_FREE_DESCRIPTOR: i32 = 10;

/// Becomes the zygote, and doesn't return, if this program was started as one. A program that uses the sandbox calls this first
/// in `main`, before it starts a thread.
pub fn zygote_main_if_asked() {
    let called = std::env::args_os().next().unwrap_or_default();
    if called == OsStr::new(ZYGOTE_NAME) {
        let ended = run_zygote();
        if let Some(cgroup) = std::env::args_os().nth(1) {
            cgroup::leave_and_remove(Path::new(&cgroup));
        }
        clone3::exit_now(ended.map_or(1, |()| 0));
    }
    // `bwrap` passes the whole path as `argv[0]`.
    if Path::new(&called).file_name() == Some(OsStr::new(INNER_NAME)) {
        first_process::run_inside_bubblewrap();
    }
}

/// Whether this program was started as a zygote but didn't become one.
pub(in super::super) fn was_asked_for() -> bool {
    std::env::args_os().next().is_some_and(|name| name.as_bytes() == ZYGOTE_NAME.as_bytes())
}

fn run_zygote() -> Result<(), Errno> {
    let one = OneThread::check().ok_or(Errno::BUSY)?;
    let host = rustix::process::getppid().ok_or(Errno::SRCH)?;
    let host = rustix::process::pidfd_open(host, PidfdFlags::empty())?;
    let socket = take_socket()?;
    descriptors::close_on_execute_from(descriptors::FIRST_AFTER_STANDARD_STREAMS)?;
    signals::reset_all()?;
    signals::ignore_sigchld();
    // Tells the host that this program is a zygote; a program that doesn't call `zygote_main_if_asked` never answers.
    wire::send(socket.as_fd(), wire::PLACEHOLDER, &[])?;
    seccomp::compile_usual();
    let mut spares = SpareSandboxes::default();
    loop {
        match next_request(&socket, &host, spares.are_wanted())? {
            ZygoteRequest::Sandbox { packed, end, wants_spare } => {
                spares.are_kept |= wants_spare;
                serve(&one, &mut spares, packed, end)?;
            }
            ZygoteRequest::Nothing => spares.make(&one),
            ZygoteRequest::HostIsGone => return Ok(()),
        }
    }
}

/// What the zygote has to do next.
enum ZygoteRequest {
    /// To make a sandbox of a plan, which is in a memfd. It gets this end of its socket pair. Then to make a spare one, if that is
    /// wanted.
    Sandbox { packed: OwnedFd, end: OwnedFd, wants_spare: bool },
    /// Nothing, for a while.
    Nothing,
    /// To end.
    HostIsGone,
}

/// How long nothing was asked for before something is made ahead, so as not to take the processor from a command that has just
/// started.
const IDLE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// Moves the socket away from standard input, so that no sandbox inherits it there.
fn take_socket() -> Result<OwnedFd, Errno> {
    let input = rustix::stdio::stdin();
    let is_socket = rustix::net::sockopt::socket_type(input)? == rustix::net::SocketType::SEQPACKET;
    let socket = if is_socket {
        rustix::io::fcntl_dupfd_cloexec(input, FIRST_FREE_DESCRIPTOR)?
    } else {
        return Err(Errno::NOTSOCK);
    };
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(socket)
}

/// Waits for a plan and the sandbox's end of its socket pair, or, where there is something else to do, only for a while.
fn next_request(socket: &OwnedFd, host: &OwnedFd, has_other_work: bool) -> Result<ZygoteRequest, Errno> {
    let mut waiting = [PollFd::new(socket, PollFlags::IN), PollFd::new(host, PollFlags::IN)];
    match poll(&mut waiting, has_other_work.then_some(&IDLE)) {
        Ok(0) => return Ok(ZygoteRequest::Nothing),
        Ok(_) => {}
        Err(Errno::INTR) => return next_request(socket, host, has_other_work),
        Err(error) => return Err(error),
    }
    if waiting[1].revents().intersects(PollFlags::IN) {
        return Ok(ZygoteRequest::HostIsGone);
    }
    let Some(received) = wire::receive(socket.as_fd())? else { return Ok(ZygoteRequest::HostIsGone) };
    let wants_spare = received.bytes == wire::AND_A_SPARE;
    let mut descriptors = received.descriptors.into_iter();
    let (packed, end) = (descriptors.next().ok_or(Errno::BADMSG)?, descriptors.next().ok_or(Errno::BADMSG)?);
    Ok(ZygoteRequest::Sandbox { packed, end, wants_spare })
}

/// Makes a sandbox of the one that waits for a plan, or a new one.
fn serve(one: &OneThread, spares: &mut SpareSandboxes, packed: OwnedFd, end: OwnedFd) -> Result<(), Errno> {
    let plan = wire::from_memfd(&packed)?;
    match spares.hand_over(&plan, &packed, &end) {
        Some(process) => _ = wire::send_message(end.as_fd(), &SandboxMessage::Created, &[process.as_fd()]),
        None => make_sandbox(one, plan, end),
    }
    Ok(())
}

/// Forks the first process of a sandbox. If that fails, the host is told on the sandbox's socket.
fn make_sandbox(one: &OneThread, plan: SandboxPlan, end: OwnedFd) {
    let identity = Identity::current();
    match clone3::fork_into(one, namespaces(&plan)) {
        Ok(ForkResult::Child) => end_process(|| become_sandbox(one, &plan, identity, end)),
        Ok(ForkResult::Parent(descriptor)) => {
            let _ = wire::send_message(end.as_fd(), &SandboxMessage::Created, &[descriptor.as_fd()]);
        }
        Err(error) => {
            let fault =
                SetupFault { step: SetupStep::MakeNamespaces, subject: String::new(), errno: error.raw_os_error() };
            let _ = wire::send_message(end.as_fd(), &SandboxMessage::Refused(fault), &[]);
        }
    }
}

fn namespaces(plan: &SandboxPlan) -> i32 {
    match plan.tier {
        Tier::Namespaces => clone3::NAMESPACES,
        Tier::Bubblewrap | Tier::Landlock | Tier::Open => 0,
    }
}

fn become_sandbox(one: &OneThread, plan: &SandboxPlan, identity: Identity, end: OwnedFd) -> Result<i32, SetupFault> {
    let end = keep_only(end)?;
    match plan.tier {
        Tier::Bubblewrap => bubblewrap::run(one, plan, &end),
        Tier::Namespaces | Tier::Landlock | Tier::Open => first_process::run(one, plan, identity, end),
    }
}

/// Ends this process with the status of what it does. It never returns into the zygote's loop, not even by a panic: there must
/// not be two zygotes.
pub(super) fn end_process(work: impl FnOnce() -> Result<i32, SetupFault>) -> ! {
    let status = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(Ok(status)) => status,
        Ok(Err(_)) | Err(_) => 1,
    };
    clone3::exit_now(status)
}

/// Moves the socket to its descriptor and closes all others but the standard streams, which are `/dev/null`.
pub(super) fn keep_only(end: OwnedFd) -> Result<OwnedFd, SetupFault> {
    descriptors::duplicate_to(end.as_fd(), INNER_SOCKET, true).during(SetupStep::CloseDescriptors)?;
    // The owners of what is closed below are never dropped, because this process doesn't return into the zygote's code.
    std::mem::forget(end);
    descriptors::close_from(INNER_SOCKET + 1).during(SetupStep::CloseDescriptors)?;
    descriptors::adopt(INNER_SOCKET).during(SetupStep::CloseDescriptors)
}

/// A C string of bytes that are known to hold no NUL.
pub(super) fn c_string(text: impl Into<Vec<u8>>) -> CString {
    CString::new(text).unwrap_or_default()
}

/// The PID of this process.
pub(super) fn own_pid() -> i32 {
    Pid::as_raw(Some(rustix::process::getpid()))
}
