//! The paths that one command may access: those of the workspace's profile and those that its launch spec adds, as absolute
//! paths. The plan of its sandbox is made from them, and so is the list of what it was denied.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toolgate_contract::{Blob, ErrorCode, LaunchSpec, StartDirectory, Substitute, ToolError, WorkspacePath};

use super::profile::{Profile, Readable};

/// Directories that every sandbox has for itself.
const SANDBOXS_OWN: &[&str] = &["/dev", "/proc", "/run", "/tmp"];

/// The name of the symlink to the workspace in a command's own directory.
const WORKSPACE_LINK: &str = "workspace";

/// The name of a repository's directory in its worktree.
const GIT_DIRECTORY: &str = ".git";
/// The file in which git stores branches and remotes.
const GIT_CONFIGURATION: &str = ".git/config";

/// How a sandbox has the writable paths of its profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkspaceMount {
    /// As they are: changes are made in place.
    Writable,
    /// Below an overlay, which takes the changes.
    Staged,
    /// Read-only.
    ReadOnly,
}

/// The paths that one command may access.
#[derive(Debug, Clone, Default)]
pub(super) struct CommandPaths {
    /// Paths that it can change.
    pub(super) writable: Vec<PathBuf>,
    /// Paths that other commands can change, and this one can only read.
    pub(super) read_only: Vec<PathBuf>,
    /// Directories of its own, and caches that it shares with other commands, which it can change too.
    pub(super) own: Vec<PathBuf>,
    /// Paths that it can read although they are inside of a hidden directory.
    pub(super) shown: Vec<PathBuf>,
    /// The git directory of the workspace where it is outside of every root that can be changed, and so can only be read.
    pub(super) git_directory: Option<PathBuf>,
    /// Files that a decoy is mounted over.
    pub(super) secret: Vec<PathBuf>,
    /// Files that another content is mounted over.
    pub(super) substitutes: Vec<(PathBuf, Substitute)>,
    /// Files of which the command sees this content, wherever they are.
    pub(super) replaced: Vec<(PathBuf, Blob)>,
    /// Read-only paths inside of writable ones.
    pub(super) protected: Vec<PathBuf>,
    /// Hidden paths.
    pub(super) masked: Vec<PathBuf>,
    /// What it can see beside all of these; none if that is the whole machine.
    pub(super) readable: Option<Vec<PathBuf>>,
}

impl CommandPaths {
    /// What the profile grants every command, and what the spec adds for this one.
    pub(super) fn of(profile: &Profile, spec: &LaunchSpec, mount: WorkspaceMount) -> Result<Self, ToolError> {
        let located = |places: &[WorkspacePath]| {
            places.iter().filter_map(|place| profile.locate(place)).collect::<Vec<PathBuf>>()
        };
        let granted = spec.writable.iter().map(|path| real(path)).collect::<Result<Vec<_>, _>>()?;
        let is_root = |git: &&PathBuf| profile.writable.iter().any(|root| git.starts_with(root));
        let git_directory = profile.git_directory.as_ref().filter(|git| !is_root(git));
        if let Some(git) = git_directory.filter(|git| !spec.hidden.is_empty() && reaches(&granted, git)) {
            return Err(ToolError::new(ErrorCode::SandboxDenied, only_read(git)));
        }
        let mut protected = [profile.protected.clone(), located(&spec.protected)].concat();
        if mount == WorkspaceMount::Staged {
            protected.retain(|path| !is_settled_later(path, profile));
        }
        let substituted: BTreeSet<&WorkspacePath> =
            spec.substitutes.iter().map(|substitute| &substitute.place).collect();
        // Staged changes have them in the upper directory of the overlay.
        let mounted = spec.substitutes.iter().filter(|_| mount != WorkspaceMount::Staged);
        let with_decoys: Vec<WorkspacePath> =
            spec.hidden.iter().filter(|place| !substituted.contains(place)).cloned().collect();
        let caches = profile.caches.clone();
        let (writable, read_only, own, caches_shown) = match mount {
            WorkspaceMount::ReadOnly => (granted, profile.writable.clone(), spec.own.clone(), caches),
            WorkspaceMount::Writable | WorkspaceMount::Staged => {
                let writable = [profile.writable.clone(), granted].concat();
                (writable, Vec::new(), [spec.own.clone(), caches].concat(), Vec::new())
            }
        };
        Ok(Self {
            writable,
            own,
            shown: [&profile.shown[..], &spec.read_only, &read_only, &caches_shown].concat(),
            read_only,
            git_directory: git_directory.cloned(),
            secret: [profile.secret.clone(), located(&with_decoys)].concat(),
            substitutes: mounted
                .filter_map(|substitute| Some((profile.locate(&substitute.place)?, substitute.clone())))
                .collect(),
            replaced: spec.replaced.clone(),
            protected,
            masked: profile.masked.clone(),
            readable: match &profile.readable {
                Readable::Everything => None,
                Readable::Only(paths) => {
                    let home = profile.home.iter().map(|home| home.path.clone());
                    Some(paths.iter().cloned().chain(home).collect())
                }
            },
        })
    }
}

