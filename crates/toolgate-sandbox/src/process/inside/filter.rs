//! The system-call filter: rules as data, and their assembly into the kernel's little machine language.

mod assemble;
mod rules;

use super::super::enforcement::Tier;
use super::super::kernel::filter;
use super::super::plan::{Plan, Wiring};
use super::super::profile::UnixSockets;
use super::super::step::{During, Fault, Step};

/// Installs the filter that fits the plan.
pub(super) fn install(plan: &Plan) -> Result<(), Fault> {
    let without_namespaces = plan.tier == Tier::Landlock;
    let variant = rules::Variant {
        // Only our own mounts can hide the host's sockets, which come and go, without failing over one that just went.
        unix_sockets: plan.unix_sockets == UnixSockets::Private && plan.tier == Tier::Namespaces,
        internet_sockets: !(without_namespaces && plan.network != Wiring::Shared),
    };
    let program = assemble::program(&rules::all(variant));
    filter::install(&program).during(Step::FilterSystemCalls)
}
