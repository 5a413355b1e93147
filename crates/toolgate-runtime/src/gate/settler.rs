//! What becomes of a command's changes: each is judged by its place, and what may be is put in place as one change, recorded
//! and undoable like any other. The rest is kept aside and named; nothing else is lost with it. What a command did straight
//! to the workspace is there already: it is recorded, and the rest put back.

mod choice;
mod in_place;
mod quarantine;

use std::sync::Arc;

pub(crate) use self::choice::{Choice, Chooser};
pub(super) use self::quarantine::as_git_sees;
use super::changer::Changer;
use super::straight::Straight;
use super::workshop::aside;
use crate::commit::diff_of;
use toolgate_contract::{Apart, Change, Changes, Differ, ErrorCode, KeptAside, Landing, Settled, ToolError};

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
    /// Says which changes are put in place.
    pub(super) chooser: Arc<Chooser>,
    /// The roots that commands can change.
    pub(super) roots: Vec<usize>,
    /// Shows changes.
    pub(super) differ: Option<Arc<dyn Differ>>,
}

impl Settler {
    /// Whether changes wait for the end of their command.
    pub(super) fn keeps_apart(&self) -> bool {
        self.overlay && self.changer.workshop.is_some()
    }

    /// Settles what a command changed. A fault is told with what is known, since the command has run; but where no walls kept
    /// it from anything in the workspace, not to know what it did is a failure.
    pub(super) fn settle(
        &self,
        apart: Option<Box<dyn Apart>>,
        straight: Option<Arc<Straight>>,
        landing: Landing,
    ) -> Result<Settled, ToolError> {
        let (settled, failed) = match (apart, straight, landing) {
            (Some(apart), _, Landing::WhenCommitted) => (self.keep(apart), NOT_IN_PLACE),
            (Some(apart), ..) => (self.land(apart.as_ref()), NOT_IN_PLACE),
            (None, Some(straight), _) if straight.has_walls || straight.is_open => {
                (self.tell(&straight), NOT_ON_RECORD)
            }
            (None, Some(straight), _) => return self.tell(&straight),
            (None, None, _) => (Ok(noted(STRAIGHT.into())), ""),
        };
        Ok(settled.unwrap_or_else(|error| noted(format!("{failed} {error}"))))
    }

    fn land(&self, apart: &dyn Apart) -> Result<Settled, ToolError> {
        let (files, workshop) = (self.changer.files.as_ref(), self.changer.workshop()?);
        let mut attempt = 0;
        let (choice, unspeakable) = loop {
            attempt += 1;
            let differences = apart.differences(files)?;
            let choice = self.chooser.choose(differences.all, apart);
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
        settled.notes.extend(lost(workshop.beyond_quota(&choice.chosen)));
        let aside = unspeakable.into_iter().map(|path| KeptAside { path, reason: NOT_TEXT.into() });
        let kept = workshop.set_aside(&self.changer.origin.tool_call_id, apart, &choice);
        settled.notes.extend(kept.as_ref().err().map(ToString::to_string));
        name_aside(&mut settled, aside.chain(kept.unwrap_or_default()).collect());
        Ok(settled)
    }

    /// Keeps what a rehearsed command would change, and shows it.
    fn keep(&self, mut apart: Box<dyn Apart>) -> Result<Settled, ToolError> {
        let files = self.changer.files.as_ref();
        let differences = apart.differences(files)?.all;
        let changes: Vec<Change> = differences.iter().map(|difference| difference.change.clone()).collect();
        let mut settled = counted(&changes);
        settled.diff = self.differ.as_deref().map(|differ| diff_of(&changes, apart.as_ref(), files, differ));
        settled.rehearsal = Some(apart.keep(Some(self.changer.run()))?);
        let choice = self.chooser.choose(differences, apart.as_ref());
        name_aside(&mut settled, choice.aside.into_iter().map(aside).collect());
        Ok(settled)
    }
}

const STRAIGHT: &str = "It worked straight on the workspace, so undo doesn't cover what it changed.";
const NOT_IN_PLACE: &str = "Nothing of what it changed was put in place.";
const NOT_ON_RECORD: &str = "What it changed couldn't be recorded, so undo doesn't cover it.";
const NOT_TEXT: &str = "its name isn't text, so no tool could reach it";

fn noted(note: String) -> Settled {
    Settled { notes: vec![note], ..Settled::default() }
}

fn lost(count: usize) -> Option<String> {
    let quota = "what they were is more than the quota for undo (`undo.quota_bytes`) keeps";
    (count > 0).then(|| format!("{count} of these can't be taken back: {quota}."))
}

/// Names what was kept aside, as far as a reply does.
fn name_aside(settled: &mut Settled, mut kept: Vec<KeptAside>) {
    settled.more_kept_aside = kept.len().saturating_sub(MOST_ASIDE);
    kept.truncate(MOST_ASIDE);
    settled.kept_aside = kept;
}

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