impl CommandPaths {
    /// Whether there is anything at an absolute path inside: what was granted, the system, the sandbox's own directories, or a
    /// directory on the way to one of those.
    pub(super) fn shows(&self, path: &Path) -> bool {
        let Some(readable) = &self.readable else { return true };
        let own = SANDBOXS_OWN.iter().map(Path::new);
        let granted = [readable, &self.writable, &self.own, &self.shown].into_iter().flatten().map(PathBuf::as_path);
        own.chain(granted).any(|place| path.starts_with(place) || place.starts_with(path))
    }
}

/// Whether something in a directory could be changed by whoever can change these paths.
fn reaches(granted: &[PathBuf], directory: &Path) -> bool {
    granted.iter().any(|path| path.starts_with(directory) || directory.starts_with(path))
}

/// Why a git directory outside of the roots can't be changed: what git has of hidden files is looked up in the roots alone, so a
/// commit would hold decoys.
pub(super) fn only_read(git_directory: &Path) -> String {
    let git = git_directory.display();
    format!(
        "The git directory of this workspace, `{git}`, is outside of the roots, so commands can read it and change nothing in it. To \
         let git work as in any workspace, the person adds `[[roots]]` with `path = \"{git}\"` and `access = \"write\"` to their \
         configuration."
    )
}

/// Whether a protected path needs no mount where changes are staged. Settling quarantines whatever git wouldn't write by itself; and a
/// repository with a mount in it couldn't be removed. The workspace's own hooks stay read-only, so that a command learns at once
/// that they can't be changed.
fn is_settled_later(path: &Path, profile: &Profile) -> bool {
    let is_of_git = path.components().any(|name| name.as_os_str() == GIT_DIRECTORY);
    is_of_git && (path.ends_with(GIT_CONFIGURATION) || !profile.protected.iter().any(|own| own == path))
}

/// The directory that a command starts in.
pub(super) fn start_directory(profile: &Profile, spec: &LaunchSpec) -> PathBuf {
    match &spec.directory {
        StartDirectory::Machine(path) => path.clone(),
        StartDirectory::Workspace(place) => profile.locate(place).unwrap_or_else(|| profile.working_directory.clone()),
    }
}

/// Puts a symlink to the workspace into each of the command's own directories, so that the command can name the workspace
/// without knowing its path.
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

/// A granted path outside of the workspace. Fails if it is behind a symlink, as the real path wasn't granted.
fn real(path: &Path) -> Result<PathBuf, ToolError> {
    let written = path.display();
    match std::fs::canonicalize(path) {
        Ok(real) if real == path => Ok(real),
        Ok(real) => {
            let message = format!("`{written}` leads to `{}`; ask for that path instead.", real.display());
            Err(ToolError::new(ErrorCode::SandboxDenied, message))
        }
        Err(error) => Err(ToolError::io(&format!("`{written}` can't be granted"), &error)),
    }
}
