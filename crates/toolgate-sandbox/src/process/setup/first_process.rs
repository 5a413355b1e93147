//! The first process of a sandbox. It confines itself, step by step; then it receives a command, starts it and waits until it
//! ends. It is the init process of the PID namespace: when it ends, the kernel kills everything inside.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal};

use super::super::enforcement::{SetupFindings, Tier};
use super::super::plan::{ExecRequest, NetworkPlan, SandboxPlan};
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::clone3::OneThread;
use super::super::syscall::companion::Companion;
use super::super::syscall::{clone3, descriptors, loopback, network_namespace, signals};
use super::super::wire::{self, SandboxMessage};
use super::mounts::MountOutcome;
use super::namespaces::Identity;
use super::zygote_main::{INNER_PLAN, INNER_SOCKET};
use super::{capabilities, exec, landlock, listeners, mounts, namespaces, reaper, rlimits, seccomp};

/// What was enforced, and the descriptors for the host: the listeners, then the netlink socket that lists Unix sockets, the
/// inotify descriptor of the decoys and the listener that asks about connections, if there are any.
type SetupResult = (SetupFindings, Vec<OwnedFd>);

/// Builds the sandbox of `plan` and runs one command in it. Returns the exit status of this process.
pub(super) fn run(one: &OneThread, plan: &SandboxPlan, identity: Identity, socket: OwnedFd) -> Result<i32, SetupFault> {
    if plan.tier != Tier::Namespaces {
        signals::default_sigchld();
    }
    let confined = match plan.tier {
        Tier::Namespaces => confine_with_namespaces(one, plan, identity),
        Tier::Bubblewrap => confine_inside_bubblewrap(plan),
        Tier::Landlock => prepare_without_namespaces(),
        Tier::Open => prepare_unconfined(),
    };
    run_confined(one, plan, &socket, confined)
}

/// Confines this process in namespaces that were made before there was a plan, and in mounts that it has by now, and runs one
/// command.
pub(super) fn run_mounted(
    one: &OneThread,
    plan: &SandboxPlan,
    namespaces: OwnNamespaces,
    mounted: Result<MountOutcome, SetupFault>,
    companion: Companion,
    socket: &OwnedFd,
) -> Result<i32, SetupFault> {
    let confined = mounted.and_then(|mounted| confine(plan, namespaces, mounted));
    // It has seen the machine's mounts: it is gone before a command runs.
    drop(companion);
    run_confined(one, plan, socket, confined)
}

/// Runs one command in what was confined, or tells the host why it wasn't.
fn run_confined(
    one: &OneThread,
    plan: &SandboxPlan,
    socket: &OwnedFd,
    confined: Result<SetupResult, SetupFault>,
) -> Result<i32, SetupFault> {
    let outcome = confined.and_then(|confined| serve(one, plan, socket, confined));
    if let Err(fault) = &outcome {
        let _ = wire::send_message(socket.as_fd(), &SandboxMessage::Refused(fault.clone()), &[]);
    }
    outcome
}

/// The namespaces of a sandbox, as far as they are the same for every plan.
pub(super) struct OwnNamespaces {
    inotify_limited: bool,
}

/// The first steps in new namespaces, which are the same for every plan.
pub(super) fn begin(identity: Identity) -> Result<OwnNamespaces, SetupFault> {
    signals::default_sigchld();
    die_with_parent()?;
    rustix::process::setsid().during(SetupStep::LeaveSession)?;
    namespaces::map(identity)?;
    // No program that is executed needs a capability; those that this process has serve until they are dropped.
    capabilities::empty_bounding_set()?;
    // Through the host's `/proc`, which is read-only later: the files are those of the user namespace of whoever opens them.
    Ok(OwnNamespaces { inotify_limited: rlimits::limit_inotify() })
}

/// All steps, in order. Each error says which step failed.
fn confine_with_namespaces(one: &OneThread, plan: &SandboxPlan, identity: Identity) -> Result<SetupResult, SetupFault> {
    let namespaces = begin(identity)?;
    // Made in parallel with the mounts. No command runs before we have entered it.
    let network = match plan.network {
        NetworkPlan::Shared => None,
        NetworkPlan::Off | NetworkPlan::Listed { .. } => {
            Some(network_namespace::begin(one).during(SetupStep::MakeNetwork)?)
        }
    };
    let mounted = mounts::build(plan)?;
    if let Some(network) = network {
        network.enter().during(SetupStep::MakeNetwork)?;
        loopback::bring_up().during(SetupStep::RaiseLoopback)?;
    }
    confine(plan, namespaces, mounted)
}

/// The steps between mounts and network, and a command.
fn confine(
    plan: &SandboxPlan,
    OwnNamespaces { inotify_limited }: OwnNamespaces,
    MountOutcome { own_proc, watch }: MountOutcome,
) -> Result<SetupResult, SetupFault> {
    let mut handed = listeners::open(plan)?;
    let bound = listeners::socket_list(plan);
    let lists_sockets = bound.is_some();
    handed.extend(bound);
    let processes_limited = rlimits::limit_processes(plan, own_proc)?;
    mounts::make_read_only(plan, own_proc)?;
    rlimits::limit_resources(&plan.limits, plan.tier)?;
    hide()?;
    capabilities::drop_own()?;
    // Dropping capabilities reset the parent-death signal.
    die_with_parent()?;
    no_new_privileges()?;
    let landlock = landlock::restrict(plan)?;
    seccomp::install(plan)?;
    // Already now, although only the command connects: a command that is waited for isn't held up by it.
    let connects = seccomp::install_listener(plan)?;
    let (watched, asks_for_connects) = (watch.is_some(), connects.is_some());
    handed.extend(watch.into_iter().chain(connects));
    let findings = SetupFindings {
        landlock,
        own_proc,
        processes_limited,
        inotify_limited,
        watched,
        lists_sockets,
        asks_for_connects,
        ..SetupFindings::default()
    };
    Ok((findings, handed))
}

