//! Directories of skills: in the workspace, once the user trusts it, and in the home directory of the user.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use toolgate_contract::{Files, SkillOwner, WorkspacePath as Spot};
use toolgate_runtime::SkillDirectory;
use toolgate_sandbox::Roots;

use crate::wiring::WorkspaceLocation;

/// The directories that hold skills, ours before those of other clients. The first one is our own state, which policy keeps
/// from every tool; skills are all that is shown of it.
const DIRECTORIES: [(&str, bool); 3] =
    [(".toolgate/skills", false), (".agents/skills", true), (".claude/skills", true)];

/// Every directory of skills, those of the project before those of the user.
pub(crate) fn skill_directories(place: &WorkspaceLocation, files: &Arc<dyn Files>) -> Result<Vec<SkillDirectory>> {
    let mut skill_directories = Vec::new();
    if place.is_trusted()? {
        skill_directories.extend(DIRECTORIES.map(|(path, applies_hidden_paths)| SkillDirectory {
            owner: SkillOwner::Project,
            files: Arc::clone(files),
            place: Spot::in_workspace(path),
            path: path.into(),
            directory: place.workspace.join(path),
            applies_hidden_paths,
        }));
    }
    if let Some(home) = std::env::home_dir() {
        skill_directories.extend(DIRECTORIES.iter().filter_map(|(path, _)| at_home(&home.join(path))));
    }
    Ok(skill_directories)
}

/// A directory of the user's; none when there is none.
fn at_home(directory: &Path) -> Option<SkillDirectory> {
    let roots = Roots::open(directory).ok()?;
    Some(SkillDirectory {
        owner: SkillOwner::User,
        place: Spot::in_workspace(""),
        path: directory.display().to_string(),
        directory: roots.workspace().to_owned(),
        files: Arc::new(roots),
        applies_hidden_paths: false,
    })
}
