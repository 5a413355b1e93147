//! What commands made and the workspace didn't get: because policy denies the place, because somebody else changed it
//! meanwhile, or because git or an editor would obey it. It waits in `.toolgate/quarantine/<call>/` for a person to look at.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::AtFlags;
use serde::{Deserialize, Serialize};

use crate::JournalError;
use crate::directory::{DirectoryHandle, call_name};
use toolgate_contract::Durability;

const LIST: &str = "held.json";

/// Everything that waits, by call.
pub struct Quarantine {
    directory: DirectoryHandle,
}

/// One thing that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantinedChange {
    /// Where it would have been.
    pub path: String,
    /// Why it isn't there.
    pub reason: String,
    /// What it is: a mode as a change has it; none if the command removed what is there.
    pub mode: Option<u32>,
    /// Its name in the directory of the call; none for what has no content.
    pub name: Option<String>,
}

/// Puts something under a name in a directory.
pub type PlaceFile<'a> = dyn Fn(BorrowedFd<'_>, &str) -> std::io::Result<()> + 'a;

/// The directory of one call, and what is in it.
pub struct CallQuarantine {
    directory: DirectoryHandle,
    held: Vec<QuarantinedChange>,
    /// Names of what was let go since the last note.
    gone: Vec<String>,
}

impl Quarantine {
    pub(crate) fn new(directory: DirectoryHandle) -> Self {
        Self { directory }
    }

    /// Makes room for what a call's command made.
    pub fn room(&self, call: &str) -> Result<CallQuarantine, JournalError> {
        CallQuarantine::of(self.directory.make(&call_name(call))?)
    }

    /// The calls whose commands made something that waits, sorted.
    pub fn calls(&self) -> Result<Vec<String>, JournalError> {
        let entries = std::fs::read_dir(self.directory.path());
        let entries = entries.map_err(|error| self.directory.error("couldn't be listed", ".", error))?;
        let mut calls: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        calls.sort();
        Ok(calls)
    }

    /// What a call's command made that waits; nothing if there is no such call.
    pub fn held(&self, call: &str) -> Result<Vec<QuarantinedChange>, JournalError> {
        let Ok(room) = self.directory.open(&call_name(call)) else { return Ok(Vec::new()) };
        Ok(CallQuarantine::of(room)?.held)
    }

    /// Lets go of one thing, and of the call's directory with the last of them.
    pub fn take_out(&self, call: &str, taken: &QuarantinedChange) -> Result<(), JournalError> {
        let mut room = self.room(call)?;
        room.let_go(&taken.path);
        room.note()?;
        if room.held.is_empty() {
            room.directory.remove(LIST)?;
            let _ = rustix::fs::unlinkat(self.directory.fd(), call_name(call), AtFlags::REMOVEDIR);
        }
        Ok(())
    }
}

impl CallQuarantine {
    fn of(directory: DirectoryHandle) -> Result<Self, JournalError> {
        let held = match directory.existing(LIST)? {
            Some(file) => serde_json::from_reader(file).map_err(JournalError::Encode)?,
            None => Vec::new(),
        };
        Ok(Self { directory, held, gone: Vec::new() })
    }

    /// Takes one thing in, which `hand` puts under a name in the directory; what was there of the same path goes. It counts from
    /// the next [`CallQuarantine::note`] on.
    pub fn take_in(
        &mut self,
        path: &str,
        reason: &str,
        mode: Option<u32>,
        hand: Option<&PlaceFile<'_>>,
    ) -> Result<(), JournalError> {
        self.let_go(path);
        let names = self.held.iter().filter_map(|held| held.name.as_ref()).chain(&self.gone);
        let last = names.filter_map(|name| name.parse::<u64>().ok()).max();
        let name = hand.map(|hand| {
            let name = last.map_or(0, |last| last + 1).to_string();
            // Somebody may have been killed before they noted what they put there.
            self.directory.remove(&name)?;
            let handed = hand(self.directory.fd().as_fd(), &name);
            handed.map_err(|error| self.directory.error("couldn't be filled", &name, error))?;
            Ok(name)
        });
        let (path, reason, name) = (path.to_owned(), reason.to_owned(), name.transpose()?);
        self.held.push(QuarantinedChange { path, reason, mode, name });
        Ok(())
    }

    /// Lets go of what there is of a path, with the next [`CallQuarantine::note`].
    pub fn let_go(&mut self, path: &str) {
        let gone = self.held.extract_if(.., |held| held.path == path);
        self.gone.extend(gone.filter_map(|held| held.name));
    }

    /// Notes what is in it, then removes what no longer is.
    pub fn note(&mut self) -> Result<(), JournalError> {
        let text = serde_json::to_vec_pretty(&self.held).map_err(JournalError::Encode)?;
        self.directory.put(LIST, &text, Durability::Os)?;
        std::mem::take(&mut self.gone).iter().try_for_each(|name| self.directory.remove(name))
    }

    /// What a link that is kept aside holds.
    pub fn link(&self, name: &str) -> Result<Vec<u8>, JournalError> {
        let link = rustix::fs::readlinkat(self.directory.fd(), name, Vec::new());
        Ok(link.map_err(|errno| self.directory.error("couldn't be read", name, errno.into()))?.into_bytes())
    }

    /// Opens one thing that has content.
    pub fn open(&self, held: &QuarantinedChange) -> Result<Option<File>, JournalError> {
        held.name.as_deref().map_or(Ok(None), |name| self.directory.existing(name))
    }
}
