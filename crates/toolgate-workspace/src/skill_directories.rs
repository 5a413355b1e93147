//! Directories of skills: in the workspace, once the user trusts it, and in the home directory of the user.

use std::path::Path;
use std::sync::Arc;

use toolgate_contract::{Files, SkillOwner, WorkspacePath};
use toolgate_runtime::SkillDirectory;
use toolgate_sandbox::Roots;

use crate::error::WorkspaceError;
use crate::location::WorkspaceLocation;

/// The directories that hold skills, ours before those of other clients. The first one is our own state, which policy keeps
/// from every tool; skills are all that is shown of it.
const DIRECTORIES: [(&str, bool); 3] =
    [(SKILL_DIRECTORIES[0], false), (SKILL_DIRECTORIES[1], true), (SKILL_DIRECTORIES[2], true)];

/// The directories of a workspace that hold skills, relative to it.
pub const SKILL_DIRECTORIES: [&str; 3] = [".toolgate/skills", ".agents/skills", ".claude/skills"];

/// Every directory of skills, those of the project before those of the user.
pub(crate) fn skill_directories(
    location: &WorkspaceLocation,
    files: &Arc<dyn Files>,
) -> Result<Vec<SkillDirectory>, WorkspaceError> {
    let mut skill_directories = Vec::new();
    if location.is_trusted()? {
        skill_directories.extend(DIRECTORIES.map(|(path, applies_hidden_paths)| SkillDirectory {
            owner: SkillOwner::Project,
            files: Arc::clone(files),
            place: WorkspacePath::in_workspace(path),
            path: path.into(),
            directory: location.directory.join(path),
            applies_hidden_paths,
        }));
    }
    if let Some(home) = &location.home {
        skill_directories.extend(DIRECTORIES.iter().filter_map(|(path, _)| at_home(&home.join(path))));
    }
    Ok(skill_directories)
}

/// A directory of the user's; none when there is none.
fn at_home(directory: &Path) -> Option<SkillDirectory> {
    let roots = Roots::open(directory).ok()?;
    Some(SkillDirectory {
        owner: SkillOwner::User,
        place: WorkspacePath::in_workspace(""),
        path: directory.display().to_string(),
        directory: roots.workspace().to_owned(),
        files: Arc::new(roots),
        applies_hidden_paths: false,
    })
}
