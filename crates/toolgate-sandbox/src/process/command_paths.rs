//! Where one command may go: the workspace's standing profile, and what its launch spec adds to that, as paths of this
//! machine. The plan of its sandbox is made from this, and so is the answer to what it was kept from.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toolgate_contract::{ApplyMode, ErrorCode, LaunchSpec, StartDirectory, ToolError, WorkspacePath};

use super::profile::Profile;

/// What the workspace is called in a directory of a command's own.
const WORKSPACE_LINK: &str = "workspace";

/// What git writes for a branch or a remote.
const GIT_CONFIGURATION: &str = ".git/config";

/// Where one command may go.
#[derive(Debug, Clone, Default)]
pub(super) struct CommandPaths {
    /// What it can change.
    pub(super) writable: Vec<PathBuf>,
    /// Directories of its own, which it can change too.
    pub(super) own: Vec<PathBuf>,
    /// What it can read though it lies in something hidden.
    pub(super) shown: Vec<PathBuf>,
    /// Files in whose place it sees a decoy.
    pub(super) secret: Vec<PathBuf>,
    /// What stays as it is inside what it can change.
    pub(super) protected: Vec<PathBuf>,
    /// What it can't see, wherever that lies.
    pub(super) masked: Vec<PathBuf>,
}

impl CommandPaths {
    /// What the profile grants every command, and what the spec adds for this one.
    pub(super) fn of(profile: &Profile, spec: &LaunchSpec, apply_mode: ApplyMode) -> Result<Self, ToolError> {
        let located = |places: &[WorkspacePath]| {
            places.iter().filter_map(|place| profile.locate(place)).collect::<Vec<PathBuf>>()
        };
        let granted = spec.writable.iter().map(|path| real(path)).collect::<Result<Vec<_>, _>>()?;
        let mut protected = [profile.protected.clone(), located(&spec.protected)].concat();
        if apply_mode != ApplyMode::InPlace {
            // What git wouldn't write there by itself isn't put in place later.
            protected.retain(|path| !path.ends_with(GIT_CONFIGURATION));
        }
        Ok(Self {
            writable: [profile.writable.clone(), granted].concat(),
            own: spec.own.clone(),
            shown: [&profile.shown[..], &spec.read_only].concat(),
            secret: [profile.secret.clone(), located(&spec.hidden)].concat(),
            protected,
            masked: profile.masked.clone(),
        })
    }
}

/// Where a command starts.
pub(super) fn start_directory(profile: &Profile, spec: &LaunchSpec) -> PathBuf {
    match &spec.directory {
        StartDirectory::Machine(path) => path.clone(),
        StartDirectory::Workspace(place) => profile.locate(place).unwrap_or_else(|| profile.working_directory.clone()),
    }
}

/// Puts a link to the workspace into each directory of the command's own, so that the workspace can be named without knowing
/// where it is.
pub(super) fn link_workspace(profile: &Profile, spec: &LaunchSpec) -> Result<(), ToolError> {
    for link in spec.own.iter().map(|directory| directory.join(WORKSPACE_LINK)) {
        match std::os::unix::fs::symlink(&profile.working_directory, &link) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(ToolError::io(&format!("`{}` can't be made", link.display()), &error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A place outside that was granted, if it is what it says: behind a link there is another place, which nobody granted.
fn real(path: &Path) -> Result<PathBuf, ToolError> {
    let written = path.display();
    match std::fs::canonicalize(path) {
        Ok(real) if real == path => Ok(real),
        Ok(real) => {
            let message = format!("`{written}` leads to `{}`; ask for that place instead.", real.display());
            Err(ToolError::new(ErrorCode::SandboxDenied, message))
        }
        Err(error) => Err(ToolError::io(&format!("`{written}` can't be granted"), &error)),
    }
}
