//! Which of a command's changes are put in place, and which are kept aside, with the reason.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolgate_contract::QuarantineMode;
use toolgate_contract::{Access, Change, Difference, FileState, Files, HiddenPaths, StagedChanges, WorkspacePath};

use super::autoloaded::AutoloadScanner;

/// What was decided.
#[derive(Debug, Default)]
pub(crate) struct ChangeSelection {
    /// To be put in place, in the order of their places.
    pub(crate) chosen: Vec<Change>,
    /// To be kept aside, and why.
    pub(crate) aside: Vec<(Change, String)>,
    /// Directories that would go, if all went that is in them.
    pub(crate) needed: Vec<Change>,
    /// What there is to tell of what is put in place.
    pub(crate) notes: Vec<String>,
    /// What of it git obeys, whatever the repository is called, and is harmless.
    pub(crate) of_git: BTreeSet<WorkspacePath>,
}

/// Decides about what commands change.
pub(crate) struct ChangeSelector {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) hidden_paths: Arc<dyn HiddenPaths>,
    /// What becomes of what others would obey.
    pub(crate) quarantine: QuarantineMode,
}

impl ChangeSelector {
    /// Decides about every difference.
    pub(crate) fn choose(&self, differences: Vec<Difference>, staged: &dyn StagedChanges) -> ChangeSelection {
        let made = |place: &WorkspacePath, most: u64| staged.content(place, most);
        let scanner = AutoloadScanner::new(differences.iter().map(|one| &one.change), &made, self.files.as_ref());
        choose(differences, self.hidden_paths.as_ref(), &scanner, self.quarantine)
    }

    /// The same about changes that are in place already: what is to be kept aside has to be put back.
    pub(crate) fn select_in_place(&self, changes: Vec<Change>) -> ChangeSelection {
        let made = |place: &WorkspacePath, most: u64| self.files.content(place, most);
        let scanner = AutoloadScanner::new(changes.iter(), &made, self.files.as_ref());
        let differences = changes.iter().cloned().map(|change| Difference { change, is_stale: false }).collect();
        choose(differences, self.hidden_paths.as_ref(), &scanner, self.quarantine)
    }

    /// What a person should know of changes that are in place and stay there.
    pub(crate) fn remarks(&self, changes: &[Change]) -> Vec<String> {
        let made = |place: &WorkspacePath, most: u64| self.files.content(place, most);
        let scanner = AutoloadScanner::new(changes.iter(), &made, self.files.as_ref());
        let remark = |change: &Change| {
            let autoloaded = if self.quarantine == QuarantineMode::Off { None } else { scanner.autoloaded(change) };
            let is_denied = is_denied(change, self.hidden_paths.as_ref()) && !scanner.is_harmless_git_file(change);
            let reason = autoloaded.or_else(|| is_denied.then(|| DENIED.to_owned()))?;
            Some(format!("`{}` was changed where it is: {reason}.", change.path))
        };
        changes.iter().filter_map(remark).collect()
    }
}

const STALE: &str = "somebody else changed it while the command ran; their version stays";
const DENIED: &str = "policy lets no tool change this place";
const NO_DIRECTORY: &str = "the directory that it is in was not put in place";

/// They come in the order of their places, so a directory comes before what is in it.
fn choose(
    differences: Vec<Difference>,
    hidden_paths: &dyn HiddenPaths,
    scanner: &AutoloadScanner<'_>,
    quarantine: QuarantineMode,
) -> ChangeSelection {
    let mut choice = ChangeSelection::default();
    let mut missing: BTreeSet<WorkspacePath> = BTreeSet::new();
    for Difference { change, is_stale } in differences {
        let autoloaded = if quarantine == QuarantineMode::Off { None } else { scanner.autoloaded(&change) };
        let reason = match &autoloaded {
            _ if parent(&change.place).is_some_and(|parent| missing.contains(&parent)) => Some(NO_DIRECTORY.to_owned()),
            Some(reason) if quarantine == QuarantineMode::On => Some(reason.clone()),
            _ if is_denied(&change, hidden_paths) && !scanner.is_harmless_git_file(&change) => Some(DENIED.to_owned()),
            _ if is_stale => Some(STALE.to_owned()),
            _ => None,
        };
        if let Some(reason) = reason {
            if is_directory(&change.after) {
                missing.insert(change.place.clone());
            }
            choice.aside.push((change, reason));
            continue;
        }
        choice.notes.extend(autoloaded.map(|reason| format!("`{}` was put in place: {reason}.", change.path)));
        if scanner.is_of_git(&change.place) {
            choice.of_git.insert(change.place.clone());
        }
        choice.chosen.push(change);
    }
    keep_directories_that_are_needed(&mut choice);
    choice
}

/// Of some directories policy guards the name and not all that is in them; those may come and go with what is in them.
fn is_denied(change: &Change, hidden_paths: &dyn HiddenPaths) -> bool {
    let access = if change.after.is_some() { Access::Write } else { Access::Delete };
    let within = WorkspacePath { root: change.place.root, path: format!("{}/anything", change.place.path) };
    let guards_all = !is_directory(&change.after) || hidden_paths.hides(access, &within);
    hidden_paths.hides(access, &change.place) && guards_all
}

/// A directory from which something isn't removed can't be removed either.
fn keep_directories_that_are_needed(choice: &mut ChangeSelection) {
    let stays: Vec<WorkspacePath> = choice
        .aside
        .iter()
        .filter(|(change, _)| change.before.is_some())
        .map(|(change, _)| change.place.clone())
        .collect();
    let is_needed = |change: &Change| {
        let goes = is_directory(&change.before) && !is_directory(&change.after);
        goes && stays.iter().any(|place| change.place.covers(place))
    };
    choice.needed = choice.chosen.extract_if(.., |change| is_needed(change)).collect();
}

fn is_directory(state: &Option<FileState>) -> bool {
    state.as_ref().is_some_and(FileState::is_directory)
}

fn parent(place: &WorkspacePath) -> Option<WorkspacePath> {
    let (parent, _) = place.path.rsplit_once('/')?;
    Some(WorkspacePath { root: place.root, path: parent.to_owned() })
}
