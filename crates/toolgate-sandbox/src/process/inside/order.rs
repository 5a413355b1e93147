//! Carrying out an order: a new process with its streams, its working directory and its program.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::super::enforcement::Tier;
use super::super::kernel::clone::{OneThread, start_in_our_memory};
use super::super::kernel::execute::{Strings, execute};
use super::super::kernel::{descriptors, signals};
use super::super::plan::{Order, Plan};
use super::super::step::{During, Fault, Step};
use super::super::wire::{self, Word};
use super::first_process::confine_without_namespaces;
use super::terminal::{self, Terminal};

/// Starts the command and says so; the number is the new process's.
pub(super) fn start(
    one: &OneThread,
    plan: &Plan,
    order: &Order,
    streams: Vec<OwnedFd>,
    socket: &OwnedFd,
) -> Result<i32, Fault> {
    let terminal = order.terminal.map(terminal::open).transpose()?;
    let (arguments, environment) = (Strings::new(&order.arguments), Strings::new(&order.environment));
    let mut fault = None;
    let started = start_in_our_memory(one, || {
        let prepared = prepare(plan, order, &streams, terminal.as_ref());
        fault = Some(prepared.err().unwrap_or_else(|| try_programs(order, &arguments, &environment)));
        127
    });
    let started = started.during(Step::StartCommand)?;
    // Written by the new process in our memory, before it ended without executing anything.
    if let Some(fault) = fault {
        return Err(fault);
    }
    let mut handed: Vec<BorrowedFd<'_>> = vec![started.descriptor.as_fd()];
    handed.extend(terminal.as_ref().map(|terminal| terminal.ours.as_fd()));
    let _ = wire::say(socket.as_fd(), &Word::Started, &handed);
    // Only the command's own processes hold its streams from here on, so that their end is the end.
    Ok(started.pid)
}

/// Everything between the new process and its program. Signals do what they usually do already: the zygote saw to that. But
/// its parent has blocked the one by which it hears of its children.
fn prepare(plan: &Plan, order: &Order, streams: &[OwnedFd], terminal: Option<&Terminal>) -> Result<(), Fault> {
    signals::block_none().during(Step::StartCommand)?;
    rustix::process::setsid().during(Step::LeaveSession)?;
    match terminal {
        Some(terminal) => terminal::take_control(terminal)?,
        None => connect(streams)?,
    }
    if plan.tier == Tier::Landlock {
        confine_without_namespaces(plan)?;
    }
    rustix::process::chdir(order.working_directory.as_c_str())
        .during_on(Step::EnterWorkingDirectory, &order.working_directory)
}

fn connect(streams: &[OwnedFd]) -> Result<(), Fault> {
    for (number, stream) in (0..3).zip(streams) {
        descriptors::place_at(stream.as_fd(), number, false).during(Step::ConnectStreams)?;
    }
    Ok(())
}

/// Tries each path, as a shell would: what isn't there is passed over, and a refusal is remembered.
fn try_programs(order: &Order, arguments: &Strings<'_>, environment: &Strings<'_>) -> Fault {
    let mut worst = Errno::NOENT;
    for program in &order.programs {
        match execute(program, arguments, environment) {
            Errno::NOENT | Errno::NOTDIR => {}
            error => worst = error,
        }
    }
    let subject = order.arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Fault { step: Step::Execute, subject, errno: worst.raw_os_error() }
}
