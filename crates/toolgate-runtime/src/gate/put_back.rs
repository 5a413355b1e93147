//! Putting back what a command did straight to the workspace and shouldn't have: it is kept aside first, then the place gets
//! back what was there. Each place is looked at before and afterwards, so whoever goes on after a kill does what is left to
//! do, and one place that can't be put back keeps no other from it.

use std::os::fd::BorrowedFd;

use toolgate_contract::{Change, FileState, KeptAside, Place, ToolError};
use toolgate_journal::{ChangeNote, Changing, Room};

use super::settler::{Choice, Chooser};
use super::workshop::{Workshop, take_in};

/// What one call's command did straight to the workspace.
pub(super) struct Planted<'a> {
    pub(super) workshop: &'a Workshop,
    pub(super) chooser: &'a Chooser,
    pub(super) call: &'a str,
    /// Tells this change from others.
    pub(super) id: &'a str,
}

/// What became of it.
#[derive(Default)]
pub(super) struct PutBack {
    /// What stays as the command made it.
    pub(super) stays: Vec<Change>,
    /// The changes that put the rest back; they have to go on record.
    pub(super) back: Vec<Change>,
    /// What was kept aside of it.
    pub(super) kept: Vec<KeptAside>,
    /// What there is to tell, the worst first.
    pub(super) notes: Vec<String>,
}

/// A change that has to go, why, and the change that takes it back.
struct Way {
    change: Change,
    reason: String,
    back: Change,
}

impl Planted<'_> {
    /// Puts back what wouldn't have been put in place.
    pub(super) fn put_back(&self, turn: &Changing, changes: Vec<Change>) -> Result<PutBack, ToolError> {
        let Choice { chosen, aside, needed, notes, .. } = self.chooser.choose_in_place(changes);
        let mut done = PutBack { stays: chosen, ..PutBack::default() };
        let ways = self.ways(aside, &mut done);
        let folders: Vec<Way> =
            self.ways(needed.into_iter().map(|change| (change, String::new())).collect(), &mut done);
        if !ways.is_empty() {
            let mut room = self.workshop.room(self.call)?;
            let ways = self.take_in(&mut room, ways, &mut done)?;
            let back: Vec<Change> = folders.iter().chain(&ways).map(|way| way.back.clone()).collect();
            self.arrange(turn, &back)?;
            self.look_again(&mut room, ways, folders, &mut done)?;
        }
        done.notes.extend(notes);
        Ok(done)
    }

    /// Those that can be taken back. What somebody else has made of a place since is theirs.
    fn ways(&self, aside: Vec<(Change, String)>, done: &mut PutBack) -> Vec<Way> {
        let mut ways = Vec::new();
        for (change, reason) in aside {
            match self.workshop.way_back(&change, self.chooser.files.as_ref()) {
                Ok(Some(back)) => ways.push(Way { change, reason, back }),
                Ok(None) if self.workshop.can_go_back(&change) => done.stays.push(change),
                Ok(None) => done.stay(change, &reason, "what was there is more than the quota for undo keeps"),
                Err(error) => done.stay(change, &reason, &error.message),
            }
        }
        ways
    }

    /// Keeps aside what is there. What can't be kept stays: nothing is lost.
    fn take_in(&self, room: &mut Room, ways: Vec<Way>, done: &mut PutBack) -> Result<Vec<Way>, ToolError> {
        let mut taken = Vec::new();
        for way in ways {
            let hand =
                |folder: BorrowedFd<'_>, name: &str| self.chooser.files.name_again(&way.change.place, folder, name);
            match take_in(room, &way.change, &way.reason, &hand) {
                Ok(()) => taken.push(way),
                Err(error) => done.stay(way.change, &way.reason, &error.message),
            }
        }
        room.note()?;
        Ok(taken)
    }

    /// All at once; where that fails, one by one.
    fn arrange(&self, turn: &Changing, back: &[Change]) -> Result<(), ToolError> {
        let (files, contents) = (self.chooser.files.as_ref(), self.workshop.contents());
        let places: Vec<Place> = back.iter().map(|change| change.place.clone()).collect();
        let beside = self.workshop.watched();
        beside.iter().try_for_each(|straight| straight.catch_up(Some(&places)))?;
        turn.note(&ChangeNote { id: self.id.to_owned(), changes: back.to_vec() })?;
        if files.arrange(back, contents, self.id).is_err() {
            files.clear_temporary(&places, self.id)?;
            let (going, coming): (Vec<&Change>, Vec<&Change>) = back.iter().partition(|change| change.after.is_none());
            // What is in a folder goes before the folder, and comes after it.
            for change in going.into_iter().rev().chain(coming) {
                if files.arrange(std::slice::from_ref(change), contents, self.id).is_err() {
                    files.clear_temporary(std::slice::from_ref(&change.place), self.id)?;
                }
            }
        }
        turn.done()?;
        beside.iter().try_for_each(|straight| straight.moved_on(&places))
    }

    /// What is back, and what isn't.
    fn look_again(
        &self,
        room: &mut Room,
        ways: Vec<Way>,
        folders: Vec<Way>,
        done: &mut PutBack,
    ) -> Result<(), ToolError> {
        let is_back = |way: &Way| {
            let now = self.chooser.files.node(&way.back.place, true).map(|node| node.map(|node| node.state));
            now.is_ok_and(|now| FileState::same(now.as_ref(), way.back.after.as_ref()))
        };
        for way in ways {
            if is_back(&way) {
                done.kept.push(KeptAside { path: way.change.path, reason: way.reason });
                done.back.push(way.back);
            } else {
                room.let_go(&way.change.path);
                done.stay(way.change, &way.reason, "it couldn't be put back");
            }
        }
        done.back.extend(folders.into_iter().filter(is_back).map(|way| way.back));
        Ok(room.note()?)
    }
}

impl PutBack {
    /// A change that should go, and stays.
    fn stay(&mut self, change: Change, reason: &str, why: &str) {
        self.notes.push(format!("`{}` stays as it was changed, as {why}. {reason}.", change.path));
        self.stays.push(change);
    }
}
