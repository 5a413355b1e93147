//! The seccomp filter: which system calls are refused (`rules`), and their compilation into a BPF program (`program`).

mod program;
mod rules;

use super::super::enforcement::Tier;
use super::super::plan::{NetworkPlan, SandboxPlan};
use super::super::profile::UnixSockets;
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::seccomp;

/// Installs the seccomp filter that the plan needs.
pub(super) fn install(plan: &SandboxPlan) -> Result<(), SetupFault> {
    let without_namespaces = plan.tier == Tier::Landlock;
    let sockets = rules::AllowedSockets {
        // Only mounts of our own can hide the host's sockets: they come and go, and `bwrap` fails on one that has just gone.
        unix_sockets: plan.unix_sockets == UnixSockets::Private && plan.tier == Tier::Namespaces,
        internet_sockets: !(without_namespaces && plan.network != NetworkPlan::Shared),
    };
    let program = program::program(&rules::all(sockets));
    seccomp::install(&program).during(SetupStep::FilterSystemCalls)
}
