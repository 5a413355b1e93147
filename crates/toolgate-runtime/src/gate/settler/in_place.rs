//! What a command did straight to the workspace is there already: it goes on record, and what wouldn't have been put in place
//! is put back, as a second change of the same call.

use toolgate_contract::{Change, Settled, ToolError};
use toolgate_journal::Changing;

use super::{MOST_ASIDE, NOT_TEXT, Settler, counted, lost, name_aside};
use crate::gate::put_back::{Planted, PutBack};
use crate::gate::straight::Straight;

const BESIDE: &str = "It worked straight on the workspace, so what others changed there meanwhile counts as its own.";

const UNCOVERED: &str = "was replaced while it ran. From then on it could read or change what is there now.";

impl Settler {
    /// Tells what a command did straight to the workspace.
    pub(super) fn tell(&self, straight: &Straight) -> Result<Settled, ToolError> {
        straight.end(|turn, changes, unspeakable| {
            let (has_changed, workshop) = (!changes.is_empty(), self.changer.workshop()?);
            let PutBack { stays, back, kept, mut notes } = self.put_back(turn, straight.is_open, changes)?;
            self.changer.took_back(&back)?;
            workshop.keep_small(&stays, self.changer.files.as_ref());
            notes.extend(unspeakable.iter().map(|path| format!("Undo doesn't cover `{path}`: {NOT_TEXT}.")));
            let more = notes.len().saturating_sub(MOST_ASIDE);
            notes.truncate(MOST_ASIDE);
            notes.extend((more > 0).then(|| format!("There are {more} more remarks like these.")));
            let mut settled = counted(&stays);
            settled.notes.extend(has_changed.then(|| BESIDE.to_owned()));
            settled.notes.extend(lost(workshop.beyond_quota(&stays)));
            let uncovered = straight.uncovered();
            settled.notes.extend(uncovered.iter().take(MOST_ASIDE).map(|path| format!("`{path}` {UNCOVERED}")));
            settled.notes.extend(notes);
            name_aside(&mut settled, kept);
            Ok(settled)
        })
    }

    /// Who was granted to work with no walls may leave what they like; it is named.
    fn put_back(&self, turn: &Changing, is_open: bool, changes: Vec<Change>) -> Result<PutBack, ToolError> {
        if is_open {
            let notes = self.chooser.remarks(&changes);
            return Ok(PutBack { stays: changes, notes, ..PutBack::default() });
        }
        let (workshop, chooser) = (self.changer.workshop()?.as_ref(), self.chooser.as_ref());
        let id = self.changer.clock.id().simple().to_string();
        Planted { workshop, chooser, call: &self.changer.origin.tool_call_id, id: &id }.put_back(turn, changes)
    }
}