/// `bwrap` has made the namespaces and mounts already; what is left needs no capability.
fn confine_inside_bubblewrap(plan: &SandboxPlan) -> Result<SetupResult, SetupFault> {
    die_with_parent()?;
    rlimits::limit_resources(&plan.limits, plan.tier)?;
    hide()?;
    no_new_privileges()?;
    let landlock = landlock::restrict(plan)?;
    seccomp::install(plan)?;
    let processes_limited = rlimits::nproc_limit_applies();
    Ok((SetupFindings { landlock, own_proc: true, processes_limited, ..SetupFindings::default() }, Vec::new()))
}

/// Without namespaces, only the command's process is confined (`confine_without_namespaces`). This process stays unconfined,
/// out of the command's reach, and doesn't die with its parent: once the host is gone, it first has to kill what is left.
fn prepare_without_namespaces() -> Result<SetupResult, SetupFault> {
    rustix::process::setsid().during(SetupStep::LeaveSession)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).during(SetupStep::StartCommand)?;
    hide()?;
    no_new_privileges()?;
    let landlock = landlock::is_available();
    if !landlock {
        let errno = Errno::OPNOTSUPP.raw_os_error();
        return Err(SetupFault { step: SetupStep::RestrictFiles, subject: String::new(), errno });
    }
    Ok((SetupFindings { landlock, ..SetupFindings::default() }, Vec::new()))
}

/// Whatever the command starts is found and killed when it ends; nothing else is enforced.
fn prepare_unconfined() -> Result<SetupResult, SetupFault> {
    rustix::process::setsid().during(SetupStep::LeaveSession)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).during(SetupStep::StartCommand)?;
    hide()?;
    Ok((SetupFindings::default(), Vec::new()))
}

/// Confines the command's own process where there are no namespaces.
pub(super) fn confine_without_namespaces(plan: &SandboxPlan) -> Result<(), SetupFault> {
    rlimits::limit_resources(&plan.limits, plan.tier)?;
    capabilities::drop_all()?;
    landlock::restrict(plan)?;
    seccomp::install(plan)
}

fn die_with_parent() -> Result<(), SetupFault> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).during(SetupStep::DieWithParent)
}

fn hide() -> Result<(), SetupFault> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).during(SetupStep::HideFirstProcess)
}

fn no_new_privileges() -> Result<(), SetupFault> {
    rustix::thread::set_no_new_privs(true).during(SetupStep::NoNewPrivileges)
}

/// Waits for a command, runs it, and tells the host how it ended.
fn serve(
    one: &OneThread,
    plan: &SandboxPlan,
    socket: &OwnedFd,
    (findings, handed): SetupResult,
) -> Result<i32, SetupFault> {
    // If the host is gone, receiving tells.
    // The callers of system calls are found by their number in `/proc`.
    let is_brokered = !plan.overlays.is_empty() && findings.own_proc;
    let _ = wire::send_message(socket.as_fd(), &SandboxMessage::Ready(findings), &wire::borrow(&handed));
    // From here on only the host holds the listeners: nobody inside can accept their connections.
    drop(handed);
    let children = signals::watch_children().during(SetupStep::StartCommand)?;
    let Some(received) = wire::receive(socket.as_fd()).during(SetupStep::ReadRequest)? else { return Ok(0) };
    let (request, streams): (ExecRequest, Vec<OwnedFd>) = received.value().during(SetupStep::ReadRequest)?;
    let started = exec::start(one, plan, &request, streams, socket, is_brokered)?;
    let status = reaper::wait(started, socket, &children);
    match (plan.tier, status) {
        (Tier::Landlock | Tier::Open, _) => reaper::kill_descendants(),
        (_, Some(_)) => reaper::kill_namespace(),
        // The kernel kills what is left when this process ends.
        (_, None) => return Ok(0),
    }
    let _ = wire::send_message(socket.as_fd(), &SandboxMessage::Ended(status.unwrap_or(libc::SIGKILL)), &[]);
    Ok(0)
}

/// Becomes the first process of a sandbox that `bwrap` has made.
pub(super) fn run_inside_bubblewrap() -> ! {
    let attempt = || -> Result<i32, Errno> {
        let one = OneThread::check().ok_or(Errno::BUSY)?;
        let socket = descriptors::adopt(INNER_SOCKET)?;
        descriptors::close_on_execute_from(INNER_SOCKET)?;
        signals::reset_all()?;
        let plan: SandboxPlan = wire::from_memfd(descriptors::adopt(INNER_PLAN)?)?;
        Ok(run(&one, &plan, Identity::current(), socket).unwrap_or(1))
    };
    clone3::exit_now(attempt().unwrap_or(1))
}
