//! How much may be used: limits of each process, and of their number.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::super::enforcement::Tier;
use super::super::limits::ResourceLimits;
use super::super::plan::SandboxPlan;
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::namespaces::write_once;

/// The kernel takes no fewer for a namespace: the first 300 numbers are kept back once the count has wrapped around.
const FEWEST_NUMBERS: u64 = 301;

/// Sets the limits of this process, which its children inherit. Without a user namespace the kernel would count everything
/// that the user runs as well, so there the number of processes has none.
pub(super) fn limit_resources(limits: &ResourceLimits, tier: Tier) -> Result<(), SetupFault> {
    let settings = [
        (Resource::Core, Some(0)),
        (Resource::Data, limits.memory),
        (Resource::As, limits.address_space),
        (Resource::Fsize, limits.file_size),
        (Resource::Nofile, limits.open_files),
        (Resource::Cpu, limits.processor_seconds),
        (Resource::Nproc, limits.processes.filter(|_| tier != Tier::Landlock)),
    ];
    for (resource, limit) in settings {
        let Some(limit) = limit else { continue };
        // An outer limit may be lower already; it can't be raised, and needn't be.
        let limit = getrlimit(resource).maximum.map_or(limit, |maximum| limit.min(maximum));
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) }).during(SetupStep::LimitResources)?;
    }
    Ok(())
}

/// Limits the number of processes; says whether that holds. In a user namespace the limit by user counts the sandbox
/// alone. Root is exempt from it, but not from the size of a process namespace (since Linux 6.14).
pub(super) fn limit_processes(plan: &SandboxPlan, own_proc: bool) -> Result<bool, SetupFault> {
    let Some(most) = plan.limits.processes else { return Ok(true) };
    if nproc_limit_applies() {
        return Ok(true);
    }
    let numbers = most.max(FEWEST_NUMBERS);
    // Before 6.14 the file stands for the whole machine and isn't ours to write.
    Ok(own_proc && write_once(c"/proc/sys/kernel/pid_max", &numbers.to_string()).is_ok() && numbers == most)
}

/// Whether the limit on processes by user counts for whom we run as.
pub(super) fn nproc_limit_applies() -> bool {
    !rustix::process::getuid().is_root()
}
