//! Resource limits: rlimits of each process, and the number of processes.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::super::enforcement::Tier;
use super::super::limits::ResourceLimits;
use super::super::plan::SandboxPlan;
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::namespaces::write_once;

/// The lowest `pid_max` that the kernel accepts: `RESERVED_PIDS` (`kernel/pid.c`) and one.
const PID_MAX_MINIMUM: u64 = 301;

/// The limits of a user namespace on inotify instances and watches, each with that of the user.
const INOTIFY_LIMITS: [(&CStr, &CStr); 2] = [
    (c"/proc/sys/user/max_inotify_instances", c"/proc/sys/fs/inotify/max_user_instances"),
    (c"/proc/sys/user/max_inotify_watches", c"/proc/sys/fs/inotify/max_user_watches"),
];
/// One sandbox gets this fraction of the user's.
const INOTIFY_SHARE: u64 = 4;

/// Sets the rlimits of this process, which its children inherit. Without a user namespace `RLIMIT_NPROC` would count all
/// processes of the user, so there it isn't set.
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
        // The hard limit may be lower already, and can't be raised.
        let limit = getrlimit(resource).maximum.map_or(limit, |maximum| limit.min(maximum));
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) }).during(SetupStep::LimitResources)?;
    }
    Ok(())
}

/// Limits the number of processes; false if that isn't enforced. In a user namespace `RLIMIT_NPROC` counts the sandbox's
/// processes alone. Root is exempt from it, but not from the `pid_max` of a PID namespace (since Linux 6.14).
pub(super) fn limit_processes(plan: &SandboxPlan, own_proc: bool) -> Result<bool, SetupFault> {
    let Some(limit) = plan.limits.processes else { return Ok(true) };
    if nproc_limit_applies() {
        return Ok(true);
    }
    let pid_max = limit.max(PID_MAX_MINIMUM);
    // Before Linux 6.14 the file is the whole machine's, and can't be written here.
    Ok(own_proc && write_once(c"/proc/sys/kernel/pid_max", &pid_max.to_string()).is_ok() && pid_max == limit)
}

/// Limits the inotify instances and watches of the sandbox; false if that can't be done. The kernel counts them by user, so a
/// command could otherwise leave none to the user's other programs. A user namespace has limits of its own below the user's.
pub(super) fn limit_inotify() -> bool {
    INOTIFY_LIMITS.iter().all(|(own, of_user)| {
        let share = read_number(of_user).map(|limit| (limit / INOTIFY_SHARE).max(1));
        share.is_some_and(|share| write_once(own, &share.to_string()).is_ok())
    })
}

fn read_number(path: &CStr) -> Option<u64> {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Whether `RLIMIT_NPROC` applies to our user.
pub(super) fn nproc_limit_applies() -> bool {
    !rustix::process::getuid().is_root()
}
