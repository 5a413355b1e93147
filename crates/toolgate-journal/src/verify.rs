//! Tells whether a journal is what was written, and if not, which line shows it first (C-31).

use std::path::Path;

use crate::chain::{Span, Tip, walk};
use crate::folder::{Folder, Lock};
use crate::head::Head;
use crate::journal::NAME;
use crate::seal::LineSeal;
use crate::{Fault, JournalError, SealKey};

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// Every line is as it was written.
    Ok {
        /// How many there are.
        events: u64,
        /// Whether a seal vouches for it. Without one, a person with access to the files could have rewritten them all.
        sealed: bool,
    },
    /// Something is wrong.
    Bad {
        /// The first bad line; none when the fault lies in the head.
        line: Option<u64>,
        /// What is wrong with it.
        fault: Fault,
    },
}

impl From<Fault> for Verification {
    fn from(fault: Fault) -> Self {
        Self::Bad { line: fault.line(), fault }
    }
}

/// Checks the journal in a run's folder, and its seal if there is a key. Safe beside a program that appends to it.
pub fn verify(run_dir: &Path, key: Option<&SealKey>) -> Result<Verification, JournalError> {
    // The run's id is part of what is sealed, so it has to be found even for `.`.
    let path = run_dir.canonicalize().map_err(JournalError::io(format!("`{}`", run_dir.display())))?;
    let run = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = Folder::at(&path)?;
    let Some(events) = folder.existing(NAME)? else {
        // A journal that is gone though its head is here was cut off at its first line.
        return match Head::find(&folder)? {
            Ok(head) if head.seq > 0 => Ok(Fault::CutOff { line: 1, expected: head.seq }.into()),
            _ => Err(JournalError::NoSuchRun { run }),
        };
    };
    let (head, size) = {
        let _lock = Lock::shared(&events).map_err(|error| folder.error("couldn't be locked", NAME, error))?;
        let size = events.metadata().map_err(|error| folder.error("couldn't be looked at", NAME, error))?.len();
        (Head::find(&folder)?, size)
    };
    let head = head.and_then(|head| key.map_or(Ok(()), |key| head.check(&run, key)).map(|()| head));
    // What lies before `size` never changes again, so the lock isn't needed for the walk.
    let seal = key.map(|key| LineSeal { run: &run, key });
    let walked = walk(Span::new(&events, 0, size), Tip::START, head.as_ref().ok(), seal)
        .map_err(|error| folder.error("couldn't be read", NAME, error))?;
    Ok(match (walked.fault, head) {
        (Some(fault), _) | (None, Err(fault)) => fault.into(),
        (None, Ok(_)) => Verification::Ok { events: walked.tip.seq, sealed: key.is_some() },
    })
}
