//! Reads runs back: the events of one run from its file, and the list of runs.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::Deserialize;
use toolgate_contract::Event;
use uuid::Uuid;

use crate::directory::{DirectoryHandle, check_id};
use crate::head::Head;
use crate::journal::NAME;
use crate::{IndexedPart, JournalError};

/// An event with its number in the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEvent {
    /// Its number, from 1.
    pub seq: u64,
    /// What happened.
    pub event: Event,
    /// The exact line in the file.
    pub line: String,
}

#[derive(Deserialize)]
struct EventLine {
    seq: u64,
    #[serde(flatten)]
    event: Event,
}

impl RecordedEvent {
    /// Reads one line.
    pub(crate) fn parse(line: &[u8]) -> io::Result<Self> {
        let invalid = |fault: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidData, fault.to_string());
        let text = std::str::from_utf8(line).map_err(|fault| invalid(&fault))?;
        let EventLine { seq, event } = serde_json::from_str(text).map_err(|fault| invalid(&fault))?;
        Ok(Self { seq, event, line: text.to_owned() })
    }
}

/// The events of a run, in order. A torn last line is skipped. A line that can't be parsed is an error, and reading
/// continues after it.
pub struct EventReader {
    input: BufReader<File>,
    line: u64,
    broken: bool,
}

/// Opens a run's events for reading.
pub fn read_events(run_dir: &Path) -> Result<EventReader, JournalError> {
    let input = BufReader::with_capacity(64 * 1024, open_journal(run_dir)?);
    Ok(EventReader { input, line: 0, broken: false })
}

/// Opens a run's file for reading.
pub(crate) fn open_journal(run_dir: &Path) -> Result<File, JournalError> {
    let missing = || JournalError::NoSuchRun { run: run_dir.display().to_string() };
    let directory = DirectoryHandle::at(run_dir).map_err(|error| match error {
        JournalError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => missing(),
        other => other,
    })?;
    directory.existing(NAME)?.ok_or_else(missing)
}

impl EventReader {
    /// Skips the part that a store has, without parsing it. Where a line ends at that part's length, nothing of it is read;
    /// otherwise the file isn't the one that was indexed, or has lines that are no events, and its lines are counted.
    pub fn after(mut self, indexed: IndexedPart) -> io::Result<Self> {
        let mut byte = [0_u8; 1];
        let before = indexed.bytes.checked_sub(1);
        if before.is_some_and(|at| self.input.get_ref().read_exact_at(&mut byte, at).is_ok()) && byte == [b'\n'] {
            self.input.seek(SeekFrom::Start(indexed.bytes))?;
            self.line = indexed.seq;
        }
        while self.line < indexed.seq && self.input.skip_until(b'\n')? > 0 {
            self.line += 1;
        }
        Ok(self)
    }

    /// The events of one call. Lines without the call's id aren't parsed, so that one call of a long run is found fast.
    pub fn of_call(mut self, tool_call_id: &str) -> io::Result<Vec<RecordedEvent>> {
        let written = serde_json::to_string(tool_call_id).map_err(io::Error::other)?;
        let finder = memchr::memmem::Finder::new(written.as_bytes());
        let (mut events, mut line) = (Vec::new(), Vec::new());
        while self.input.read_until(b'\n', &mut line)? > 0 {
            let candidate = finder.find(&line).and_then(|_| RecordedEvent::parse(line.strip_suffix(b"\n")?).ok());
            events.extend(candidate.filter(|found| found.event.tool_call_id.as_deref() == Some(tool_call_id)));
            line.clear();
        }
        Ok(events)
    }

    fn read(&mut self) -> io::Result<Option<RecordedEvent>> {
        let mut line = Vec::new();
        self.input.read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Ok(None);
        }
        self.line += 1;
        match RecordedEvent::parse(&line) {
            Ok(recorded) => Ok(Some(recorded)),
            Err(_) if self.input.fill_buf()?.is_empty() => Ok(None),
            Err(error) => Err(io::Error::new(error.kind(), format!("line {} is not an event: {error}", self.line))),
        }
    }
}

impl Iterator for EventReader {
    type Item = io::Result<RecordedEvent>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken {
            return None;
        }
        let read = self.read();
        // After an invalid line comes the next one; a read error of the disk would repeat for ever.
        self.broken = read.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::InvalidData);
        read.transpose()
    }
}

/// The ids of the runs in a state directory, sorted; time-based ids come oldest first. A directory whose process was
/// killed before the run's first event isn't listed.
pub fn list_runs(state_dir: &Path) -> Result<Vec<String>, JournalError> {
    let mut begun = Vec::new();
    for run in run_directories(state_dir)? {
        if has_begun(state_dir, &run)? {
            begun.push(run);
        }
    }
    Ok(begun)
}

/// The newest runs, newest first: `limit` of those whose ids tell when they began, and all others. However many runs there
/// are, no more than these are opened.
pub fn newest_runs(state_dir: &Path, limit: usize) -> Result<Vec<String>, JournalError> {
    let mut newest = Vec::new();
    let mut wanted = limit;
    for run in run_directories(state_dir)?.into_iter().rev() {
        match tells_when_it_began(&run) {
            false => newest.push(run),
            true if wanted > 0 && has_begun(state_dir, &run)? => {
                wanted -= 1;
                newest.push(run);
            }
            true => {}
        }
    }
    Ok(newest)
}

/// Whether a run's id is one that Toolgate made: those sort by time.
fn tells_when_it_began(run: &str) -> bool {
    let id = run.strip_prefix("run_").and_then(|id| Uuid::try_parse(id).ok());
    id.is_some_and(|id| id.get_version_num() == 7)
}

/// The names of the directories of runs, sorted. None is opened, so one of them may have no event yet.
pub fn run_directories(state_dir: &Path) -> Result<Vec<String>, JournalError> {
    let runs = state_dir.join("runs");
    let failed = || JournalError::io(format!("`{}` couldn't be read", runs.display()));
    let entries = match std::fs::read_dir(&runs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error)),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed())?;
        let name = entry.file_name().into_string().unwrap_or_default();
        if check_id("run", &name).is_ok() && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            ids.push(name);
        }
    }
    ids.sort();
    Ok(ids)
}

/// Whether a run's directory contains events, or a head that says it should. The head is written before the journal.
fn has_begun(state_dir: &Path, run: &str) -> Result<bool, JournalError> {
    let directory = DirectoryHandle::at(&state_dir.join("runs").join(run))?;
    let events = directory.existing(NAME)?;
    let size = match &events {
        Some(file) => file.metadata().map_err(|error| directory.error("couldn't be inspected", NAME, error))?.len(),
        None => 0,
    };
    Ok(size > 0 || Head::find(&directory)?.map_or(events.is_some(), |head| head.seq > 0))
}
