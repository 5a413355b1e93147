//! Reading along while a run is written, by whatever process: each look gives the whole lines that came since the last.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::folder::Folder;
use crate::journal::NAME;
use crate::{JournalError, Recorded};

/// How much is read at a time.
const PIECE: usize = 256 * 1024;

/// Reads a run's events as they come.
pub struct Follower {
    events: File,
    /// What has been read, up to the end of a line.
    at: u64,
}

/// Follows a run from its first event on.
pub fn follow(run_dir: &Path) -> Result<Follower, JournalError> {
    match Folder::at(run_dir)?.existing(NAME)? {
        Some(events) => Ok(Follower { events, at: 0 }),
        None => Err(JournalError::NoSuchRun { run: run_dir.display().to_string() }),
    }
}

impl Follower {
    /// The events that came since the last look, in order. A line that isn't whole yet comes with a later look; one that
    /// can't be read is left out, since `verify` tells what is wrong with it.
    pub fn look(&mut self) -> io::Result<Vec<Recorded>> {
        let mut bytes = Vec::new();
        loop {
            let start = bytes.len();
            bytes.resize(start + PIECE, 0);
            let count = self.events.read_at(&mut bytes[start..], self.at + start as u64)?;
            bytes.truncate(start + count);
            if count == 0 {
                break;
            }
        }
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        self.at += whole as u64;
        let lines = bytes[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        Ok(lines.filter_map(|line| Recorded::parse(line).ok()).collect())
    }
}
