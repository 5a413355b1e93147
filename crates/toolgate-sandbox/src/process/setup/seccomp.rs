//! The seccomp filter: which system calls are refused (`rules`), and their compilation into a BPF program (`program`).

mod program;
mod rules;

use std::os::fd::OwnedFd;
use std::sync::LazyLock;

use super::super::enforcement::Tier;
use super::super::plan::{NetworkPlan, SandboxPlan};
use super::super::profile::UnixSockets;
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::seccomp;
use super::overlay_broker;

/// Installs the filter that asks the host about every `connect`, and returns its listener. Where a listener can't be had (the
/// kernel allows one), no Unix socket can be made instead.
pub(super) fn install_listener(plan: &SandboxPlan) -> Result<Option<OwnedFd>, SetupFault> {
    if !plan.watches_connects {
        return Ok(None);
    }
    if let Ok(listener) = seccomp::install_with_listener(&program::notifying(&[libc::SYS_connect])) {
        return Ok(Some(listener));
    }
    let sockets = rules::AllowedCalls { unix_sockets: false, internet_sockets: true, tracing: true };
    seccomp::install(&program::program(&rules::all(sockets))).during(SetupStep::FilterSystemCalls)?;
    Ok(None)
}

/// Installs the filter that asks the first process about system calls that overlayfs can't do, and returns its listener. Without
/// one, they fail as overlayfs has them fail.
pub(super) fn install_overlay_listener() -> Option<OwnedFd> {
    seccomp::install_with_listener(&program::notifying(overlay_broker::CALLS)).ok()
}

/// Installs the seccomp filter that the plan needs.
pub(super) fn install(plan: &SandboxPlan) -> Result<(), SetupFault> {
    let without_namespaces = plan.tier == Tier::Landlock;
    let sockets = rules::AllowedCalls {
        // Only mounts of our own can hide the host's sockets: they come and go, and `bwrap` fails on one that has just gone.
        unix_sockets: plan.unix_sockets == UnixSockets::Private && plan.tier == Tier::Namespaces,
        internet_sockets: !(without_namespaces && plan.network != NetworkPlan::Shared),
        tracing: plan.tier == Tier::Namespaces,
    };
    let installed = match sockets == USUAL {
        true => seccomp::install(&USUAL_FILTER),
        false => seccomp::install(&program::program(&rules::all(sockets))),
    };
    installed.during(SetupStep::FilterSystemCalls)
}

/// What most sandboxes allow.
const USUAL: rules::AllowedCalls = rules::AllowedCalls { unix_sockets: true, internet_sockets: true, tracing: true };

/// The filter for that.
static USUAL_FILTER: LazyLock<Vec<seccomp::BpfInstruction>> = LazyLock::new(|| program::program(&rules::all(USUAL)));

/// Compiles the filter of most sandboxes. The zygote does this once, and every sandbox has it from there.
pub(super) fn compile_usual() {
    LazyLock::force(&USUAL_FILTER);
}
