//! Starts the command: a new process with its standard streams, its working directory and its program.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::super::enforcement::Tier;
use super::super::plan::{ExecRequest, SandboxPlan};
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::clone3::{OneThread, spawn_vfork};
use super::super::syscall::execve::{EXIT_EXEC_FAILED, ExecStrings, execute};
use super::super::syscall::{descriptors, signals};
use super::super::wire::{self, SandboxMessage};
use super::first_process::confine_without_namespaces;
use super::overlay_broker::OverlayBroker;
use super::seccomp;
use super::tty::{self, PtyPair};

/// A command that was started.
pub(super) struct StartedCommand {
    /// The PID of its process.
    pub(super) pid: i32,
    /// Answers those of its system calls that overlayfs can't do.
    pub(super) broker: Option<OverlayBroker>,
    /// Whether the host is told when it is stopped.
    pub(super) is_job: bool,
}

/// Starts the command and tells the host. `is_brokered` is whether the first process is asked about system calls that overlayfs
/// can't do.
pub(super) fn start(
    one: &OneThread,
    plan: &SandboxPlan,
    request: &ExecRequest,
    streams: Vec<OwnedFd>,
    socket: &OwnedFd,
    is_brokered: bool,
) -> Result<StartedCommand, SetupFault> {
    let terminal = request.terminal.map(tty::open).transpose()?;
    let job = terminal.as_ref().filter(|_| request.is_job && plan.tier == Tier::Namespaces);
    job.map(tty::control).transpose()?;
    let is_job = job.is_some();
    let (arguments, environment) = (ExecStrings::new(&request.arguments), ExecStrings::new(&request.environment));
    let sockets = is_brokered.then(wire::pair).transpose().during(SetupStep::StartCommand)?;
    let mut fault = None;
    let started = spawn_vfork(one, || {
        let prepared = prepare(plan, request, &streams, terminal.as_ref(), is_job);
        if let (Some((_, theirs)), Ok(())) = (&sockets, &prepared) {
            hand_over_listener(theirs);
        }
        fault = Some(prepared.err().unwrap_or_else(|| try_programs(request, &arguments, &environment)));
        EXIT_EXEC_FAILED
    });
    let started = started.during(SetupStep::StartCommand)?;
    // The new process shares our memory until it executes a program; it wrote this before it ended without one.
    if let Some(fault) = fault {
        return Err(fault);
    }
    let mut descriptors: Vec<BorrowedFd<'_>> = vec![started.pidfd.as_fd()];
    descriptors.extend(terminal.as_ref().map(|terminal| terminal.master.as_fd()));
    let _ = wire::send_message(socket.as_fd(), &SandboxMessage::Started, &descriptors);
    // The streams are dropped here: once only the command's processes hold them, they end when those processes end.
    let broker = sockets.and_then(|(ours, theirs)| {
        drop(theirs);
        receive_listener(&ours)
    });
    Ok(StartedCommand { pid: started.pid, broker, is_job })
}

/// Everything between the new process and its program. The zygote has reset all signal handlers already, but the first
/// process blocks SIGCHLD.
fn prepare(
    plan: &SandboxPlan,
    request: &ExecRequest,
    streams: &[OwnedFd],
    terminal: Option<&PtyPair>,
    is_job: bool,
) -> Result<(), SetupFault> {
    signals::block_none().during(SetupStep::StartCommand)?;
    match terminal {
        Some(terminal) if is_job => tty::become_job(terminal)?,
        Some(terminal) => {
            rustix::process::setsid().during(SetupStep::LeaveSession)?;
            tty::control(terminal)?;
        }
        None => _ = rustix::process::setsid().during(SetupStep::LeaveSession)?,
    }
    match terminal {
        Some(terminal) => tty::connect(terminal)?,
        None => connect(streams)?,
    }
    if plan.tier == Tier::Landlock {
        confine_without_namespaces(plan)?;
    }
    rustix::process::chdir(request.working_directory.as_c_str())
        .during_on(SetupStep::EnterWorkingDirectory, &request.working_directory)
}

/// Has the first process asked about what overlayfs can't do. The new process has descriptors of its own, so the listener is
/// sent.
fn hand_over_listener(socket: &OwnedFd) {
    if let Some(listener) = seccomp::install_overlay_listener() {
        let _ = wire::send(socket.as_fd(), wire::PLACEHOLDER, &[listener.as_fd()]);
    }
}

fn receive_listener(socket: &OwnedFd) -> Option<OverlayBroker> {
    let received = wire::receive(socket.as_fd()).ok().flatten()?;
    received.descriptors.into_iter().next().map(OverlayBroker::new)
}

fn connect(streams: &[OwnedFd]) -> Result<(), SetupFault> {
    for (number, stream) in descriptors::STANDARD_STREAMS.zip(streams) {
        descriptors::duplicate_to(stream.as_fd(), number, false).during(SetupStep::ConnectStreams)?;
    }
    Ok(())
}

/// Tries each path, as a shell does: a path that doesn't exist is skipped, and any other error is remembered.
fn try_programs(request: &ExecRequest, arguments: &ExecStrings<'_>, environment: &ExecStrings<'_>) -> SetupFault {
    let mut error = Errno::NOENT;
    for program in &request.programs {
        match execute(program, arguments, environment) {
            Errno::NOENT | Errno::NOTDIR => {}
            other => error = other,
        }
    }
    let subject = request.arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    SetupFault { step: SetupStep::Execute, subject, errno: error.raw_os_error() }
}
