//! What of a command's changes git, an editor or another agent would obey later, outside of every sandbox. What git itself
//! leaves when it makes a repository or a worktree is ordinary and passes.

mod repositories;
mod stated_effects;

use std::collections::BTreeSet;

use toolgate_contract::{Change, Effect, FileContent, FileState, Files, ToolError, WorkspacePath};
use toolgate_policy::{
    AutoloadedKind, autoloaded, autoloaded_beneath, is_git_autoloaded, suspicious_in_git_config, suspicious_in_git_todo,
};

use self::repositories::{ChangedRepositories, above};
pub(crate) use self::stated_effects::as_git_paths;

/// A larger configuration isn't an ordinary one.
const MOST: u64 = 64 * 1024;

/// The bits of a mode that have a program run with its owner's or group's rights.
const LENT_RIGHTS: u32 = 0o6000;

/// The new side of a place, if it isn't longer than that.
type NewContent<'a> = dyn Fn(&WorkspacePath, u64) -> Result<Option<FileContent>, ToolError> + 'a;

/// Looks for what is autoloaded among the changes of one command.
pub(super) struct AutoloadScanner<'a> {
    made: &'a NewContent<'a>,
    files: &'a dyn Files,
    repositories: ChangedRepositories,
    /// Links that the command made.
    links: BTreeSet<WorkspacePath>,
}

