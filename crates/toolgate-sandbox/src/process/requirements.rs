//! Which sandbox is strong enough. Policy judges commands on the assumption that certain guarantees hold. Where they don't, no
//! command runs, unless the user's own configuration accepts less.

use toolgate_contract::{ErrorCode, Guarantee, GuaranteeLevel, STATE_DIRECTORY, ToolError, WorkspacePath};

use crate::process::{Enforcement, GuaranteeReport, Tier};

/// Without these a command could see or change what policy denies it, or outlive its call.
const NEEDED: &[Guarantee] =
    &[Guarantee::Filesystem, Guarantee::Network, Guarantee::ProcessTree, Guarantee::Syscalls, Guarantee::Environment];

/// Those that Landlock alone guarantees only partly.
const WITH_GAPS: &[Guarantee] = &[Guarantee::Filesystem, Guarantee::ProcessTree];

/// Hidden files that an error names.
const MOST_NAMED: usize = 5;

/// Fails if the enforcement is weaker than the weakest sandbox that configuration accepts.
pub fn check(enforcement: &Enforcement, weakest: Tier) -> Result<(), ToolError> {
    let may_have_gaps = |report: &GuaranteeReport| {
        weakest == Tier::Landlock && WITH_GAPS.contains(&report.guarantee) && report.holding == GuaranteeLevel::Partly
    };
    let weak: Vec<&str> =
        weak(enforcement).filter(|report| !may_have_gaps(report)).map(|report| &*report.reason).collect();
    let why = match weak.as_slice() {
        [] if enforcement.tier <= weakest => return Ok(()),
        [] => format!("`commands.weakest_sandbox` demands {}", weakest.name()),
        weak => weak.join("; "),
    };
    let message = format!("Commands can't be confined well enough here (by {}): {why}.", enforcement.tier.name());
    let hint = "`toolgate doctor` says what would fix that; `commands.weakest_sandbox` in the person's own configuration \
                accepts less.";
    Err(ToolError::new(ErrorCode::SandboxUnavailable, message).with_hint(hint))
}

/// The guarantees that policy relies on and that don't hold, in a sentence; none if all of them hold.
pub fn gaps(enforcement: &Enforcement) -> Option<String> {
    let reasons: Vec<&str> = weak(enforcement).map(|report| &*report.reason).collect();
    (!reasons.is_empty()).then(|| format!("Confined by {} alone: {}.", enforcement.tier.name(), reasons.join("; ")))
}

fn weak(enforcement: &Enforcement) -> impl Iterator<Item = &GuaranteeReport> {
    let is_weak =
        |report: &&GuaranteeReport| NEEDED.contains(&report.guarantee) && report.holding != GuaranteeLevel::Held;
    enforcement.guarantees.iter().filter(is_weak)
}

/// Fails if a file has to be hidden and this tier can't hide it. Toolgate's own state directory doesn't count: whoever accepts
/// Landlock alone accepts that a command can read and damage it. Grants, answers and the journal are signed, so they can't be
/// forged.
pub fn can_hide(tier: Tier, hidden: &[WorkspacePath]) -> Result<(), ToolError> {
    let is_state = |place: &&WorkspacePath| place.path.rsplit('/').next() == Some(STATE_DIRECTORY);
    let hidden: Vec<&WorkspacePath> = hidden.iter().filter(|place| !is_state(place)).collect();
    if hidden.is_empty() || tier != Tier::Landlock {
        return Ok(());
    }
    let named: Vec<String> = hidden.iter().take(MOST_NAMED).map(|place| format!("`{}`", place.path)).collect();
    let more = hidden.len() - named.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let message =
        format!("No command runs here: Landlock alone can't keep it from reading {}{more}.", named.join(", "));
    let hint = "Ask the person to move that out of the workspace, or to let commands see it with `sensitive.except`.";
    Err(ToolError::new(ErrorCode::SandboxUnavailable, message).with_hint(hint))
}
