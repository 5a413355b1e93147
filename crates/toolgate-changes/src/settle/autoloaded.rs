//! Finds the changes of a command that git, an editor or another agent would run or load automatically later, outside
//! of every sandbox. The ordinary files that git itself writes when it creates a repository or a worktree are allowed.

mod repositories;
mod stated_effects;

use std::collections::BTreeSet;

use toolgate_contract::{Change, Effect, FileContent, FileEdit, FileState, Files, RemoteUrl, ToolError, WorkspacePath};
use toolgate_policy::{
    AutoloadedKind, GitConfigJudgement, autoloaded, autoloaded_beneath, is_git_autoloaded, judge_git_config,
    suspicious_in_git_todo,
};

use self::repositories::ChangedRepositories;
pub(crate) use self::stated_effects::as_git_paths;

/// The largest size of an ordinary git configuration file.
const MAX_BYTES: u64 = 64 * 1024;

/// The mode bits that make a program run with the rights of its owner or group (setuid, setgid).
const SETUID_SETGID: u32 = 0o6000;

/// Reads the new content of a path, unless it is longer than the given number of bytes.
pub(crate) type NewContent<'a> = dyn Fn(&WorkspacePath, u64) -> Result<Option<FileContent>, ToolError> + 'a;

/// Finds autoloaded files among the changes of one command.
pub(super) struct AutoloadScanner<'a> {
    new_content: &'a NewContent<'a>,
    files: &'a dyn Files,
    repositories: ChangedRepositories,
    /// Symbolic links that the command created.
    links: BTreeSet<WorkspacePath>,
    /// Whether the workspace still has what was there before the command.
    has_previous: bool,
    /// Addresses of remotes that somebody agreed to.
    approved: &'a [RemoteUrl],
}

