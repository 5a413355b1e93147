//! Decides which changes of a command are applied and which are quarantined, with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolgate_contract::QuarantineMode;
use toolgate_contract::{
    Access, Change, Difference, Differences, FileContent, FileEdit, FileState, Files, HiddenPaths, NamedChanges,
    QuarantinedPath, StagedChanges, UnreadableChange, WorkspacePath,
};

use toolgate_policy::holds_only_certificates;

use super::autoloaded::{AutoloadScanner, NewContent};
use crate::git::{CommittedFiles, DecoyGuard, RemovedRepositories};

/// The decision about the changes of one command.
#[derive(Debug, Default)]
pub(crate) struct ChangeSelection {
    /// Changes to apply, sorted by path.
    pub(crate) chosen: Vec<Change>,
    /// Changes to quarantine, with the reason.
    pub(crate) quarantined: Vec<(Change, String)>,
    /// Removed directories that have to stay, because something in them stays.
    pub(crate) needed: Vec<Change>,
    /// The harmless part of changes that are quarantined as a whole.
    pub(crate) edits: Vec<FileEdit>,
    /// Changes that can't be read, and so are neither applied nor judged.
    pub(crate) unreadable: Vec<UnreadableChange>,
    /// Notes about applied changes.
    pub(crate) notes: Vec<String>,
    /// Applied files that git loads automatically, whatever the repository's directory is called, and that are
    /// harmless.
    pub(crate) of_git: BTreeSet<WorkspacePath>,
}

/// Decides about the changes of commands.
pub(crate) struct ChangeSelector {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) hidden_paths: Arc<dyn HiddenPaths>,
    /// What happens to files that other programs would run or load automatically.
    pub(crate) quarantine: QuarantineMode,
    /// What git has committed of hidden files.
    pub(crate) committed: CommittedFiles,
}

impl ChangeSelector {
    /// Decides about staged changes. What somebody approved by name is applied.
    pub(crate) fn choose(
        &self,
        differences: Differences,
        staged: &dyn StagedChanges,
        approved: &NamedChanges,
    ) -> ChangeSelection {
        let Differences { all, unreadable, .. } = differences;
        let new_content = |place: &WorkspacePath, max_bytes: u64| staged.content(place, max_bytes);
        let scanner = AutoloadScanner::new(all.iter().map(|one| &one.change), &new_content, self.files.as_ref())
            .comparing_with_workspace(&approved.remote_urls);
        let is_moved = |change: &Change| {
            approved.new_keys.contains(&change.place) || self.committed.allows(change, staged, self.files.as_ref())
        };
        // By another name, a later command could write to a file that it may not change.
        for difference in &all {
            let Some(existing) = &difference.linked_to else { continue };
            let (path, after) = (self.files.shown(existing), difference.change.after.clone());
            let written = Change { path, place: existing.clone(), before: None, after };
            if self.is_denied(&written, &new_content) || scanner.autoloaded(&written).is_some() {
                staged.copy_instead_of_link(&difference.change.place);
            }
        }
        let closed = ClosedDirectories::new(&all, self.files.as_ref());
        let removed = self.removed_repositories(all.iter().map(|one| &one.change), &new_content, &is_moved, false);
        let mut choice = self.select(all, &scanner, &new_content, &is_moved, &closed, &removed);
        choice.keep_directories_of(unreadable.iter().map(|unreadable| &unreadable.place));
        choice.unreadable = unreadable;
        choice
    }

    /// Decides about changes that were made in place: those to quarantine have to be reverted. A new file whose name says that
    /// it holds secrets stays, also if it has changed again since others were told of it: nobody can tell whether that was the
    /// command or a person beside it, whose `.env` must not vanish. One that was there before the command is mounted over and
    /// not compared, so the command can't have changed it.
    pub(crate) fn select_in_place(&self, changes: Vec<Change>) -> ChangeSelection {
        let new_content = |place: &WorkspacePath, max_bytes: u64| self.files.content(place, max_bytes);
        let scanner = AutoloadScanner::new(changes.iter(), &new_content, self.files.as_ref());
        let differences =
            changes.iter().cloned().map(|change| Difference { change, is_stale: false, linked_to: None }).collect();
        let removed = self.removed_repositories(changes.iter(), &new_content, &|_| false, true);
        let is_new_secret = |change: &Change| {
            let is_rewritten = change.after.is_some() && !self.hidden_paths.depends_on_content(&change.place);
            (change.before.is_none() || is_rewritten) && self.hidden_paths.hides_as_secret(&change.place)
        };
        let mut choice =
            self.select(differences, &scanner, &new_content, &is_new_secret, &ClosedDirectories::default(), &removed);
        let new_secrets = choice.chosen.iter().filter(|change| is_new_secret(change) && !is_directory(&change.after));
        choice.notes.extend(new_secrets.map(|change| format!("`{}` {NEW_SECRET}", change.path)));
        choice
    }

