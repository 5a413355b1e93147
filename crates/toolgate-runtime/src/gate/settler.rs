//! What becomes of a command's changes: each is judged by its place, and what may be is put in place as one change, recorded
//! and undoable like any other. The rest is kept aside and named; nothing else is lost with it.

mod choice;
mod quarantine;

use std::sync::Arc;

use toolgate_contract::{
    Apart, Change, Changes, Differ, Difference, ErrorCode, KeptAside, Landing, Settled, ToolError,
};
use toolgate_journal::Held;
use toolgate_policy::Quarantine;

use self::choice::{Choice, choose};
use self::quarantine::Lookout;
use super::changer::Changer;
use crate::commit::diff_of;

/// Paths that a reply names at the most.
const MOST_PATHS: usize = 200;
/// Things kept aside that a reply names at the most.
const MOST_ASIDE: usize = 50;
/// How often it is looked again, when somebody else changes files at the same moment.
const ATTEMPTS: usize = 3;

/// Settles what commands of one call changed.
pub(super) struct Settler {
    pub(super) changer: Arc<Changer>,
    /// Whether changes are kept apart until the command has ended.
    pub(super) overlay: bool,
    /// What becomes of what others would obey.
    pub(super) quarantine: Quarantine,
    /// Shows changes.
    pub(super) differ: Option<Arc<dyn Differ>>,
}

impl Settler {
    /// Whether changes wait for the end of their command.
    pub(super) fn keeps_apart(&self) -> bool {
        self.overlay && self.changer.workshop.is_some()
    }

    /// Settles what a command changed. A fault is told with what is known: the command has run.
    pub(super) fn settle(&self, apart: Option<Box<dyn Apart>>, landing: Landing) -> Settled {
        let settled = match (apart, landing) {
            (Some(apart), Landing::WhenCommitted) => self.keep(apart),
            (Some(apart), _) => self.land(apart.as_ref()),
            (None, _) => Ok(Settled { notes: vec![STRAIGHT.into()], ..Settled::default() }),
        };
        settled.unwrap_or_else(|error| Settled {
            notes: vec![format!("Nothing of what it changed was put in place. {error}")],
            ..Settled::default()
        })
    }

    fn land(&self, apart: &dyn Apart) -> Result<Settled, ToolError> {
        let (files, workshop) = (self.changer.files.as_ref(), self.changer.workshop()?);
        let mut attempt = 0;
        let (choice, unspeakable) = loop {
            attempt += 1;
            let differences = apart.differences(files)?;
            let choice = self.choose(differences.all, apart);
            if choice.chosen.is_empty() {
                break (choice, differences.unspeakable);
            }
            match self.changer.arrange(choice.chosen.clone(), apart) {
                Ok(()) => break (choice, differences.unspeakable),
                Err(error) if error.code == ErrorCode::StaleFile && attempt < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        };
        apart.touch(files);
        workshop.keep_small(&choice.chosen, files);
        let mut settled = counted(&choice.chosen);
        settled.notes.extend(choice.notes.iter().take(MOST_ASIDE).cloned());
        let lost = workshop.beyond_quota(&choice.chosen);
        if lost > 0 {
            settled.notes.push(format!(
                "{lost} of these can't be taken back: what they were is more than the quota for undo (`undo.quota_bytes`) keeps."
            ));
        }
        let aside = unspeakable.into_iter().map(|path| KeptAside { path, reason: NOT_TEXT.into() });
        let kept = self.set_aside(apart, &choice);
        settled.notes.extend(kept.as_ref().err().map(ToString::to_string));
        settled.kept_aside = aside.chain(kept.unwrap_or_default()).collect();
        settled.more_kept_aside = settled.kept_aside.len().saturating_sub(MOST_ASIDE);
        settled.kept_aside.truncate(MOST_ASIDE);
        Ok(settled)
    }

    /// Moves what isn't put in place to where a person can look at it.
    fn set_aside(&self, apart: &dyn Apart, choice: &Choice) -> Result<Vec<KeptAside>, ToolError> {
        if choice.aside.is_empty() {
            return Ok(Vec::new());
        }
        let room = self.changer.workshop()?.quarantine()?.room(&self.changer.origin.tool_call_id)?;
        let mut held = room.held()?;
        for (change, reason) in &choice.aside {
            let has_content = change.after.as_ref().is_some_and(|after| !after.is_folder());
            let name = has_content.then(|| held.len().to_string());
            if let Some(name) = &name {
                apart
                    .set_aside(&change.place, room.fd(), name)
                    .map_err(|error| ToolError::io(&format!("`{}` can't be kept aside", change.path), &error))?;
            }
            let mode = change.after.as_ref().map(|after| after.mode);
            held.push(Held { path: change.path.clone(), reason: reason.clone(), mode, name });
        }
        room.note(&held)?;
        Ok(choice.aside.iter().cloned().map(aside).collect())
    }

    /// Keeps what a rehearsed command would change, and shows it.
    fn keep(&self, mut apart: Box<dyn Apart>) -> Result<Settled, ToolError> {
        let files = self.changer.files.as_ref();
        let differences = apart.differences(files)?.all;
        let changes: Vec<Change> = differences.iter().map(|difference| difference.change.clone()).collect();
        let mut settled = counted(&changes);
        settled.diff = self.differ.as_deref().map(|differ| diff_of(&changes, apart.as_ref(), files, differ));
        settled.rehearsal = Some(apart.keep(Some(self.changer.run()))?);
        let choice = self.choose(differences, apart.as_ref());
        settled.kept_aside = choice.aside.into_iter().map(aside).take(MOST_ASIDE).collect();
        Ok(settled)
    }

    fn choose(&self, differences: Vec<Difference>, apart: &dyn Apart) -> Choice {
        let lookout = Lookout::new(&differences, apart, self.changer.files.as_ref());
        choose(differences, self.changer.veil.as_ref(), &lookout, self.quarantine)
    }
}

fn aside((change, reason): (Change, String)) -> KeptAside {
    KeptAside { path: change.path, reason }
}

const STRAIGHT: &str = "It worked straight on the workspace, so undo doesn't cover what it changed.";
const NOT_TEXT: &str = "its name isn't text, so no tool could reach it";

/// How many there are of each kind, and the first of them by name.
fn counted(changes: &[Change]) -> Settled {
    let mut settled = Settled::default();
    for change in changes {
        let (count, sign) = match (&change.before, &change.after) {
            (None, _) => (&mut settled.created, '+'),
            (Some(_), Some(_)) => (&mut settled.changed, '~'),
            (Some(_), None) => (&mut settled.deleted, '-'),
        };
        *count += 1;
        if settled.paths.len() < MOST_PATHS {
            settled.paths.push(format!("{sign}{}", change.path));
        }
    }
    settled
}
