//! Which sandbox is good enough. What a command touches was judged on the ground that certain walls stand; where they don't,
//! none runs, unless somebody who may has said that less will do.

use toolgate_contract::{ErrorCode, Guarantee, GuaranteeLevel, STATE_DIRECTORY, ToolError, WorkspacePath};

use crate::process::{Enforcement, GuaranteeReport, Tier};

/// Without these a command could see or change what policy took from it, or outlive its call.
const NEEDED: &[Guarantee] =
    &[Guarantee::Filesystem, Guarantee::Network, Guarantee::ProcessTree, Guarantee::Syscalls, Guarantee::Environment];

/// Of those, what Landlock alone holds with gaps.
const WITH_GAPS: &[Guarantee] = &[Guarantee::Filesystem, Guarantee::ProcessTree];

/// Hidden files that a refusal names.
const MOST_NAMED: usize = 5;

/// Whether what holds is as good as the weakest sandbox that will do.
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

/// What doesn't hold of what policy counts on, in a sentence; none if everything does.
pub fn gaps(enforcement: &Enforcement) -> Option<String> {
    let reasons: Vec<&str> = weak(enforcement).map(|report| &*report.reason).collect();
    (!reasons.is_empty()).then(|| format!("Confined by {} alone: {}.", enforcement.tier.name(), reasons.join("; ")))
}

fn weak(enforcement: &Enforcement) -> impl Iterator<Item = &GuaranteeReport> {
    let is_weak =
        |report: &&GuaranteeReport| NEEDED.contains(&report.guarantee) && report.holding != GuaranteeLevel::Held;
    enforcement.guarantees.iter().filter(is_weak)
}

/// What policy denies stays denied: where no file can be hidden, no command runs beside one that has to be. Toolgate's own
/// state is another matter: who accepts Landlock alone accepts that a command can read and spoil it. Grants, answers and what is
/// on record can't be forged, as they are sealed.
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
