//! Which of a command's changes are put in place, and which are kept aside, with the reason.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolgate_contract::{Access, Apart, Change, Difference, FileState, Files, Place, Veil};
use toolgate_policy::Quarantine;

use super::quarantine::Lookout;

/// What was decided.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    /// To be put in place, in the order of their places.
    pub(crate) chosen: Vec<Change>,
    /// To be kept aside, and why.
    pub(crate) aside: Vec<(Change, String)>,
    /// Folders that would go, if all went that is in them.
    pub(crate) needed: Vec<Change>,
    /// What there is to tell of what is put in place.
    pub(crate) notes: Vec<String>,
    /// What of it git obeys, whatever the repository is called, and is harmless.
    pub(crate) of_git: BTreeSet<Place>,
}

/// Decides about what commands change.
pub(crate) struct Chooser {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) veil: Arc<dyn Veil>,
    /// What becomes of what others would obey.
    pub(crate) quarantine: Quarantine,
}

impl Chooser {
    /// Decides about every difference.
    pub(crate) fn choose(&self, differences: Vec<Difference>, apart: &dyn Apart) -> Choice {
        let made = |place: &Place, most: u64| apart.content(place, most);
        let lookout = Lookout::new(differences.iter().map(|one| &one.change), &made, self.files.as_ref());
        choose(differences, self.veil.as_ref(), &lookout, self.quarantine)
    }

    /// The same about changes that are in place already: what is to be kept aside has to be put back.
    pub(crate) fn choose_in_place(&self, changes: Vec<Change>) -> Choice {
        let made = |place: &Place, most: u64| self.files.content(place, most);
        let lookout = Lookout::new(changes.iter(), &made, self.files.as_ref());
        let differences = changes.iter().cloned().map(|change| Difference { change, is_stale: false }).collect();
        choose(differences, self.veil.as_ref(), &lookout, self.quarantine)
    }

    /// What a person should know of changes that are in place and stay there.
    pub(crate) fn remarks(&self, changes: &[Change]) -> Vec<String> {
        let made = |place: &Place, most: u64| self.files.content(place, most);
        let lookout = Lookout::new(changes.iter(), &made, self.files.as_ref());
        let remark = |change: &Change| {
            let obeyed = if self.quarantine == Quarantine::Off { None } else { lookout.obeyed(change) };
            let is_denied = is_denied(change, self.veil.as_ref()) && !lookout.is_harmless_of_git(change);
            let reason = obeyed.or_else(|| is_denied.then(|| DENIED.to_owned()))?;
            Some(format!("`{}` was changed where it is: {reason}.", change.path))
        };
        changes.iter().filter_map(remark).collect()
    }
}

const STALE: &str = "somebody else changed it while the command ran; their version stays";
const DENIED: &str = "policy lets no tool change this place";
const NO_FOLDER: &str = "the folder that it is in was not put in place";

/// They come in the order of their places, so a folder comes before what is in it.
fn choose(differences: Vec<Difference>, veil: &dyn Veil, lookout: &Lookout<'_>, quarantine: Quarantine) -> Choice {
    let mut choice = Choice::default();
    let mut missing: BTreeSet<Place> = BTreeSet::new();
    for Difference { change, is_stale } in differences {
        let obeyed = if quarantine == Quarantine::Off { None } else { lookout.obeyed(&change) };
        let reason = match &obeyed {
            _ if parent(&change.place).is_some_and(|parent| missing.contains(&parent)) => Some(NO_FOLDER.to_owned()),
            Some(reason) if quarantine == Quarantine::On => Some(reason.clone()),
            _ if is_denied(&change, veil) && !lookout.is_harmless_of_git(&change) => Some(DENIED.to_owned()),
            _ if is_stale => Some(STALE.to_owned()),
            _ => None,
        };
        if let Some(reason) = reason {
            if is_folder(&change.after) {
                missing.insert(change.place.clone());
            }
            choice.aside.push((change, reason));
            continue;
        }
        choice.notes.extend(obeyed.map(|reason| format!("`{}` was put in place: {reason}.", change.path)));
        if lookout.is_of_git(&change.place) {
            choice.of_git.insert(change.place.clone());
        }
        choice.chosen.push(change);
    }
    keep_folders_that_are_needed(&mut choice);
    choice
}

/// Of some folders policy guards the name and not all that is in them; those may come and go with what is in them.
fn is_denied(change: &Change, veil: &dyn Veil) -> bool {
    let access = if change.after.is_some() { Access::Write } else { Access::Delete };
    let within = Place { root: change.place.root, path: format!("{}/anything", change.place.path) };
    let guards_all = !is_folder(&change.after) || veil.hides(access, &within);
    veil.hides(access, &change.place) && guards_all
}

/// A folder from which something isn't removed can't be removed either.
fn keep_folders_that_are_needed(choice: &mut Choice) {
    let stays: Vec<Place> = choice
        .aside
        .iter()
        .filter(|(change, _)| change.before.is_some())
        .map(|(change, _)| change.place.clone())
        .collect();
    let is_needed = |change: &Change| {
        let goes = is_folder(&change.before) && !is_folder(&change.after);
        goes && stays.iter().any(|place| change.place.covers(place))
    };
    choice.needed = choice.chosen.extract_if(.., |change| is_needed(change)).collect();
}

fn is_folder(state: &Option<FileState>) -> bool {
    state.as_ref().is_some_and(FileState::is_folder)
}

fn parent(place: &Place) -> Option<Place> {
    let (parent, _) = place.path.rsplit_once('/')?;
    Some(Place { root: place.root, path: parent.to_owned() })
}
