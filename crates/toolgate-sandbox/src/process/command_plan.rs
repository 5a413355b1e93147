//! All that one launch needs, made from the workspace's profile and the command's spec: the plan of the sandbox, what is
//! executed in it, and the directories on the host that go with it.

use toolgate_contract::{ApplyMode, ErrorCode, LaunchSpec, NetworkAccess, ToolError};

use super::child::CommandConfinement;
use super::command_paths::{CommandPaths, start_directory};
use super::enforcement::Tier;
use super::error::SandboxError;
use super::plan::{ExecRequest, SandboxPlan};
use super::planning;
use super::profile::Profile;
use crate::files::overlay_changes::{LayerDirectory, OverlayChanges};

/// All that one launch needs.
pub(super) struct CommandPlan {
    pub(super) plan: SandboxPlan,
    pub(super) request: ExecRequest,
    /// What the command is held to; none where nothing confines it.
    pub(super) confinement: Option<CommandConfinement>,
    /// What takes its changes, where they are staged.
    pub(super) staged: Option<OverlayChanges>,
    /// A directory for its temporary files, where it can't have the machine's.
    pub(super) scratch: Option<LayerDirectory>,
}

impl CommandPlan {
    /// Reads what the spec adds to the profile, for a sandbox of this tier.
    pub(super) fn new(profile: &Profile, spec: &LaunchSpec, tier: Tier) -> Result<Self, SandboxError> {
        let apply_mode = spec.decide_apply_mode(true)?;
        if spec.unsandboxed {
            let (plan, request) = (planning::plan_unconfined(profile), planning::exec_request(profile, spec, None)?);
            return Ok(Self { plan, request, confinement: None, staged: None, scratch: None });
        }
        let paths = CommandPaths::of(profile, spec, apply_mode)?;
        let staged = match apply_mode {
            ApplyMode::InPlace => None,
            ApplyMode::AtEnd | ApplyMode::OnCommit => Some(stage(profile, &paths, tier)?),
        };
        let scratch = scratch(profile, tier)?;
        let temporary = scratch.as_ref().map(LayerDirectory::room).transpose()?;
        let request = planning::exec_request(profile, spec, temporary)?;
        require_host_list(&spec.network, tier)?;
        let overlays = staged.as_ref().map(OverlayChanges::overlays).unwrap_or_default();
        let plan = planning::plan(profile, &paths, &spec.network, tier, overlays)?;
        let confinement = Some(CommandConfinement {
            paths,
            directory: start_directory(profile, spec),
            hidden: spec.hidden.iter().filter_map(|place| Some((place.clone(), profile.locate(place)?))).collect(),
            is_staged: staged.is_some(),
        });
        Ok(Self { plan, request, confinement, staged, scratch })
    }
}

/// The plan of a sandbox that commands like this one could run in, one after the other.
pub(super) fn standing_plan(profile: &Profile, spec: &LaunchSpec, tier: Tier) -> Result<SandboxPlan, SandboxError> {
    let paths = CommandPaths::of(profile, spec, ApplyMode::InPlace)?;
    require_host_list(&spec.network, tier)?;
    planning::plan(profile, &paths, &spec.network, tier, Vec::new())
}

/// Makes the directories that take a command's changes.
fn stage(profile: &Profile, paths: &CommandPaths, tier: Tier) -> Result<OverlayChanges, SandboxError> {
    let parent = profile.staging.as_deref().filter(|_| tier == Tier::Namespaces).ok_or_else(|| {
        ToolError::new(ErrorCode::SandboxUnavailable, "Nothing here can keep a command's changes apart.")
    })?;
    OverlayChanges::prepare(parent, &paths.writable, &profile.roots)
}

/// By Landlock alone the machine's directory for temporary files is out of reach. A command gets one beside what is staged.
fn scratch(profile: &Profile, tier: Tier) -> Result<Option<LayerDirectory>, SandboxError> {
    let parent = profile.staging.as_deref().filter(|_| tier == Tier::Landlock);
    Ok(parent.map(LayerDirectory::make).transpose()?)
}

/// Whether single hosts can be let through, where that is asked for.
pub(super) fn require_host_list(network: &NetworkAccess, tier: Tier) -> Result<(), SandboxError> {
    if tier == Tier::Namespaces || !matches!(network, NetworkAccess::Listed(_)) {
        return Ok(());
    }
    let reason = "only namespaces of our own making can hold a list of hosts".to_owned();
    Err(SandboxError::Unavailable { tried: vec![(tier, reason)] })
}
