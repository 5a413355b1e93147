//! One change of files at a time, across processes, and none half done. Whoever changes files holds the lock on
//! `changing`; while several files are on their way, that file says what was there before. Whoever finds it filled
//! knows that the one before was killed, and puts everything back first.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};
use toolgate_contract::Change;

use crate::JournalError;
use crate::directory::DirectoryHandle;

const NAME: &str = "changing";
const WHAT: &str = "the note of an unfinished change";

/// What is about to change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeIntent {
    /// Tells this change from others; temporary names are made of it.
    pub id: String,
    /// Each file's before and after.
    pub changes: Vec<Change>,
}

/// The one who may change files now. Others wait until this is dropped.
pub struct ChangeLock {
    file: File,
}

impl ChangeLock {
    /// Waits for its turn.
    pub(crate) fn begin(directory: &DirectoryHandle) -> Result<Self, JournalError> {
        let file = directory.file(NAME, OFlags::RDWR | OFlags::CREATE)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| directory.error("couldn't be locked", NAME, error.into()))?;
        Ok(Self { file })
    }

    /// What somebody who was killed left half done.
    pub fn unfinished(&self) -> Result<Option<ChangeIntent>, JournalError> {
        let length = self.file.metadata().map_err(JournalError::io(WHAT))?.len();
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, 0).map_err(JournalError::io(WHAT))?;
        // Half a note means that it was killed while writing it, before the first file changed.
        Ok(serde_json::from_slice(&bytes).ok())
    }

    /// Notes what is about to change, before it does. Several files can be left half done by a power cut, so then the
    /// note has to be on disk first; a single one is renamed in one step.
    pub fn note(&self, note: &ChangeIntent) -> Result<(), JournalError> {
        let bytes = serde_json::to_vec(note).map_err(JournalError::Encode)?;
        self.write(&bytes)?;
        match note.changes.len() {
            0 | 1 => Ok(()),
            _ => self.file.sync_all().map_err(JournalError::io(WHAT)),
        }
    }

    /// It has happened, or has been put back.
    pub fn done(&self) -> Result<(), JournalError> {
        self.write(b"")
    }

    fn write(&self, bytes: &[u8]) -> Result<(), JournalError> {
        self.file.set_len(0).and_then(|()| self.file.write_all_at(bytes, 0)).map_err(JournalError::io(WHAT))
    }
}
