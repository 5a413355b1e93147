//! What a command did straight to the workspace is there already. What wouldn't have been put in place is put back, as a change
//! of the same call, and kept aside for a person to look at.

use toolgate_contract::{Change, Changes, FileState, KeptAside, Settled, ToolError};

use super::{Choice, MOST_ASIDE, NOT_TEXT, Settler, counted, lost, name_aside};
use crate::gate::straight::Straight;

const BESIDE: &str = "It worked straight on the workspace, so what others changed there meanwhile counts as its own.";

impl Settler {
    /// What a command did straight to the workspace. What wouldn't have been put in place is put back, unless somebody
    /// granted it to do what it likes.
    pub(super) fn tell(&self, straight: &Straight) -> Result<Settled, ToolError> {
        let (changes, unspeakable) = straight.end()?;
        let workshop = self.changer.workshop()?;
        let has_changed = !changes.is_empty();
        let mut choice = match straight.is_open {
            true => Choice { notes: self.chooser.remarks(&changes), chosen: changes, ..Choice::default() },
            false => self.chooser.choose_in_place(changes),
        };
        let kept = self.put_back(&mut choice)?;
        workshop.keep_small(&choice.chosen, self.changer.files.as_ref());
        let mut settled = counted(&choice.chosen);
        settled.notes.extend(has_changed.then(|| BESIDE.to_owned()));
        settled.notes.extend(lost(workshop.beyond_quota(&choice.chosen)));
        let unreached = unspeakable.iter().map(|path| format!("Undo doesn't cover `{path}`: {NOT_TEXT}."));
        settled.notes.extend(choice.notes.iter().cloned().chain(unreached).take(MOST_ASIDE));
        name_aside(&mut settled, kept);
        Ok(settled)
    }

    /// Puts back what a command changed in place and shouldn't have, and keeps what it made of it aside. What can't be put
    /// back counts as chosen, and is told.
    fn put_back(&self, choice: &mut Choice) -> Result<Vec<KeptAside>, ToolError> {
        let workshop = self.changer.workshop()?;
        let stays = |(change, _): &mut (Change, String)| !workshop.can_go_back(change);
        let mut stuck: Vec<(Change, String)> = choice.aside.extract_if(.., stays).collect();
        let back = |with_new_folders: bool| -> Vec<Change> {
            let changes = choice.aside.iter().map(|(change, _)| change).chain(&choice.needed);
            changes.filter(|change| with_new_folders || !is_new_folder(change)).map(Change::reversed).collect()
        };
        let arrange = |changes: Vec<Change>| match changes.is_empty() {
            true => Ok(()),
            false => self.changer.arrange(changes, workshop.contents()),
        };
        // A new folder may hold what no tool can name; then the folder alone stays.
        if let Err(error) = arrange(back(true)).or_else(|_| arrange(back(false))) {
            choice.notes.push(format!("Not everything could be put back: {error}"));
            stuck.append(&mut choice.aside);
        }
        let kept = workshop.set_aside(&self.changer.origin.tool_call_id, workshop.contents(), choice);
        for (change, reason) in stuck {
            choice.notes.push(format!("`{}` was changed where it is: {reason}.", change.path));
            choice.chosen.push(change);
        }
        kept
    }
}

fn is_new_folder(change: &Change) -> bool {
    change.before.is_none() && change.after.as_ref().is_some_and(FileState::is_folder)
}
