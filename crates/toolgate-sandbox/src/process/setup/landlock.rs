//! Landlock: which files can be read, executed and changed, checked by the kernel at every open, whatever is mounted where.
//! It is the second line of defense behind the mounts, and the only one where there are no namespaces.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope,
};
use rustix::io::Errno;

use super::super::enforcement::Tier;
use super::super::plan::SandboxPlan;
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::devices;
use super::mounts::open_no_links;

/// The newest Landlock ABI that we know. Older kernels enforce what they have of it.
const NEWEST_ABI: ABI = ABI::V9;

/// Restricts this process and all that it starts. False if the kernel doesn't have Landlock.
pub(super) fn restrict(plan: &SandboxPlan) -> Result<bool, SetupFault> {
    let without_mounts = plan.tier == Tier::Landlock;
    let mut rules = LandlockRules::handling(if without_mounts { all_access() } else { write_access() })?;
    for place in plan.only.iter().flatten().filter(|_| without_mounts) {
        rules = rules.allow(&place.path, read_access())?;
    }
    for place in &plan.writable {
        rules = rules.allow(&place.path, all_access())?;
    }
    for path in devices::HARMLESS {
        rules = rules.allow(path, device_access())?;
    }
    if !without_mounts {
        rules = rules.allow(c"/dev/shm", all_access())?.allow(c"/dev/pts", device_access())?;
        for tmpfs in plan.tmpfs_mounts.iter().filter(|tmpfs| tmpfs.writable) {
            rules = rules.allow(&tmpfs.path, all_access())?;
        }
    }
    let status = rules.ruleset.restrict_self().map_err(errno).during(SetupStep::RestrictFiles)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// A ruleset under construction: access that it handles is denied, apart from what it allows.
struct LandlockRules {
    handled: BitFlags<AccessFs>,
    ruleset: RulesetCreated,
}

impl LandlockRules {
    /// A ruleset that allows nothing yet: none of the handled access, no signal and no abstract socket to the outside.
    fn handling(handled: BitFlags<AccessFs>) -> Result<Self, SetupFault> {
        let rules = Ruleset::default().handle_access(handled);
        let rules = rules.and_then(|rules| rules.scope(Scope::from_all(NEWEST_ABI))).and_then(Ruleset::create);
        Ok(Self { handled, ruleset: rules.map_err(errno).during(SetupStep::RestrictFiles)? })
    }

    /// Allows access to a path and everything below it. A path that doesn't exist needs no rule.
    fn allow(mut self, path: &CStr, rights: BitFlags<AccessFs>) -> Result<Self, SetupFault> {
        let opened: OwnedFd = match open_no_links(path) {
            Ok(opened) => opened,
            Err(Errno::NOENT | Errno::LOOP | Errno::ACCESS) => return Ok(self),
            Err(error) => return Err(error).during_on(SetupStep::RestrictFiles, path),
        };
        let directory = rustix::fs::fstat(&opened).is_ok_and(|found| is_directory(&found));
        let possible = if directory { all_access() } else { AccessFs::from_file(NEWEST_ABI) };
        let rule = PathBeneath::new(opened, rights & possible & self.handled);
        self.ruleset = self.ruleset.add_rule(rule).map_err(errno).during_on(SetupStep::RestrictFiles, path)?;
        Ok(self)
    }
}

/// Whether the kernel has Landlock.
pub(super) fn is_available() -> bool {
    let needed = AccessFs::from_all(ABI::V1);
    let hard = landlock::Compatible::set_compatibility(Ruleset::default(), landlock::CompatLevel::HardRequirement);
    hard.handle_access(needed).and_then(Ruleset::create).is_ok()
}

fn is_directory(found: &rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir()
}

fn read_access() -> BitFlags<AccessFs> {
    AccessFs::from_read(NEWEST_ABI) & !AccessFs::ResolveUnix
}

fn all_access() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEWEST_ABI)
}

/// What is left to handle where mounts decide what can be read: opening for writing, creating and removing. `Truncate` and
/// `IoctlDev` are left out because the kernel checks those at every open, also for reading, which then takes half as long
/// again. Read-only mounts prevent the one, and there are no devices for the other.
fn write_access() -> BitFlags<AccessFs> {
    all_access() & !(read_access() | AccessFs::Truncate | AccessFs::IoctlDev)
}

fn device_access() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::ReadDir
}

/// The `errno` inside an error of the `landlock` crate.
fn errno(error: RulesetError) -> Errno {
    Errno::from_raw_os_error(*landlock::Errno::from(error))
}
