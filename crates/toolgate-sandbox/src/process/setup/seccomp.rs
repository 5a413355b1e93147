//! The system-call filter: rules as data, and their assembly into the kernel's little machine language.

mod program;
mod rules;

use super::super::enforcement::Tier;
use super::super::plan::{NetworkPlan, SandboxPlan};
use super::super::profile::UnixSockets;
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::seccomp;

/// Installs the filter that fits the plan.
pub(super) fn install(plan: &SandboxPlan) -> Result<(), SetupFault> {
    let without_namespaces = plan.tier == Tier::Landlock;
    let variant = rules::AllowedSockets {
        // Only our own mounts can hide the host's sockets, which come and go, without failing over one that just went.
        unix_sockets: plan.unix_sockets == UnixSockets::Private && plan.tier == Tier::Namespaces,
        internet_sockets: !(without_namespaces && plan.network != NetworkPlan::Shared),
    };
    let program = program::program(&rules::all(variant));
    seccomp::install(&program).during(SetupStep::FilterSystemCalls)
}
