//! What of a command's changes git, an editor or another agent would obey later, outside of every sandbox. What git itself
//! leaves when it makes a repository or a worktree is ordinary and passes.

use std::collections::BTreeSet;

use toolgate_contract::{Change, Content, Effect, FileState, Files, Place, ToolError};
use toolgate_policy::{ObeyedKind, is_gits_own, obeyed, odd_in_git_config};

/// A larger configuration isn't an ordinary one.
const MOST: u64 = 64 * 1024;

/// The new side of a place, if it isn't longer than that.
type Made<'a> = dyn Fn(&Place, u64) -> Result<Option<Content>, ToolError> + 'a;

/// Looks for what is obeyed among the changes of one command.
pub(super) struct Lookout<'a> {
    made: &'a Made<'a>,
    files: &'a dyn Files,
    /// Folders that git would take for a repository, whatever they are called.
    repositories: BTreeSet<Place>,
}

impl<'a> Lookout<'a> {
    pub(super) fn new<'c>(
        changes: impl Iterator<Item = &'c Change> + Clone,
        made: &'a Made<'a>,
        files: &'a dyn Files,
    ) -> Self {
        let is_made = |path: &Place| changes.clone().any(|change| change.place == *path && change.after.is_some());
        let there = |path: &Place| is_made(path) || files.node(path, false).is_ok_and(|node| node.is_some());
        let heads = changes.clone().filter(|change| change.after.is_some());
        let folders = heads.filter_map(|change| Some((change.place.root, change.place.path.strip_suffix("/HEAD")?)));
        let is_repository = |(root, folder): &(usize, &str)| {
            let inside = |name: &str| Place { root: *root, path: format!("{folder}/{name}") };
            there(&inside("refs")) && there(&inside("objects"))
        };
        let places = folders.filter(is_repository).map(|(root, folder)| Place { root, path: folder.to_owned() });
        Self { made, files, repositories: places.collect() }
    }

    /// Why a change would be obeyed; none if nobody would.
    pub(super) fn obeyed(&self, change: &Change) -> Option<String> {
        let after = change.after.as_ref().filter(|after| !after.is_folder())?;
        let found = obeyed(&self.as_gits(&change.place))?;
        let harm = match found.kind {
            ObeyedKind::Always => return Some(found.reason.to_owned()),
            _ if !after.is_file() => Some("it is a link".to_owned()),
            ObeyedKind::GitConfig => self.odd_in_config(change),
            ObeyedKind::GitLink => self.leads_out(change),
        };
        harm.map(|harm| format!("{}, and {harm}", found.reason))
    }

    /// Whether it is one of the places that git obeys, and harmless.
    pub(super) fn is_harmless_of_git(&self, change: &Change) -> bool {
        let is_folder = change.after.as_ref().is_some_and(FileState::is_folder);
        is_gits_own(&self.as_gits(&change.place))
            && change.after.is_some()
            && (is_folder || self.obeyed(change).is_none())
    }

    /// The path as it would be in a repository with the usual name.
    fn as_gits(&self, place: &Place) -> String {
        let holds = |folder: &&Place| folder.covers(place) && !folder.path.ends_with(".git") && **folder != *place;
        match self.repositories.iter().filter(holds).max_by_key(|folder| folder.path.len()) {
            Some(folder) => format!("{}/.git{}", folder.path, &place.path[folder.path.len()..]),
            None => place.path.clone(),
        }
    }

    fn odd_in_config(&self, change: &Change) -> Option<String> {
        match (self.made)(&change.place, MOST) {
            Ok(Some(content)) => odd_in_git_config(&content.bytes).map(|odd| format!("{odd} is out of the ordinary")),
            _ => Some("it is too large to be an ordinary one".to_owned()),
        }
    }

    /// Whether one of the lines leads out of the workspace.
    fn leads_out(&self, change: &Change) -> Option<String> {
        let content = (self.made)(&change.place, MOST).ok().flatten();
        let text = content.and_then(|content| String::from_utf8(content.bytes.to_vec()).ok());
        let Some(text) = text else { return Some("it can't be read".to_owned()) };
        let (folder, _) = change.place.path.rsplit_once('/').unwrap_or((".", ""));
        let is_outside = |line: &&str| {
            let target = line.strip_prefix("gitdir:").unwrap_or(line).trim();
            let path = if target.starts_with('/') { target.to_owned() } else { format!("{folder}/{target}") };
            self.files.locate(vec![Effect::read(path)]).is_err()
        };
        text.lines().find(is_outside).map(|line| format!("`{}` isn't in the workspace", line.trim()))
    }
}