    fn removed_repositories<'c>(
        &self,
        changes: impl Iterator<Item = &'c Change> + Clone,
        new_content: &NewContent<'_>,
        is_moved: &dyn Fn(&Change) -> bool,
        in_place: bool,
    ) -> RemovedRepositories {
        let is_denied = |change: &Change| self.is_denied(change, new_content) && !is_moved(change);
        RemovedRepositories::new(changes, &is_denied, self.files.as_ref(), in_place)
    }

    /// `is_allowed` says whether a change of a hidden path is allowed all the same: on an overlay, if it only moves the file from
    /// one committed version to another, or if a person approved it by name.
    fn select(
        &self,
        differences: Vec<Difference>,
        scanner: &AutoloadScanner<'_>,
        new_content: &NewContent<'_>,
        is_allowed: &dyn Fn(&Change) -> bool,
        closed: &ClosedDirectories,
        removed: &RemovedRepositories,
    ) -> ChangeSelection {
        let decoys = DecoyGuard::new(differences.iter().map(|one| &one.change), new_content);
        let is_denied = |change: &Change| {
            let is_harmless = scanner.is_harmless_git_file(change);
            self.is_denied(change, new_content) && !is_harmless && !is_allowed(change) && !removed.goes(change)
        };
        let refused = |change: &Change| match decoys.reason(change) {
            None => removed.stays(change).then_some(REPOSITORY_STAYS),
            reason => reason,
        };
        choose(differences, &is_denied, &refused, scanner, self.quarantine, closed)
    }

    /// Whether policy blocks the change. Where the content decides, neither the file that is there nor the new one may be a
    /// key.
    fn is_denied(&self, change: &Change, new_content: &NewContent<'_>) -> bool {
        let hidden_paths = self.hidden_paths.as_ref();
        if !hidden_paths.depends_on_content(&change.place) {
            return is_denied(change, hidden_paths);
        }
        let is_public = |content: &FileContent| !content.is_link() && holds_only_certificates(&content.bytes);
        let new = || new_content(&change.place, MAX_CERTIFICATE_BYTES).ok().flatten();
        let becomes_key = change.after.is_some() && !new().as_ref().is_some_and(is_public);
        becomes_key || change.before.is_some() && is_denied(change, hidden_paths)
    }

    /// Notes about suspicious changes that were made in place and stay.
    pub(crate) fn remarks(&self, changes: &[Change]) -> Vec<String> {
        let new_content = |place: &WorkspacePath, max_bytes: u64| self.files.content(place, max_bytes);
        let scanner = AutoloadScanner::new(changes.iter(), &new_content, self.files.as_ref());
        let remark = |change: &Change| {
            let autoloaded = if self.quarantine == QuarantineMode::Off { None } else { scanner.autoloaded(change) };
            let is_denied = self.is_denied(change, &new_content) && !scanner.is_harmless_git_file(change);
            let reason = autoloaded.or_else(|| is_denied.then(|| DENIED.to_owned()))?;
            Some(format!("`{}` was changed in place: {reason}.", change.path))
        };
        changes.iter().filter_map(remark).collect()
    }
}

/// The largest file that is taken for certificates.
const MAX_CERTIFICATE_BYTES: u64 = 4 * 1024 * 1024;

const STALE: &str = "another program changed it while the command ran, and that version stays";
const NEW_SECRET: &str = "is new and stays. Policy hides such files from tools, and it isn't known whether the command made it or \
                          somebody else did meanwhile.";
const DENIED: &str = "policy blocks changes to this path";
const IN_USE: &str = "it would replace a directory in which something stays";
const REPOSITORY_STAYS: &str = "a repository is removed together with its worktree, as a whole, or not at all: tools don't remove \
                                git's hooks and configuration by themselves";
const NO_DIRECTORY: &str = "its directory is quarantined";

