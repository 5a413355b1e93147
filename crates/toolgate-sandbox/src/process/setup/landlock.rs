//! Landlock: which files can be read, executed and changed, held by the kernel at every open, whatever is mounted where.
//! It is the second wall behind the mounts, and the first one where there are none.

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

/// The newest set of rights that we know. Older kernels take what they have of it.
const NEWEST: ABI = ABI::V9;

/// Restricts this process and all that it starts. Says whether the kernel has Landlock.
pub(super) fn restrict(plan: &SandboxPlan) -> Result<bool, SetupFault> {
    let alone = plan.tier == Tier::Landlock;
    let mut rules = LandlockRules::handling(if alone { everything() } else { changing() })?;
    for place in plan.only.iter().flatten().filter(|_| alone) {
        rules = rules.allow(&place.path, looking())?;
    }
    for place in &plan.writable {
        rules = rules.allow(&place.path, everything())?;
    }
    for path in devices::HARMLESS {
        rules = rules.allow(path, device())?;
    }
    if !alone {
        rules = rules.allow(c"/dev/shm", everything())?.allow(c"/dev/pts", device())?;
        for cover in plan.covered.iter().filter(|cover| cover.writable) {
            rules = rules.allow(&cover.path, everything())?;
        }
    }
    let status = rules.made.restrict_self().map_err(errno).during(SetupStep::RestrictFiles)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Rules in the making: what they govern is refused, apart from what they allow.
struct LandlockRules {
    governed: BitFlags<AccessFs>,
    made: RulesetCreated,
}

impl LandlockRules {
    /// Rules that allow nothing yet: nothing of what they govern, no signal and no abstract socket to the outside.
    fn handling(governed: BitFlags<AccessFs>) -> Result<Self, SetupFault> {
        let rules = Ruleset::default().handle_access(governed);
        let rules = rules.and_then(|rules| rules.scope(Scope::from_all(NEWEST))).and_then(Ruleset::create);
        Ok(Self { governed, made: rules.map_err(errno).during(SetupStep::RestrictFiles)? })
    }

    /// Allows something at and below a place. What isn't there needs no rule.
    fn allow(mut self, path: &CStr, rights: BitFlags<AccessFs>) -> Result<Self, SetupFault> {
        let opened: OwnedFd = match open_no_links(path) {
            Ok(opened) => opened,
            Err(Errno::NOENT | Errno::LOOP | Errno::ACCESS) => return Ok(self),
            Err(error) => return Err(error).during_on(SetupStep::RestrictFiles, path),
        };
        let directory = rustix::fs::fstat(&opened).is_ok_and(|found| is_directory(&found));
        let possible = if directory { everything() } else { AccessFs::from_file(NEWEST) };
        let rule = PathBeneath::new(opened, rights & possible & self.governed);
        self.made = self.made.add_rule(rule).map_err(errno).during_on(SetupStep::RestrictFiles, path)?;
        Ok(self)
    }
}

/// Whether the kernel has Landlock at all.
pub(super) fn is_available() -> bool {
    let needed = AccessFs::from_all(ABI::V1);
    let hard = landlock::Compatible::set_compatibility(Ruleset::default(), landlock::CompatLevel::HardRequirement);
    hard.handle_access(needed).and_then(Ruleset::create).is_ok()
}

fn is_directory(found: &rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir()
}

fn looking() -> BitFlags<AccessFs> {
    AccessFs::from_read(NEWEST) & !AccessFs::ResolveUnix
}

fn everything() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEWEST)
}

/// What is left to govern where mounts decide what can be seen: opening for writing, making and removing. Truncating and
/// control of devices are left out because the kernel looks those up at every open, also to read, which then costs half
/// as much again; read-only mounts stop the one, and there are no other devices for the other.
fn changing() -> BitFlags<AccessFs> {
    everything() & !(looking() | AccessFs::Truncate | AccessFs::IoctlDev)
}

fn device() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::ReadDir
}

/// The kernel's own word in an error of the crate.
fn errno(error: RulesetError) -> Errno {
    Errno::from_raw_os_error(*landlock::Errno::from(error))
}
