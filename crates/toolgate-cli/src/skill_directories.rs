//! Where skills lie: in the workspace, once the user trusts it, and in the user's home.

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

/// Every shelf that counts here; the project's before the user's.
pub(crate) fn skill_directories(place: &WorkspaceLocation, files: &Arc<dyn Files>) -> Result<Vec<SkillDirectory>> {
    let mut skill_directories = Vec::new();
    if place.is_trusted()? {
        skill_directories.extend(DIRECTORIES.map(|(path, is_veiled)| SkillDirectory {
            shelf: SkillOwner::Project,
            files: Arc::clone(files),
            place: Spot::in_workspace(path),
            path: path.into(),
            directory: place.workspace.join(path),
            is_veiled,
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
        shelf: SkillOwner::User,
        place: Spot::in_workspace(""),
        path: directory.display().to_string(),
        directory: roots.workspace().to_owned(),
        files: Arc::new(roots),
        is_veiled: false,
    })
}
