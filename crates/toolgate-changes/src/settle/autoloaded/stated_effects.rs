//! What a tool's stated writes mean to git. Policy judges paths and can't inspect files, so it gets extra effects: a
//! file in a repository with another name than `.git` counts as if the repository had that name, and so does a write
//! that turns a directory into a repository.

use toolgate_contract::{Change, DIRECTORY_MODE, Effect, FileState, Files, LocatedEffect, WorkspacePath};
use toolgate_policy::autoloaded;

use super::repositories::ChangedRepositories;

/// A path in a repository matters only if it contains one of these names.
const OF_GIT: [&str; 10] = [
    "HEAD",
    "refs",
    "objects",
    "commondir",
    "hooks",
    "config",
    "config.worktree",
    "rebase-merge",
    "remotes",
    "branches",
];

/// The same writes again, with the paths they would have if every repository were called `.git`. Most calls have none
/// of these.
pub(crate) fn as_git_paths(effects: &[LocatedEffect], files: &dyn Files) -> Vec<LocatedEffect> {
    let is_of_git = |place: &&WorkspacePath| place.path.split('/').any(|name| OF_GIT.contains(&name));
    let place = |located: &LocatedEffect| match located.effect {
        Effect::Write { .. } => located.real.as_ref().filter(is_of_git).cloned(),
        _ => None,
    };
    let written: Vec<(&LocatedEffect, WorkspacePath)> =
        effects.iter().filter_map(|one| Some((one, place(one)?))).collect();
    if written.is_empty() {
        return Vec::new();
    }
    let changes: Vec<Change> = written.iter().flat_map(|(_, place)| changes_for(place, files)).collect();
    let repositories = ChangedRepositories::new(changes.iter(), files);
    let as_git = |(located, place): &(&LocatedEffect, WorkspacePath)| {
        let names = repositories.names(place).into_iter().skip(1).filter(|path| autoloaded(path).is_some());
        let signs =
            place.ancestors().skip(1).chain([place.clone()]).filter(|sign| repositories.completed_by(sign).is_some());
        let directories =
            signs.map(|sign| sign.path.rsplit_once('/').map_or(".git".into(), |(path, _)| format!("{path}/.git")));
        let as_if = |path: String| {
            let place = Some(WorkspacePath { root: place.root, path });
            LocatedEffect { effect: located.effect.clone(), written: place.clone(), real: place }
        };
        names.chain(directories).map(as_if).collect::<Vec<_>>()
    };
    written.iter().flat_map(as_git).collect()
}

/// The changes for one written file: the file itself, and the directories created for it.
fn changes_for(place: &WorkspacePath, files: &dyn Files) -> Vec<Change> {
    let exists = |place: &WorkspacePath| files.node(place, false).is_ok_and(|node| node.is_some());
    let state = |mode| FileState::new("", 0, mode);
    let change = |place: WorkspacePath, mode| {
        let before = exists(&place).then(|| state(mode));
        Change { path: place.path.clone(), place, before, after: Some(state(mode)) }
    };
    let directories = place.ancestors().skip(1).filter(|directory| !exists(directory));
    directories.map(|directory| change(directory, DIRECTORY_MODE)).chain([change(place.clone(), 0)]).collect()
}
