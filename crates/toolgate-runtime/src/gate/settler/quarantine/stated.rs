//! What the writes that a tool states are to git. Policy goes by paths and can't look, so it is told: a file of a repository
//! with another name than `.git` counts as if it had that one, and so does what makes a repository of a folder.

use toolgate_contract::{Change, Effect, FOLDER_MODE, FileState, Files, Located, Place};
use toolgate_policy::obeyed;

use super::repositories::{Repositories, above};

/// Names without which no path in a repository is of interest.
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

/// The same writes once more, where they would be if every repository were called `.git`. Most calls have none of these.
pub(crate) fn as_git_sees(effects: &[Located], files: &dyn Files) -> Vec<Located> {
    let is_of_git = |place: &&Place| place.path.split('/').any(|name| OF_GIT.contains(&name));
    let place = |located: &Located| match located.effect {
        Effect::Write { .. } => located.real.as_ref().filter(is_of_git).cloned(),
        _ => None,
    };
    let written: Vec<(&Located, Place)> = effects.iter().filter_map(|one| Some((one, place(one)?))).collect();
    if written.is_empty() {
        return Vec::new();
    }
    let changes: Vec<Change> = written.iter().flat_map(|(_, place)| made(place, files)).collect();
    let repositories = Repositories::new(changes.iter(), files);
    let seen = |(located, place): &(&Located, Place)| {
        let names = repositories.names(place).into_iter().skip(1).filter(|path| obeyed(path).is_some());
        let signs = above(place).skip(1).chain([place.clone()]).filter(|sign| repositories.grown_by(sign).is_some());
        let folders =
            signs.map(|sign| sign.path.rsplit_once('/').map_or(".git".into(), |(path, _)| format!("{path}/.git")));
        let as_if = |path: String| {
            let place = Some(Place { root: place.root, path });
            Located { effect: located.effect.clone(), written: place.clone(), real: place }
        };
        names.chain(folders).map(as_if).collect::<Vec<_>>()
    };
    written.iter().flat_map(seen).collect()
}

/// A file that is written, and the folders that are made for it.
fn made(place: &Place, files: &dyn Files) -> Vec<Change> {
    let is_there = |place: &Place| files.node(place, false).is_ok_and(|node| node.is_some());
    let state = |mode| FileState { sha256: String::new(), bytes: 0, mode };
    let change = |place: Place, mode| {
        let before = is_there(&place).then(|| state(mode));
        Change { path: place.path.clone(), place, before, after: Some(state(mode)) }
    };
    let folders = above(place).skip(1).filter(|folder| !is_there(folder));
    folders.map(|folder| change(folder, FOLDER_MODE)).chain([change(place.clone(), 0)]).collect()
}
