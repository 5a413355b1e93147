//! Follows a run's events while they are written, by this or another process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::event_reader::open_journal;
use crate::{JournalError, RecordedEvent};

/// How many bytes are read at a time, unless a single line is longer.
const CHUNK: usize = 256 * 1024;

/// A reading position in a run's journal.
pub struct Follower {
    file: File,
    /// Where the next line begins.
    offset: u64,
    /// Events up to this number are skipped.
    after: u64,
}

impl Follower {
    /// Starts after event number `after`; 0 is the beginning.
    pub fn open(run_dir: &Path, after: u64) -> Result<Self, JournalError> {
        Ok(Self { file: open_journal(run_dir)?, offset: 0, after })
    }

    /// Starts at the present end: only what is recorded from now on is returned.
    pub fn at_end(run_dir: &Path) -> Result<Self, JournalError> {
        let mut follower = Self::open(run_dir, 0)?;
        let unreadable = || JournalError::io("The record couldn't be read");
        let mut end = follower.file.metadata().map_err(unreadable())?.len();
        // A line that is being written at this moment is returned once it is complete.
        let mut byte = [0_u8; 1];
        while end > 0 && follower.file.read_at(&mut byte, end - 1).map_err(unreadable())? == 1 && byte[0] != b'\n' {
            end -= 1;
        }
        follower.offset = end;
        Ok(follower)
    }

    /// The next events, a batch at a time; empty when there is nothing new. An unfinished line is returned once it is
    /// complete.
    pub fn more(&mut self) -> io::Result<Vec<RecordedEvent>> {
        loop {
            let lines = self.lines()?;
            let Some(end) = last_newline(&lines) else { return Ok(Vec::new()) };
            let complete = lines[..end].split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
            // A line that can't be parsed yields no event; `verify` reports what is wrong with it.
            let events =
                complete.filter_map(|line| RecordedEvent::parse(line).ok()).filter(|event| event.seq > self.after);
            let events: Vec<RecordedEvent> = events.collect();
            self.offset += end as u64 + 1;
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }

    /// Bytes from the current offset on, up to at least one complete line if there is one. A follower asks far more often
    /// than there is something, so no more memory is taken than there are bytes.
    fn lines(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let start = bytes.len();
            let left = self.file.metadata()?.len().saturating_sub(self.offset + start as u64);
            bytes.resize(start + left.min(CHUNK as u64) as usize, 0);
            let count = self.file.read_at(&mut bytes[start..], self.offset + start as u64)?;
            bytes.truncate(start + count);
            if count == 0 || bytes[start..].contains(&b'\n') {
                return Ok(bytes);
            }
        }
    }
}

fn last_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().rposition(|&byte| byte == b'\n')
}