impl<'a> AutoloadScanner<'a> {
    pub(super) fn new<'c>(
        changes: impl Iterator<Item = &'c Change> + Clone,
        made: &'a NewContent<'a>,
        files: &'a dyn Files,
    ) -> Self {
        let is_link = |change: &&Change| change.after.as_ref().is_some_and(FileState::is_link);
        let links = changes.clone().filter(is_link).map(|change| change.place.clone()).collect();
        Self { made, files, repositories: ChangedRepositories::new(changes, files), links }
    }

    /// Why a change would be autoloaded; none if nobody would.
    pub(super) fn autoloaded(&self, change: &Change) -> Option<String> {
        let after = change.after.as_ref()?;
        if lends_rights(change) {
            return Some("whoever starts it would do so with the rights of its owner or group".to_owned());
        }
        if let Some(path) = self.repositories.completed_by(&change.place) {
            return Some(format!("git would take the directory for a repository, and obey the `{path}` that is in it"));
        }
        if after.is_directory() {
            return None;
        }
        self.repositories.names(&change.place).iter().find_map(|path| self.obeyed_as(path, after, change))
    }

    /// The same if it had this path.
    fn obeyed_as(&self, path: &str, after: &FileState, change: &Change) -> Option<String> {
        let Some(found) = autoloaded(path) else {
            let reason = autoloaded_beneath(path).filter(|_| after.is_link())?;
            return Some(format!("it is a link to a directory, and of what lies in a directory of this name {reason}"));
        };
        let harm = match found.kind {
            AutoloadedKind::Always => return Some(found.reason.to_owned()),
            _ if !after.is_file() => Some("it is a link".to_owned()),
            AutoloadedKind::GitConfig => {
                let worktree = worktree_of(&change.place);
                self.odd(change, |text| suspicious_in_git_config(text, worktree.as_deref()))
            }
            AutoloadedKind::GitTodo => self.odd(change, suspicious_in_git_todo),
            AutoloadedKind::GitLink => self.leads_out(change),
            AutoloadedKind::GitCommon => self.common_dir_fault(change),
        };
        harm.map(|harm| format!("{}, and {harm}", found.reason))
    }

    /// Whether it is one of the places that git obeys, and harmless.
    pub(super) fn is_harmless_git_file(&self, change: &Change) -> bool {
        let is_directory = change.after.as_ref().is_some_and(FileState::is_directory);
        change.after.is_some() && self.is_of_git(&change.place) && (is_directory || self.autoloaded(change).is_none())
    }

    /// Whether it is one of the places that git obeys.
    pub(super) fn is_of_git(&self, place: &WorkspacePath) -> bool {
        self.repositories.names(place).iter().any(|path| is_git_autoloaded(path))
    }

    fn odd(&self, change: &Change, odd: impl Fn(&[u8]) -> Option<String>) -> Option<String> {
        match (self.made)(&change.place, MOST) {
            Ok(Some(content)) => odd(&content.bytes).map(|odd| format!("{odd} is out of the ordinary")),
            _ => Some("it is too large to be an ordinary one".to_owned()),
        }
    }

    /// Whether one of the lines leads out of the workspace.
    fn leads_out(&self, change: &Change) -> Option<String> {
        let Some(text) = self.text(change) else { return Some("it can't be read".to_owned()) };
        let (directory, _) = change.place.path.rsplit_once('/').unwrap_or_default();
        // Where objects are is said from where objects are.
        let directory =
            directory.strip_suffix("/info").filter(|directory| directory.ends_with("objects")).unwrap_or(directory);
        let directory = WorkspacePath { root: change.place.root, path: directory.to_owned() };
        let is_outside = |line: &&str| {
            let target = line.strip_prefix("gitdir:").unwrap_or(line).trim();
            !target.is_empty() && self.target(&directory, target).is_none()
        };
        text.lines().find(is_outside).map(|line| format!("`{}` isn't plainly in the workspace", line.trim()))
    }

    /// The place that a path said in a directory means; none if that isn't plainly one in the workspace. Links could lead
    /// anywhere, now or later, and so could a way up behind one.
    fn target(&self, directory: &WorkspacePath, path: &str) -> Option<WorkspacePath> {
        let names = path.trim_start_matches("../");
        if names.split('/').any(|name| name == "..") && names != ".." {
            return None;
        }
        let path =
            if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.files.shown(directory)) };
        let located = self.files.locate(vec![Effect::read(path)]).ok()?;
        let place = located.into_iter().next()?.written?;
        let is_link = |place: &WorkspacePath| {
            let state = || self.files.node(place, false).ok().flatten().map(|node| node.state);
            self.links.contains(place) || state().is_some_and(|state| state.is_link())
        };
        let leads_on = above(&place).skip(1).chain([place.clone()]).any(|place| is_link(&place));
        (!leads_on).then_some(place)
    }

    /// Whether it is anything but what git writes for a worktree: that the repository is the one that this lies in.
    fn common_dir_fault(&self, change: &Change) -> Option<String> {
        let directories: Vec<WorkspacePath> = above(&change.place).collect();
        let is_plain = match directories.as_slice() {
            [.., repository, worktrees, _] => {
                worktrees.path.ends_with("worktrees") && self.repositories.contain(repository)
            }
            _ => false,
        };
        let says = self.text(change).unwrap_or_default();
        (!is_plain || says.trim_end() != "../..").then(|| "it isn't that of a worktree".to_owned())
    }

    fn text(&self, change: &Change) -> Option<String> {
        let content = (self.made)(&change.place, MOST).ok().flatten()?;
        String::from_utf8(content.bytes.to_vec()).ok()
    }
}

/// Where the files of a submodule lie, as git says it in the configuration that is kept here: where it is called after.
fn worktree_of(place: &WorkspacePath) -> Option<String> {
    let (_, module) = place.path.rsplit_once(".git/modules/")?;
    let name = module.strip_suffix("/config")?;
    let is_plain = autoloaded(name).is_none()
        && autoloaded_beneath(name).is_none()
        && !name.split('/').any(|part| part == "modules");
    is_plain.then(|| format!("../../{}{name}", "../".repeat(name.split('/').count())))
}

/// Whether it would run with other rights than those of whoever starts it, and didn't before.
fn lends_rights(change: &Change) -> bool {
    let lent = |state: &FileState| if state.is_file() { state.mode & LENT_RIGHTS } else { 0 };
    let is_same = |after: &FileState| {
        change.before.as_ref().is_some_and(|before| before.is(after) && lent(after) & !lent(before) == 0)
    };
    change.after.as_ref().is_some_and(|after| lent(after) != 0 && !is_same(after))
}