impl<'a> AutoloadScanner<'a> {
    pub(super) fn new<'c>(
        changes: impl Iterator<Item = &'c Change> + Clone,
        new_content: &'a NewContent<'a>,
        files: &'a dyn Files,
    ) -> Self {
        let is_link = |change: &&Change| change.after.as_ref().is_some_and(FileState::is_link);
        let links = changes.clone().filter(is_link).map(|change| change.place.clone()).collect();
        let repositories = ChangedRepositories::new(changes, files);
        Self { new_content, files, repositories, links, has_previous: false, approved: &[] }
    }

    /// Judges an edit of git's configuration by what it changes, apart from the addresses that somebody agreed to: the workspace
    /// has the previous content.
    pub(super) fn comparing_with_workspace(self, approved: &'a [RemoteUrl]) -> Self {
        Self { has_previous: true, approved, ..self }
    }

    /// Why the changed file would be run or loaded automatically; none if it wouldn't.
    pub(super) fn autoloaded(&self, change: &Change) -> Option<String> {
        let after = change.after.as_ref()?;
        if sets_setuid(change) {
            return Some("it is setuid or setgid, so it would run with the rights of its owner or group".to_owned());
        }
        if let Some(path) = self.repositories.completed_by(&change.place) {
            return Some(format!("git would treat the directory as a repository and load the existing `{path}` in it"));
        }
        if after.is_directory() {
            return None;
        }
        self.repositories.names(&change.place).iter().find_map(|path| self.autoloaded_as(path, after, change))
    }

    /// Why the changed file would be run or loaded automatically if it had this path.
    fn autoloaded_as(&self, path: &str, after: &FileState, change: &Change) -> Option<String> {
        let Some(found) = autoloaded(path) else {
            let reason = autoloaded_beneath(path).filter(|_| after.is_link())?;
            return Some(format!(
                "it is a symbolic link to a directory, and for files in a directory of this name: {reason}"
            ));
        };
        let harm = match found.kind {
            AutoloadedKind::Always => return Some(found.reason.to_owned()),
            _ if !after.is_file() => Some("it is a symbolic link".to_owned()),
            AutoloadedKind::GitConfig => {
                let judged = self.judged_config(change);
                judged.map_or_else(Some, |(_, judged)| unusual(&judged.refused))
            }
            AutoloadedKind::GitTodo => self.suspicious(change, suspicious_in_git_todo),
            // A file that names another directory than before would give an existing worktree other hooks.
            AutoloadedKind::GitLink if change.before.is_some() && path.ends_with(".git") => {
                Some("it named another one before".to_owned())
            }
            AutoloadedKind::GitLink => self.points_outside(change),
            AutoloadedKind::GitCommon => self.common_dir_fault(change),
        };
        harm.map(|harm| format!("{}, and {harm}", found.reason))
    }

    /// The previous configuration of a repository, and what the edit of it comes to; or why nothing can be told about it.
    fn judged_config(&self, change: &Change) -> Result<(Option<FileContent>, GitConfigJudgement), String> {
        let Ok(Some(new)) = (self.new_content)(&change.place, MAX_BYTES) else {
            return Err("it is too large to be an ordinary one".to_owned());
        };
        let has_previous = self.has_previous && change.before.as_ref().is_some_and(FileState::is_file);
        let old = match has_previous {
            true => self.files.content(&change.place, MAX_BYTES).map_err(|error| error.message)?,
            false => None,
        };
        let old_bytes = old.as_ref().map(|old| &old.bytes[..]).unwrap_or_default();
        let approved: Vec<&RemoteUrl> = self.approved.iter().filter(|url| self.is_about(url, &change.place)).collect();
        let judged = judge_git_config(old_bytes, &new.bytes, worktree_of(&change.place).as_deref(), &approved)?;
        Ok((old, judged))
    }

    /// Whether an address is for the repository with this configuration: that of the directory in which git ran.
    fn is_about(&self, url: &RemoteUrl, config: &WorkspacePath) -> bool {
        let mut directories = std::iter::once(url.directory.clone()).chain(url.directory.ancestors().rev());
        let has_repository = |directory: &WorkspacePath| {
            self.files.node(&directory.join(".git"), false).is_ok_and(|node| node.is_some())
        };
        directories.find(has_repository).is_some_and(|directory| directory.join(".git/config") == *config)
    }

    /// What can be applied of a change that as a whole would be loaded automatically: the harmless settings of a repository's
    /// configuration.
    pub(super) fn harmless_part(&self, change: &Change) -> Option<FileEdit> {
        let is_config = |path: &String| autoloaded(path).is_some_and(|found| found.kind == AutoloadedKind::GitConfig);
        let after = change.after.as_ref().filter(|after| after.is_file())?;
        let is_only_config = self.has_previous
            && !sets_setuid(change)
            && self.repositories.completed_by(&change.place).is_none()
            && self.repositories.names(&change.place).iter().all(|path| autoloaded(path).is_none() || is_config(path));
        let (before, judged) = self.judged_config(change).ok().filter(|_| is_only_config)?;
        let old_bytes = before.as_ref().map(|before| &before.bytes[..]).unwrap_or_default();
        if change.before.is_some() != before.is_some() || judged.accepted == old_bytes {
            return None;
        }
        let after = FileContent { bytes: judged.accepted.into(), mode: Some(after.mode) };
        Some(FileEdit { place: change.place.clone(), before, after: Some(after), moved_from: None })
    }

    /// Whether it is a file that git loads automatically, and harmless.
    pub(super) fn is_harmless_git_file(&self, change: &Change) -> bool {
        let is_directory = change.after.as_ref().is_some_and(FileState::is_directory);
        change.after.is_some() && self.is_of_git(&change.place) && (is_directory || self.autoloaded(change).is_none())
    }

    /// Whether git would load a file at this path automatically.
    pub(super) fn is_of_git(&self, place: &WorkspacePath) -> bool {
        self.repositories.names(place).iter().any(|path| is_git_autoloaded(path))
    }

    fn suspicious(&self, change: &Change, find: impl Fn(&[u8]) -> Option<String>) -> Option<String> {
        match (self.new_content)(&change.place, MAX_BYTES) {
            Ok(Some(content)) => find(&content.bytes).map(|found| format!("{found} is unusual")),
            _ => Some("it is too large to be an ordinary one".to_owned()),
        }
    }

    /// Whether one of the lines points outside the workspace.
    fn points_outside(&self, change: &Change) -> Option<String> {
        let Some(text) = self.text(change) else { return Some("it can't be read".to_owned()) };
        let (directory, _) = change.place.path.rsplit_once('/').unwrap_or_default();
        // `objects/info/alternates` is relative to `objects`.
        let directory =
            directory.strip_suffix("/info").filter(|directory| directory.ends_with("objects")).unwrap_or(directory);
        let directory = WorkspacePath { root: change.place.root, path: directory.to_owned() };
        let is_outside = |line: &&str| {
            let target = line.strip_prefix("gitdir:").unwrap_or(line).trim();
            !target.is_empty() && self.target(&directory, target).is_none()
        };
        text.lines().find(is_outside).map(|line| format!("`{}` may point outside the workspace", line.trim()))
    }

    /// The path in the workspace that a path in a directory resolves to; none if that isn't certain. Symbolic links
    /// could point anywhere, now or later, and so could `..` after one.
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
        let passes_link = place.ancestors().skip(1).chain([place.clone()]).any(|place| is_link(&place));
        (!passes_link).then_some(place)
    }

    /// Whether it is anything but what git writes for a worktree: a reference to the repository that contains it.
    fn common_dir_fault(&self, change: &Change) -> Option<String> {
        let directories: Vec<WorkspacePath> = change.place.ancestors().collect();
        let is_plain = match directories.as_slice() {
            [.., repository, worktrees, _] => {
                worktrees.path.ends_with("worktrees") && self.repositories.contain(repository)
            }
            _ => false,
        };
        let says = self.text(change).unwrap_or_default();
        (!is_plain || says.trim_end() != "../..").then(|| "it isn't the usual one of a worktree".to_owned())
    }

    fn text(&self, change: &Change) -> Option<String> {
        let content = (self.new_content)(&change.place, MAX_BYTES).ok().flatten()?;
        String::from_utf8(content.bytes.to_vec()).ok()
    }
}

/// Names settings that aren't harmless; none if there are none.
fn unusual(settings: &[String]) -> Option<String> {
    let named: Vec<String> = settings.iter().map(|name| format!("`{name}`")).collect();
    let verb = if named.len() == 1 { "is" } else { "are" };
    (!named.is_empty()).then(|| format!("{} {verb} unusual", named.join(", ")))
}

/// The worktree of a submodule, as git records it in the submodule's configuration: the path that the module is named
/// after.
fn worktree_of(place: &WorkspacePath) -> Option<String> {
    let (_, module) = place.path.rsplit_once(".git/modules/")?;
    let name = module.strip_suffix("/config")?;
    let is_plain = autoloaded(name).is_none()
        && autoloaded_beneath(name).is_none()
        && !name.split('/').any(|part| part == "modules");
    is_plain.then(|| format!("../../{}{name}", "../".repeat(name.split('/').count())))
}

/// Whether the change makes a program run with the rights of its owner or group.
fn sets_setuid(change: &Change) -> bool {
    let bits = |state: &FileState| if state.is_file() { state.mode & SETUID_SETGID } else { 0 };
    let is_same = |after: &FileState| {
        change.before.as_ref().is_some_and(|before| before.is(after) && bits(after) & !bits(before) == 0)
    };
    change.after.as_ref().is_some_and(|after| bits(after) != 0 && !is_same(after))
}
