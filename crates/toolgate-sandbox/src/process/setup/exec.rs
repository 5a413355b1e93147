//! Carrying out an order: a new process with its streams, its working directory and its program.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::super::enforcement::Tier;
use super::super::plan::{ExecRequest, SandboxPlan};
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::clone3::{OneThread, spawn_vfork};
use super::super::syscall::execve::{ExecStrings, execute};
use super::super::syscall::{descriptors, signals};
use super::super::wire::{self, SandboxMessage};
use super::first_process::confine_without_namespaces;
use super::tty::{self, PtyPair};

/// Starts the command and says so; the number is the new process's.
pub(super) fn start(
    one: &OneThread,
    plan: &SandboxPlan,
    order: &ExecRequest,
    streams: Vec<OwnedFd>,
    socket: &OwnedFd,
) -> Result<i32, SetupFault> {
    let terminal = order.terminal.map(tty::open).transpose()?;
    let (arguments, environment) = (ExecStrings::new(&order.arguments), ExecStrings::new(&order.environment));
    let mut fault = None;
    let started = spawn_vfork(one, || {
        let prepared = prepare(plan, order, &streams, terminal.as_ref());
        fault = Some(prepared.err().unwrap_or_else(|| try_programs(order, &arguments, &environment)));
        127
    });
    let started = started.during(SetupStep::StartCommand)?;
    // Written by the new process in our memory, before it ended without executing anything.
    if let Some(fault) = fault {
        return Err(fault);
    }
    let mut handed: Vec<BorrowedFd<'_>> = vec![started.descriptor.as_fd()];
    handed.extend(terminal.as_ref().map(|terminal| terminal.ours.as_fd()));
    let _ = wire::say(socket.as_fd(), &SandboxMessage::Started, &handed);
    // Only the command's own processes hold its streams from here on, so that their end is the end.
    Ok(started.pid)
}

/// Everything between the new process and its program. Signals do what they usually do already: the zygote saw to that. But
/// its parent has blocked the one by which it hears of its children.
fn prepare(
    plan: &SandboxPlan,
    order: &ExecRequest,
    streams: &[OwnedFd],
    terminal: Option<&PtyPair>,
) -> Result<(), SetupFault> {
    signals::block_none().during(SetupStep::StartCommand)?;
    rustix::process::setsid().during(SetupStep::LeaveSession)?;
    match terminal {
        Some(terminal) => tty::take_control(terminal)?,
        None => connect(streams)?,
    }
    if plan.tier == Tier::Landlock {
        confine_without_namespaces(plan)?;
    }
    rustix::process::chdir(order.working_directory.as_c_str())
        .during_on(SetupStep::EnterWorkingDirectory, &order.working_directory)
}

fn connect(streams: &[OwnedFd]) -> Result<(), SetupFault> {
    for (number, stream) in (0..3).zip(streams) {
        descriptors::duplicate_to(stream.as_fd(), number, false).during(SetupStep::ConnectStreams)?;
    }
    Ok(())
}

/// Tries each path, as a shell would: what isn't there is passed over, and a refusal is remembered.
fn try_programs(order: &ExecRequest, arguments: &ExecStrings<'_>, environment: &ExecStrings<'_>) -> SetupFault {
    let mut worst = Errno::NOENT;
    for program in &order.programs {
        match execute(program, arguments, environment) {
            Errno::NOENT | Errno::NOTDIR => {}
            error => worst = error,
        }
    }
    let subject = order.arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    SetupFault { step: SetupStep::Execute, subject, errno: worst.raw_os_error() }
}
