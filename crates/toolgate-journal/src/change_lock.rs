//! One change of files at a time, across processes, and none left half done. A process that changes files locks the
//! file `changing`; while several files are being replaced, that file lists their previous state. A process that finds
//! it filled knows that the previous one was killed, and reverts the unfinished change first.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};
use toolgate_contract::{Change, EventOrigin};

use crate::JournalError;
use crate::directory::DirectoryHandle;

const NAME: &str = "changing";
const WHAT: &str = "the record of an unfinished change";

/// The files that are about to change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeIntent {
    /// Identifies this change; temporary file names contain it.
    pub id: String,
    /// Each file's before and after.
    pub changes: Vec<Change>,
    /// The call that the journal has this change of; none if it isn't recorded yet.
    #[serde(default)]
    pub origin: Option<EventOrigin>,
}

/// The right to change files. Other processes wait until this is dropped.
pub struct ChangeLock {
    file: File,
}

impl ChangeLock {
    /// Waits for the lock.
    pub(crate) fn begin(directory: &DirectoryHandle) -> Result<Self, JournalError> {
        let file = directory.file(NAME, OFlags::RDWR | OFlags::CREATE)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| directory.error("couldn't be locked", NAME, error.into()))?;
        Ok(Self { file })
    }

    /// The change that a killed process left half done.
    pub fn unfinished(&self) -> Result<Option<ChangeIntent>, JournalError> {
        let length = self.file.metadata().map_err(JournalError::io(WHAT))?.len();
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, 0).map_err(JournalError::io(WHAT))?;
        // A partial record means that the process was killed while writing it, before the first file changed.
        Ok(serde_json::from_slice(&bytes).ok())
    }

    /// Records what is about to change. A power failure can leave several files half done, so then the record is synced
    /// to disk first; a single file is replaced by one atomic rename.
    pub fn note(&self, note: &ChangeIntent) -> Result<(), JournalError> {
        let bytes = serde_json::to_vec(note).map_err(JournalError::Encode)?;
        self.write(&bytes)?;
        match note.changes.len() {
            0 | 1 => Ok(()),
            _ => self.file.sync_all().map_err(JournalError::io(WHAT)),
        }
    }

    /// Clears the record: the change is complete, or reverted.
    pub fn done(&self) -> Result<(), JournalError> {
        self.write(b"")
    }

    fn write(&self, bytes: &[u8]) -> Result<(), JournalError> {
        self.file.set_len(0).and_then(|()| self.file.write_all_at(bytes, 0)).map_err(JournalError::io(WHAT))
    }
}