/// Differences are sorted by path, so a directory comes before its contents.
fn choose(
    differences: Vec<Difference>,
    is_denied: &dyn Fn(&Change) -> bool,
    refused: &dyn Fn(&Change) -> Option<&'static str>,
    scanner: &AutoloadScanner<'_>,
    quarantine: QuarantineMode,
    closed: &ClosedDirectories,
) -> ChangeSelection {
    let mut choice = ChangeSelection::default();
    let mut missing: BTreeSet<WorkspacePath> = BTreeSet::new();
    for Difference { change, is_stale, .. } in differences {
        let autoloaded = if quarantine == QuarantineMode::Off { None } else { scanner.autoloaded(&change) };
        let reason = match &autoloaded {
            _ if parent(&change.place).is_some_and(|parent| missing.contains(&parent)) => Some(NO_DIRECTORY.to_owned()),
            _ if refused(&change).is_some() => refused(&change).map(str::to_owned),
            Some(reason) if quarantine == QuarantineMode::On => {
                let edit = if is_stale { None } else { scanner.harmless_part(&change) };
                let rest = edit.as_ref().map_or("", |_| "; the rest of the edit was applied");
                choice.edits.extend(edit);
                Some(format!("{reason}{rest}"))
            }
            _ if is_denied(&change) => Some(DENIED.to_owned()),
            _ if is_stale => Some(STALE.to_owned()),
            _ => closed.reason(&change).map(str::to_owned),
        };
        if let Some(reason) = reason {
            // Where only the mode of a directory is somebody else's, what is in it can be written all the same.
            if is_directory(&change.after) && !(is_stale && is_directory(&change.before)) {
                missing.insert(change.place.clone());
            }
            choice.quarantined.push((change, reason));
            continue;
        }
        choice.notes.extend(
            autoloaded.map(|reason| format!("`{}` was written to the workspace although {reason}.", change.path)),
        );
        if scanner.is_of_git(&change.place) {
            choice.of_git.insert(change.place.clone());
        }
        choice.chosen.push(change);
    }
    let stays = choice.quarantined.iter().filter(|(change, _)| change.before.is_some());
    let stays: Vec<WorkspacePath> = stays.map(|(change, _)| change.place.clone()).collect();
    choice.keep_directories_of(stays.iter());
    choice
}

/// For some directories, policy protects the name but not everything in it; those can be created and removed with their
/// contents.
fn is_denied(change: &Change, hidden_paths: &dyn HiddenPaths) -> bool {
    let access = if change.after.is_some() { Access::Write } else { Access::Delete };
    let within = WorkspacePath { root: change.place.root, path: format!("{}/anything", change.place.path) };
    let guards_all = !is_directory(&change.after) || hidden_paths.hides(access, &within);
    hidden_paths.hides(access, &change.place) && guards_all
}

impl ChangeSelection {
    /// What isn't applied, and why.
    pub(crate) fn would_be_quarantined(&self) -> Vec<QuarantinedPath> {
        let rejected = self.quarantined.iter().map(|(change, reason)| (&change.path, reason));
        let unreadable = self.unreadable.iter().map(|unreadable| (&unreadable.path, &unreadable.reason));
        let quarantined =
            |(path, reason): (&String, &String)| QuarantinedPath { path: path.clone(), reason: reason.clone() };
        rejected.chain(unreadable).map(quarantined).collect()
    }

    /// A directory in which something stays can't be removed.
    fn keep_directories_of<'p>(&mut self, stays: impl Iterator<Item = &'p WorkspacePath>) {
        let stays: Vec<&WorkspacePath> = stays.collect();
        let is_needed = |change: &Change| {
            let goes = is_directory(&change.before) && !is_directory(&change.after);
            goes && stays.iter().any(|place| change.place.covers(place))
        };
        let needed = self.chosen.extract_if(.., |change| is_needed(change));
        // What the command put in the directory's place is its work, which isn't lost.
        let (removed, replaced): (Vec<Change>, Vec<Change>) = needed.partition(|change| change.after.is_none());
        self.needed.extend(removed);
        self.quarantined.extend(replaced.into_iter().map(|change| (change, IN_USE.to_owned())));
    }
}

/// Directories of the workspace in which the user who runs Toolgate can change nothing, with the reason.
#[derive(Default)]
struct ClosedDirectories(BTreeMap<WorkspacePath, String>);

impl ClosedDirectories {
    fn new(differences: &[Difference], files: &dyn Files) -> Self {
        let directories: BTreeSet<WorkspacePath> =
            differences.iter().map(|difference| directory_of(&difference.change.place)).collect();
        let closed = directories.into_iter().filter_map(|directory| {
            let reason = files.is_closed(&directory)?;
            Some((directory, reason))
        });
        Self(closed.collect())
    }

    fn reason(&self, change: &Change) -> Option<&str> {
        self.0.get(&directory_of(&change.place)).map(String::as_str)
    }
}

fn is_directory(state: &Option<FileState>) -> bool {
    state.as_ref().is_some_and(FileState::is_directory)
}

fn parent(place: &WorkspacePath) -> Option<WorkspacePath> {
    let (parent, _) = place.path.rsplit_once('/')?;
    Some(WorkspacePath { root: place.root, path: parent.to_owned() })
}

/// The directory that holds a path; the root for what is directly in it.
fn directory_of(place: &WorkspacePath) -> WorkspacePath {
    parent(place).unwrap_or_else(|| WorkspacePath { root: place.root, path: String::new() })
}
