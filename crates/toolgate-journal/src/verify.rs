//! Checks whether a journal is exactly what was written, and if not, which line shows it first.

use std::io::BufRead;
use std::path::Path;

use crate::chain::{FileRange, Tip, hash_of, nth_line, opening, walk};
use crate::directory::{DirectoryHandle, FileLock};
use crate::head::Head;
use crate::journal::NAME;
use crate::signing_key::LineSigner;
use crate::{JournalError, JournalFault, ListedRun, SigningKey};

/// The result of [`verify`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// Every line is as it was written.
    Ok {
        /// How many there are.
        events: u64,
        /// Whether a signature covers the journal. Without one, anyone with write access could have rewritten it
        /// completely.
        signed: bool,
        /// Whether another line was begun but not finished, by a process that was killed while writing it. No caller
        /// was told that it is recorded.
        unfinished: bool,
    },
    /// Something is wrong.
    Bad {
        /// The first invalid line; none when the fault is in the head.
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

/// Verifies the journal in a run's directory, and its signature if there is a key. Safe while another process appends
/// to it.
pub fn verify(run_dir: &Path, key: Option<&SigningKey>) -> Result<Verification, JournalError> {
    // The run's id is part of what is signed, so it has to be found even for `.`.
    let path = run_dir.canonicalize().map_err(JournalError::io(format!("`{}`", run_dir.display())))?;
    let run = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let directory = DirectoryHandle::at(&path)?;
    let Some(events) = directory.existing(NAME)? else {
        // A missing journal with an existing head was cut off at its first line.
        return match Head::find(&directory)? {
            Ok(head) if head.seq > 0 => Ok(JournalFault::CutOff { line: 1, expected: head.seq }.into()),
            _ => Err(JournalError::NoSuchRun { run }),
        };
    };
    let (head, size) = {
        let _lock = FileLock::shared(&events).map_err(|error| directory.error("couldn't be locked", NAME, error))?;
        let size = events.metadata().map_err(|error| directory.error("couldn't be inspected", NAME, error))?.len();
        (Head::find(&directory)?, size)
    };
    let head = head.and_then(|head| key.map_or(Ok(()), |key| head.check(&run, key)).map(|()| head));
    // Bytes before `size` never change again, so the walk doesn't need the lock.
    let signer = key.map(|key| LineSigner { run: &run, key });
    let walked = walk(FileRange::new(&events, 0, size), Tip::START, head.as_ref().ok(), signer)
        .map_err(|error| directory.error("couldn't be read", NAME, error))?;
    let sound = |unfinished| Verification::Ok { events: walked.tip.seq, signed: key.is_some(), unfinished };
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

/// Verifies the journal in a run's directory, and that it still has what the list of runs has seen of it.
pub fn verify_listed(
    run_dir: &Path,
    key: Option<&SigningKey>,
    listed: Option<&ListedRun>,
) -> Result<Verification, JournalError> {
    let found = verify(run_dir, key)?;
    let (Verification::Ok { events, .. }, Some(listed)) = (found, listed) else { return Ok(found) };
    if events < listed.events {
        return Ok(JournalFault::OlderCopy { line: events + 1, expected: listed.events }.into());
    }
    let directory = DirectoryHandle::at(run_dir)?;
    let Some(file) = directory.existing(NAME)? else { return Ok(found) };
    let line = nth_line(file, listed.events).map_err(|error| directory.error("couldn't be read", NAME, error))?;
    // The chain up to that line is intact, so its hash stands for everything before it.
    let is_as_listed = line.is_some_and(|text| hash_of(&text) == listed.hash);
    Ok(if is_as_listed { found } else { JournalFault::NotAsListed { line: listed.events }.into() })
}

/// Whether this is the beginning of the line with that number, and nothing else.
fn is_begun(mut rest: impl BufRead, line: u64) -> Result<bool, JournalError> {
    let mut text = Vec::new();
    rest.read_until(b'\n', &mut text).map_err(JournalError::io("The end of the journal couldn't be read"))?;
    let opening = opening(line);
    let begun = opening.len().min(text.len());
    Ok(text.last() != Some(&b'\n') && text[..begun] == opening[..begun])
}
