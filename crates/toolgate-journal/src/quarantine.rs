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

/// The folder of one call.
pub struct Room {
    folder: Folder,
}

impl Quarantine {
    pub(crate) fn new(folder: Folder) -> Self {
        Self { folder }
    }

    /// Makes room for what a call's command made.
    pub fn room(&self, call: &str) -> Result<Room, JournalError> {
        Ok(Room { folder: self.folder.make(&call_name(call))? })
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
        Room { folder: room }.held()
    }

    /// Lets go of one thing, and of the call's folder with the last of them.
    pub fn take_out(&self, call: &str, taken: &Held) -> Result<(), JournalError> {
        let room = self.room(call)?;
        let rest: Vec<Held> = room.held()?.into_iter().filter(|held| held != taken).collect();
        room.note(&rest)?;
        taken.name.as_deref().map_or(Ok(()), |name| room.folder.remove(name))?;
        if rest.is_empty() {
            room.folder.remove(LIST)?;
            let _ = rustix::fs::unlinkat(self.folder.fd(), call_name(call), AtFlags::REMOVEDIR);
        }
        Ok(())
    }
}

impl Room {
    /// Its descriptor: things are moved into it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.folder.fd().as_fd()
    }

    /// Notes what is in it.
    pub fn note(&self, held: &[Held]) -> Result<(), JournalError> {
        let text = serde_json::to_vec_pretty(held).map_err(JournalError::Encode)?;
        self.folder.put(LIST, &text, Durability::Os)
    }

    /// What is in it.
    pub fn held(&self) -> Result<Vec<Held>, JournalError> {
        let Some(file) = self.folder.existing(LIST)? else { return Ok(Vec::new()) };
        serde_json::from_reader(file).map_err(JournalError::Encode)
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
