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
use super::super::plan::Plan;
use super::super::step::{During, Fault, Step};
use super::devices;
use super::mounts::open_no_links;

/// The newest set of rights that we know. Older kernels take what they have of it.
const NEWEST: ABI = ABI::V9;

/// Restricts this process and all that it starts. Says whether the kernel has Landlock.
pub(super) fn restrict(plan: &Plan) -> Result<bool, Fault> {
    let mut rules = everything_ruled_out().during(Step::RestrictFiles)?;
    match (&plan.only, plan.tier) {
        (Some(places), Tier::Landlock) => {
            for place in places {
                rules = allow(rules, &place.path, looking())?;
            }
        }
        // What the mounts leave to be seen can be read.
        _ => rules = allow(rules, c"/", looking())?,
    }
    for place in &plan.writable {
        rules = allow(rules, &place.path, everything())?;
    }
    for path in devices::HARMLESS {
        rules = allow(rules, path, device())?;
    }
    if plan.tier != Tier::Landlock {
        rules = allow(rules, c"/dev/shm", everything())?;
        rules = allow(rules, c"/dev/pts", device())?;
        for cover in plan.covered.iter().filter(|cover| cover.writable) {
            rules = allow(rules, &cover.path, everything())?;
        }
    }
    let status = rules.restrict_self().map_err(errno).during(Step::RestrictFiles)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Whether the kernel has Landlock at all.
pub(super) fn is_available() -> bool {
    let needed = AccessFs::from_all(ABI::V1);
    let hard = landlock::Compatible::set_compatibility(Ruleset::default(), landlock::CompatLevel::HardRequirement);
    hard.handle_access(needed).and_then(Ruleset::create).is_ok()
}

/// Rules that allow nothing yet: no file, no signal and no abstract socket to the outside.
fn everything_ruled_out() -> Result<RulesetCreated, Errno> {
    let rules = Ruleset::default().handle_access(AccessFs::from_all(NEWEST)).map_err(errno)?;
    let rules = rules.scope(Scope::from_all(NEWEST)).map_err(errno)?;
    rules.create().map_err(errno)
}

/// Allows something at and below a place. What isn't there needs no rule.
fn allow(rules: RulesetCreated, path: &CStr, rights: BitFlags<AccessFs>) -> Result<RulesetCreated, Fault> {
    let opened: OwnedFd = match open_no_links(path) {
        Ok(opened) => opened,
        Err(Errno::NOENT | Errno::LOOP | Errno::ACCESS) => return Ok(rules),
        Err(error) => return Err(error).during_on(Step::RestrictFiles, path),
    };
    let folder = rustix::fs::fstat(&opened).is_ok_and(|found| is_folder(&found));
    let rights = if folder { rights } else { rights & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(opened, rights)).map_err(errno).during_on(Step::RestrictFiles, path)
}

fn is_folder(found: &rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir()
}

fn looking() -> BitFlags<AccessFs> {
    AccessFs::from_read(NEWEST) & !AccessFs::ResolveUnix
}

fn everything() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEWEST)
}

fn device() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::ReadDir
}

/// The kernel's own word in an error of the crate.
fn errno(error: RulesetError) -> Errno {
    Errno::from_raw_os_error(*landlock::Errno::from(error))
}
