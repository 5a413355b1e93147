//! What commands made and the workspace didn't get: because policy denies the place, because somebody else changed it
//! meanwhile, or because git or an editor would obey it. It waits in `.toolgate/quarantine/<call>/` for a person to look at.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::AtFlags;
use serde::{Deserialize, Serialize};

use crate::folder::{Folder, call_name};
use crate::{Durability, JournalError};

const LIST: &str = "held.json";

/// Everything that waits, by call.
pub struct Quarantine {
    folder: Folder,
}

/// One thing that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Where it would have been.
    pub path: String,
    /// Why it isn't there.
    pub reason: String,
    /// What it is: a mode as a change has it; none if the command removed what is there.
    pub mode: Option<u32>,
    /// Its name in the folder of the call; none for what has no content.
    pub name: Option<String>,
}

/// Puts something under a name in a folder.
pub type Hand<'a> = dyn Fn(BorrowedFd<'_>, &str) -> std::io::Result<()> + 'a;

/// The folder of one call, and what is in it.
pub struct Room {
    folder: Folder,
    held: Vec<Held>,
    /// Names of what was let go since the last note.
    gone: Vec<String>,
}

impl Quarantine {
    pub(crate) fn new(folder: Folder) -> Self {
        Self { folder }
    }

    /// Makes room for what a call's command made.
    pub fn room(&self, call: &str) -> Result<Room, JournalError> {
        Room::of(self.folder.make(&call_name(call))?)
    }

    /// The calls whose commands made something that waits, sorted.
    pub fn calls(&self) -> Result<Vec<String>, JournalError> {
        let entries = std::fs::read_dir(self.folder.path());
        let entries = entries.map_err(|error| self.folder.error("couldn't be listed", ".", error))?;
        let mut calls: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        calls.sort();
        Ok(calls)
    }

    /// What a call's command made that waits; nothing if there is no such call.
    pub fn held(&self, call: &str) -> Result<Vec<Held>, JournalError> {
        let Ok(room) = self.folder.open(&call_name(call)) else { return Ok(Vec::new()) };
        Ok(Room::of(room)?.held)
    }

    /// Lets go of one thing, and of the call's folder with the last of them.
    pub fn take_out(&self, call: &str, taken: &Held) -> Result<(), JournalError> {
        let mut room = self.room(call)?;
        room.let_go(&taken.path);
        room.note()?;
        if room.held.is_empty() {
            room.folder.remove(LIST)?;
            let _ = rustix::fs::unlinkat(self.folder.fd(), call_name(call), AtFlags::REMOVEDIR);
        }
        Ok(())
    }
}

impl Room {
    fn of(folder: Folder) -> Result<Self, JournalError> {
        let held = match folder.existing(LIST)? {
            Some(file) => serde_json::from_reader(file).map_err(JournalError::Encode)?,
            None => Vec::new(),
        };
        Ok(Self { folder, held, gone: Vec::new() })
    }

    /// Takes one thing in, which `hand` puts under a name in the folder; what was there of the same path goes. It counts from
    /// the next [`Room::note`] on.
    pub fn take_in(
        &mut self,
        path: &str,
        reason: &str,
        mode: Option<u32>,
        hand: Option<&Hand<'_>>,
    ) -> Result<(), JournalError> {
        self.let_go(path);
        let names = self.held.iter().filter_map(|held| held.name.as_ref()).chain(&self.gone);
        let last = names.filter_map(|name| name.parse::<u64>().ok()).max();
        let name = hand.map(|hand| {
            let name = last.map_or(0, |last| last + 1).to_string();
            // Somebody may have been killed before they noted what they put there.
            self.folder.remove(&name)?;
            let handed = hand(self.folder.fd().as_fd(), &name);
            handed.map_err(|error| self.folder.error("couldn't be filled", &name, error))?;
            Ok(name)
        });
        let (path, reason, name) = (path.to_owned(), reason.to_owned(), name.transpose()?);
        self.held.push(Held { path, reason, mode, name });
        Ok(())
    }

    /// Lets go of what there is of a path, with the next [`Room::note`].
    pub fn let_go(&mut self, path: &str) {
        let gone = self.held.extract_if(.., |held| held.path == path);
        self.gone.extend(gone.filter_map(|held| held.name));
    }

    /// Notes what is in it, then removes what no longer is.
    pub fn note(&mut self) -> Result<(), JournalError> {
        let text = serde_json::to_vec_pretty(&self.held).map_err(JournalError::Encode)?;
        self.folder.put(LIST, &text, Durability::Os)?;
        std::mem::take(&mut self.gone).iter().try_for_each(|name| self.folder.remove(name))
    }

    /// What a link that is kept aside holds.
    pub fn link(&self, name: &str) -> Result<Vec<u8>, JournalError> {
        let link = rustix::fs::readlinkat(self.folder.fd(), name, Vec::new());
        Ok(link.map_err(|errno| self.folder.error("couldn't be read", name, errno.into()))?.into_bytes())
    }

    /// Opens one thing that has content.
    pub fn open(&self, held: &Held) -> Result<Option<File>, JournalError> {
        held.name.as_deref().map_or(Ok(None), |name| self.folder.existing(name))
    }
}
