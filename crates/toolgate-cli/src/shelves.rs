//! Where skills lie: in the workspace, once the user trusts it, and in the user's home.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use toolgate_contract::{Files, Place as Spot, Shelf};
use toolgate_runtime::SkillShelf;
use toolgate_sandbox::Roots;

use crate::wiring::Place;

/// The folders that hold skills, ours before those of other clients. The first one is our own state, which policy keeps
/// from every tool; skills are all that is shown of it.
const FOLDERS: [(&str, bool); 3] = [(".toolgate/skills", false), (".agents/skills", true), (".claude/skills", true)];

/// Every shelf that counts here; the project's before the user's.
pub(crate) fn shelves(place: &Place, files: &Arc<dyn Files>) -> Result<Vec<SkillShelf>> {
    let mut shelves = Vec::new();
    if place.is_trusted()? {
        shelves.extend(FOLDERS.map(|(path, is_veiled)| SkillShelf {
            shelf: Shelf::Project,
            files: Arc::clone(files),
            place: Spot::in_workspace(path),
            path: path.into(),
            folder: place.workspace.join(path),
            is_veiled,
        }));
    }
    if let Some(home) = std::env::home_dir() {
        shelves.extend(FOLDERS.iter().filter_map(|(path, _)| at_home(&home.join(path))));
    }
    Ok(shelves)
}

/// A folder of the user's; none when there is none.
fn at_home(folder: &Path) -> Option<SkillShelf> {
    let roots = Roots::open(folder).ok()?;
    Some(SkillShelf {
        shelf: Shelf::User,
        place: Spot::in_workspace(""),
        path: folder.display().to_string(),
        folder: roots.workspace().to_owned(),
        files: Arc::new(roots),
        is_veiled: false,
    })
}
