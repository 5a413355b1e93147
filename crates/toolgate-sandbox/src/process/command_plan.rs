//! Everything that one launch needs, made from the workspace's profile and the command's spec: the plan of the sandbox, what is
//! executed in it, and the directories on the host that go with it.

use std::ffi::OsString;
use std::path::Path;

use toolgate_contract::{ApplyMode, ErrorCode, LaunchSpec, NetworkAccess, ToolError};

use super::child::CommandConfinement;
use super::command_paths::{CommandPaths, WorkspaceMount, start_directory};
use super::enforcement::Tier;
use super::error::SandboxError;
use super::plan::{ExecRequest, SandboxPlan};
use super::planning;
use super::profile::Profile;
use crate::files::overlay_changes::{LayerDirectory, OverlayChanges};

/// Everything that one launch needs.
pub(super) struct CommandPlan {
    pub(super) plan: SandboxPlan,
    pub(super) request: ExecRequest,
    /// The command's confinement; none if it runs without.
    pub(super) confinement: Option<CommandConfinement>,
    /// The overlay for its changes, if they are staged.
    pub(super) staged: Option<OverlayChanges>,
    /// A directory for its temporary files, where it has no `/tmp`.
    pub(super) scratch: Option<LayerDirectory>,
}

impl CommandPlan {
    /// Combines the profile and the spec for a sandbox of this tier.
    pub(super) fn new(profile: &Profile, spec: &LaunchSpec, tier: Tier) -> Result<Self, SandboxError> {
        let apply_mode = spec.decide_apply_mode(true)?;
        if spec.unsandboxed {
            let (plan, request) = (
                planning::plan_unconfined(profile),
                planning::exec_request(profile, spec, &CommandPaths::default(), Vec::new())?,
            );
            return Ok(Self { plan, request, confinement: None, staged: None, scratch: None });
        }
        let mount = workspace_mount(profile, spec, apply_mode, tier);
        let paths = CommandPaths::of(profile, spec, mount)?;
        let staged = match mount {
            WorkspaceMount::Writable | WorkspaceMount::ReadOnly => None,
            WorkspaceMount::Staged => Some(stage(profile, &paths, spec, tier)?),
        };
        let scratch = scratch(profile, tier)?;
        let temporary = scratch.as_ref().map(LayerDirectory::make_scratch).transpose()?;
        let mut variables: Vec<(&str, OsString)> =
            temporary.into_iter().map(|directory| ("TMPDIR", directory.into_os_string())).collect();
        if apply_mode == ApplyMode::None {
            // Git refreshes its index on the side, which no reader needs.
            variables.push(("GIT_OPTIONAL_LOCKS", "0".into()));
        }
        let request = planning::exec_request(profile, spec, &paths, variables)?;
        require_host_list(&spec.network, tier)?;
        let overlays = staged.as_ref().map(OverlayChanges::overlays).unwrap_or_default();
        let plan = planning::plan(profile, &paths, &spec.network, tier, overlays)?;
        let confinement = Some(CommandConfinement {
            paths,
            directory: start_directory(profile, spec),
            workspace: profile.working_directory.clone(),
            hidden: spec.hidden.iter().filter_map(|place| Some((place.clone(), profile.locate(place)?))).collect(),
            is_staged: staged.is_some(),
        });
        Ok(Self { plan, request, confinement, staged, scratch })
    }
}

/// How the sandbox has the workspace.
fn workspace_mount(profile: &Profile, spec: &LaunchSpec, apply_mode: ApplyMode, tier: Tier) -> WorkspaceMount {
    match apply_mode {
        ApplyMode::InPlace => WorkspaceMount::Writable,
        ApplyMode::AtEnd | ApplyMode::OnCommit => WorkspaceMount::Staged,
        // Git sees hidden files as changed unless they are substituted, which needs an overlay. It is thrown away.
        ApplyMode::None if needs_substitutes(spec) && can_stage(profile, tier).is_some() => WorkspaceMount::Staged,
        ApplyMode::None => WorkspaceMount::ReadOnly,
    }
}

/// Whether a command may look at the files that are substituted for hidden ones. They exist for git.
fn needs_substitutes(spec: &LaunchSpec) -> bool {
    !spec.substitutes.is_empty() && spec.command.contains("git")
}

/// Where changes can be staged; none if they can't be.
fn can_stage(profile: &Profile, tier: Tier) -> Option<&Path> {
    profile.staging.as_deref().filter(|_| tier == Tier::Namespaces)
}

/// The plan of a sandbox that can be built ahead for commands like this one, if their changes aren't staged.
pub(super) fn standing_plan(profile: &Profile, spec: &LaunchSpec, tier: Tier) -> Result<SandboxPlan, SandboxError> {
    let mount = match spec.decide_apply_mode(false)? {
        ApplyMode::None => WorkspaceMount::ReadOnly,
        ApplyMode::InPlace | ApplyMode::AtEnd | ApplyMode::OnCommit => WorkspaceMount::Writable,
    };
    let paths = CommandPaths::of(profile, spec, mount)?;
    require_host_list(&spec.network, tier)?;
    planning::plan(profile, &paths, &spec.network, tier, Vec::new())
}

/// Makes the directories that take a command's changes.
fn stage(
    profile: &Profile,
    paths: &CommandPaths,
    spec: &LaunchSpec,
    tier: Tier,
) -> Result<OverlayChanges, SandboxError> {
    let parent = can_stage(profile, tier)
        .ok_or_else(|| ToolError::new(ErrorCode::SandboxUnavailable, "Nothing here can stage a command's changes."))?;
    OverlayChanges::prepare(parent, &paths.writable, &profile.roots, &spec.substitutes)
}

/// With Landlock alone there is no private `/tmp`, and the machine's is denied. A command gets a directory for temporary files
/// beside the staged changes.
fn scratch(profile: &Profile, tier: Tier) -> Result<Option<LayerDirectory>, SandboxError> {
    let parent = profile.staging.as_deref().filter(|_| tier == Tier::Landlock);
    Ok(parent.map(LayerDirectory::make).transpose()?)
}

/// Fails if the network access is a list of hosts and this tier can't enforce one.
pub(super) fn require_host_list(network: &NetworkAccess, tier: Tier) -> Result<(), SandboxError> {
    if tier == Tier::Namespaces || !matches!(network, NetworkAccess::Listed(_)) {
        return Ok(());
    }
    let reason = "only namespaces that Toolgate makes itself can enforce a list of hosts".to_owned();
    Err(SandboxError::Unavailable { tried: vec![(tier, reason)] })
}
