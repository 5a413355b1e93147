//! The first process of a sandbox. It confines itself, step by step; then it takes an order, starts the command and
//! waits for its end. It is the ancestor of everything inside: when it ends, all of that ends.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal};

use super::super::enforcement::{Findings, Tier};
use super::super::kernel::clone::OneThread;
use super::super::kernel::{clone, descriptors, loopback, network, signals};
use super::super::plan::{Order, Plan, Wiring};
use super::super::step::{During, Fault, Step};
use super::super::wire::{self, Word};
use super::identity::Identity;
use super::mounts::View;
use super::zygote::{INNER_PLAN, INNER_SOCKET};
use super::{capabilities, doors, files, filter, identity, limits, mounts, order, tree};

/// What was found out; and the doors of the network, with the watch over decoys last if there is one.
type Confined = (Findings, Vec<OwnedFd>);

/// Runs one command in a sandbox built by `plan`. The number is what this process ends with.
pub(super) fn run(one: &OneThread, plan: &Plan, identity: Identity, socket: OwnedFd) -> Result<i32, Fault> {
    signals::remember_children();
    let confined = match plan.tier {
        Tier::Namespaces => confine_with_namespaces(one, plan, identity),
        Tier::Bubblewrap => confine_inside_bubblewrap(plan),
        Tier::Landlock => prepare_without_namespaces(),
        Tier::Open => prepare_without_walls(),
    };
    let served = confined.and_then(|confined| serve(one, plan, &socket, confined));
    if let Err(fault) = &served {
        let _ = wire::say(socket.as_fd(), &Word::Refused(fault.clone()), &[]);
    }
    served
}

/// All steps, in order. Each name says what it does; each error says which step it was.
fn confine_with_namespaces(one: &OneThread, plan: &Plan, identity: Identity) -> Result<Confined, Fault> {
    die_with_parent()?;
    rustix::process::setsid().during(Step::LeaveSession)?;
    identity::map(identity)?;
    // It is made while the mounts are. Nobody but us is here before we are in it.
    let network = match plan.network {
        Wiring::Shared => None,
        Wiring::Off | Wiring::Listed { .. } => Some(network::begin(one).during(Step::MakeNetwork)?),
    };
    let View { own_proc, watch } = mounts::build(plan)?;
    if let Some(network) = network {
        network.enter().during(Step::MakeNetwork)?;
        loopback::raise().during(Step::RaiseLoopback)?;
    }
    let mut handed = doors::open(plan)?;
    let processes_limited = limits::limit_processes(plan, own_proc)?;
    mounts::seal(plan, own_proc)?;
    limits::limit_resources(&plan.limits, plan.tier)?;
    hide()?;
    capabilities::drop_all()?;
    // Giving up capabilities made the kernel forget this.
    die_with_parent()?;
    no_new_privileges()?;
    let landlock = files::restrict(plan)?;
    filter::install(plan)?;
    let watched = watch.is_some();
    handed.extend(watch);
    Ok((Findings { landlock, own_proc, processes_limited, watched, ..Findings::default() }, handed))
}

/// The namespaces and mounts are there already; what is left needs no capability.
fn confine_inside_bubblewrap(plan: &Plan) -> Result<Confined, Fault> {
    die_with_parent()?;
    limits::limit_resources(&plan.limits, plan.tier)?;
    hide()?;
    no_new_privileges()?;
    let landlock = files::restrict(plan)?;
    filter::install(plan)?;
    let processes_limited = limits::count_for_this_user();
    Ok((Findings { landlock, own_proc: true, processes_limited, ..Findings::default() }, Vec::new()))
}

/// With no namespace to shut it in, the command gets its walls after it has left this process, which has to stay
/// outside them to be out of its reach. It doesn't die with its parent: it has to clear up first, once its host is gone.
fn prepare_without_namespaces() -> Result<Confined, Fault> {
    rustix::process::setsid().during(Step::LeaveSession)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).during(Step::StartCommand)?;
    hide()?;
    no_new_privileges()?;
    let landlock = files::is_available();
    if !landlock {
        let errno = Errno::OPNOTSUPP.raw_os_error();
        return Err(Fault { step: Step::RestrictFiles, subject: String::new(), errno });
    }
    Ok((Findings { landlock, ..Findings::default() }, Vec::new()))
}

/// Whatever the command starts is found and ended with it; beyond that nothing holds it.
fn prepare_without_walls() -> Result<Confined, Fault> {
    rustix::process::setsid().during(Step::LeaveSession)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).during(Step::StartCommand)?;
    hide()?;
    Ok((Findings::default(), Vec::new()))
}

/// The walls of a command that has no namespaces.
pub(super) fn confine_without_namespaces(plan: &Plan) -> Result<(), Fault> {
    limits::limit_resources(&plan.limits, plan.tier)?;
    capabilities::drop_all()?;
    files::restrict(plan)?;
    filter::install(plan)
}

fn die_with_parent() -> Result<(), Fault> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).during(Step::DieWithParent)
}

fn hide() -> Result<(), Fault> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).during(Step::HideFirstProcess)
}

fn no_new_privileges() -> Result<(), Fault> {
    rustix::thread::set_no_new_privs(true).during(Step::NoNewPrivileges)
}

/// Waits for an order, carries it out, and tells how it ended.
fn serve(one: &OneThread, plan: &Plan, socket: &OwnedFd, (findings, handed): Confined) -> Result<i32, Fault> {
    // If the host is gone, so is the reason to be here; the next line finds out.
    let _ = wire::say(socket.as_fd(), &Word::Ready(findings), &wire::borrow(&handed));
    // From here on they are the host's alone: nobody inside can answer at the doors.
    drop(handed);
    let Some(received) = wire::receive(socket.as_fd()).during(Step::ReadOrder)? else { return Ok(0) };
    let mut handed = received.descriptors.into_iter();
    let order: Order = handed.next().ok_or(Errno::BADMSG).and_then(wire::unpack).during(Step::ReadOrder)?;
    let streams: Vec<OwnedFd> = handed.collect();
    let children = signals::watch_children().during(Step::StartCommand)?;
    let pid = order::start(one, plan, &order, streams, socket)?;
    let status = tree::wait(pid, socket, &children);
    match (plan.tier, status) {
        (Tier::Landlock | Tier::Open, _) => tree::clear(),
        (_, Some(_)) => tree::clear_namespace(),
        // Whoever is left ends with this process.
        (_, None) => return Ok(0),
    }
    let _ = wire::say(socket.as_fd(), &Word::Ended(status.unwrap_or(libc::SIGKILL)), &[]);
    Ok(0)
}

/// The first process of a sandbox that `bwrap` has made.
pub(super) fn run_inside_bubblewrap() -> ! {
    let attempt = || -> Result<i32, Errno> {
        let one = OneThread::check().ok_or(Errno::BUSY)?;
        let socket = descriptors::adopt(INNER_SOCKET)?;
        descriptors::close_on_execute_from(INNER_SOCKET)?;
        signals::reset_all()?;
        let plan: Plan = wire::unpack(descriptors::adopt(INNER_PLAN)?)?;
        Ok(run(&one, &plan, Identity::current(), socket).unwrap_or(1))
    };
    clone::end(attempt().unwrap_or(1))
}
