//! Tells whether a journal is what was written, and if not, which line shows it first (C-31).

use std::io::BufRead;
use std::path::Path;

use crate::chain::{FileRange, Tip, opening, walk};
use crate::directory::{DirectoryHandle, FileLock};
use crate::head::Head;
use crate::journal::NAME;
use crate::signing_key::LineSigner;
use crate::{JournalError, JournalFault, SigningKey};

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// Every line is as it was written.
    Ok {
        /// How many there are.
        events: u64,
        /// Whether a seal vouches for it. Without one, a person with access to the files could have rewritten them all.
        sealed: bool,
        /// Whether a further line was begun and never finished, by a program that was killed while writing it. Nobody was told
        /// that it is on record.
        unfinished: bool,
    },
    /// Something is wrong.
    Bad {
        /// The first bad line; none when the fault lies in the head.
        line: Option<u64>,
        /// What is wrong with it.
        fault: JournalFault,
    },
}

impl From<JournalFault> for Verification {
    fn from(fault: JournalFault) -> Self {
        Self::Bad { line: fault.line(), fault }
    }
}

/// Checks the journal in a run's directory, and its seal if there is a key. Safe beside a program that appends to it.
pub fn verify(run_dir: &Path, key: Option<&SigningKey>) -> Result<Verification, JournalError> {
    // The run's id is part of what is sealed, so it has to be found even for `.`.
    let path = run_dir.canonicalize().map_err(JournalError::io(format!("`{}`", run_dir.display())))?;
    let run = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let directory = DirectoryHandle::at(&path)?;
    let Some(events) = directory.existing(NAME)? else {
        // A journal that is gone though its head is here was cut off at its first line.
        return match Head::find(&directory)? {
            Ok(head) if head.seq > 0 => Ok(JournalFault::CutOff { line: 1, expected: head.seq }.into()),
            _ => Err(JournalError::NoSuchRun { run }),
        };
    };
    let (head, size) = {
        let _lock = FileLock::shared(&events).map_err(|error| directory.error("couldn't be locked", NAME, error))?;
        let size = events.metadata().map_err(|error| directory.error("couldn't be looked at", NAME, error))?.len();
        (Head::find(&directory)?, size)
    };
    let head = head.and_then(|head| key.map_or(Ok(()), |key| head.check(&run, key)).map(|()| head));
    // What lies before `size` never changes again, so the lock isn't needed for the walk.
    let seal = key.map(|key| LineSigner { run: &run, key });
    let walked = walk(FileRange::new(&events, 0, size), Tip::START, head.as_ref().ok(), seal)
        .map_err(|error| directory.error("couldn't be read", NAME, error))?;
    let sound = |unfinished| Verification::Ok { events: walked.tip.seq, sealed: key.is_some(), unfinished };
    Ok(match (walked.fault, head) {
        (Some(JournalFault::Torn { line }), Ok(head))
            if head.seq == walked.tip.seq && is_begun(FileRange::new(&events, walked.tip.size, size), line)? =>
        {
            sound(true)
        }
        (Some(fault), _) | (None, Err(fault)) => fault.into(),
        (None, Ok(_)) => sound(false),
    })
}

/// Whether this is the beginning of the line with that number, and nothing else.
fn is_begun(mut rest: impl BufRead, line: u64) -> Result<bool, JournalError> {
    let mut text = Vec::new();
    rest.read_until(b'\n', &mut text).map_err(JournalError::io("The end of the journal couldn't be read"))?;
    let opening = opening(line);
    let begun = opening.len().min(text.len());
    Ok(text.last() != Some(&b'\n') && text[..begun] == opening[..begun])
}
