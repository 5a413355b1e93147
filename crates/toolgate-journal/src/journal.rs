//! The hash-chained record of a run's events. An append is one `write` under a lock that is held for just that append,
//! so several processes can share a journal. Whatever a crash leaves behind is either accepted, moved byte for byte
//! into a file of its own, or refused; it is never silently repaired.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::retry_on_intr;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use toolgate_contract::{Clock, Durability, Event, EventPayload};

use crate::chain::{FileRange, Tip, walk};
use crate::directory::{DirectoryHandle, FileLock, append_once};
use crate::head::{self, Head};
use crate::signing_key::LineSigner;
use crate::{Indexer, JournalError, JournalFault, RunOptions, SigningKey, hex};

/// The file's name.
pub(crate) const NAME: &str = "events.jsonl";

/// The capacity that the buffer keeps between appends, so that one very large event doesn't hold its memory for the
/// rest of the run.
const BUFFER: usize = 64 * 1024;

/// The journal of one run, open for appending.
pub struct Journal {
    run: Arc<str>,
    directory: Arc<DirectoryHandle>,
    events: File,
    head: File,
    durability: Durability,
    key: Option<SigningKey>,
    clock: Arc<dyn Clock>,
    indexer: Option<Arc<Indexer>>,
    state: Mutex<AppendState>,
}

/// The end of the file as last seen, and the buffer that lines are built in.
struct AppendState {
    tip: Tip,
    buffer: Vec<u8>,
    /// The ids of calls that were made in this run.
    calls: HashSet<String>,
    /// Parts of the file that others wrote, in which the ids of calls weren't looked for yet.
    unread: Vec<Range<u64>>,
}

impl Journal {
    /// Creates an empty journal. The head is written first: a journal without a head was tampered with.
    pub(crate) fn create(
        directory: Arc<DirectoryHandle>,
        run: &str,
        options: &RunOptions,
    ) -> Result<Self, JournalError> {
        let head = directory.file(head::NAME, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        Head::new(run, &Tip::START, options.key.as_ref())
            .write(&head)
            .map_err(|error| directory.error("couldn't be written", head::NAME, error))?;
        if options.durability == Durability::Sync {
            head.sync_all().map_err(|error| directory.error("couldn't be synced", head::NAME, error))?;
        }
        let events = directory.file(NAME, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL)?;
        Ok(Self::with(directory, events, head, run, options))
    }

    /// Opens a journal, verifies it completely, and recovers from a crash.
    pub(crate) fn open(directory: Arc<DirectoryHandle>, run: &str, options: &RunOptions) -> Result<Self, JournalError> {
        let head = directory.file(head::NAME, OFlags::RDWR).map_err(|error| match error {
            JournalError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                JournalError::Damaged { run: run.to_owned(), fault: JournalFault::HeadMissing }
            }
            other => other,
        })?;
        let events = directory.file(NAME, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
        let journal = Self::with(directory, events, head, run, options);
        {
            let mut state = journal.state.lock();
            let _lock = journal.lock()?;
            let size = journal.size()?;
            journal.catch_up(&mut state, size)?;
        }
        Ok(journal)
    }

    fn with(directory: Arc<DirectoryHandle>, events: File, head: File, run: &str, options: &RunOptions) -> Self {
        // For as long as the journal is open, so that a run at work can be told from one whose program has died. Where files
        // can't be locked, that isn't known.
        let _ = retry_on_intr(|| rustix::fs::flock(&head, FlockOperation::LockShared));
        let state = Mutex::new(AppendState {
            tip: Tip::START,
            buffer: Vec::with_capacity(BUFFER),
            calls: HashSet::new(),
            unread: Vec::new(),
        });
        let RunOptions { durability, key, clock, indexer, .. } = options.clone();
        Self { run: run.into(), directory, events, head, durability, key, clock, indexer, state }
    }

    /// Appends events, all or none, and returns the number of the last one. When this returns, they are stored.
    pub fn append(&self, events: &[Event]) -> Result<u64, JournalError> {
        let mut state = self.state.lock();
        let _lock = self.lock()?;
        let size = self.size()?;
        if size != state.tip.size {
            self.catch_up(&mut state, size)?;
        }
        self.write(&mut state, events)?;
        Ok(state.tip.seq)
    }

    /// Takes the id of a call for a new call of this run. False if a call of the run has it already, whichever process
    /// made that call.
    pub fn claim_call(&self, id: &str) -> Result<bool, JournalError> {
        let mut state = self.state.lock();
        self.find_calls(&mut state)?;
        Ok(state.calls.insert(id.to_owned()))
    }

    /// Whether a call of this run has this id, whichever process made the call.
    pub fn has_call(&self, id: &str) -> Result<bool, JournalError> {
        let mut state = self.state.lock();
        self.find_calls(&mut state)?;
        Ok(state.calls.contains(id))
    }

    /// Looks for the ids of calls in what others wrote meanwhile.
    fn find_calls(&self, state: &mut AppendState) -> Result<(), JournalError> {
        let _lock = self.lock()?;
        let size = self.size()?;
        if size != state.tip.size {
            self.catch_up(state, size)?;
        }
        for range in std::mem::take(&mut state.unread) {
            let ids = self.call_ids(range).map_err(|error| self.directory.error("couldn't be read", NAME, error))?;
            state.calls.extend(ids);
        }
        Ok(())
    }

    /// The ids of the calls that a part of the file is about.
    fn call_ids(&self, range: Range<u64>) -> io::Result<HashSet<String>> {
        #[derive(Deserialize)]
        struct OfCall {
            tool_call_id: Option<String>,
        }
        let mut ids = HashSet::new();
        for line in BufReader::new(FileRange::new(&self.events, range.start, range.end)).split(b'\n') {
            // Whether a line is intact was checked when the file was caught up with.
            ids.extend(serde_json::from_slice::<OfCall>(&line?).ok().and_then(|line| line.tool_call_id));
        }
        Ok(ids)
    }

    /// The number of the last event that this handle has seen.
    pub fn last(&self) -> u64 {
        self.state.lock().tip.seq
    }

    /// Where the journal ends, as far as this handle has seen it.
    pub(crate) fn tip(&self) -> Tip {
        self.state.lock().tip
    }

    /// Writes events after the tip. The caller holds the lock and has brought the tip up to date.
    fn write(&self, state: &mut AppendState, events: &[Event]) -> Result<(), JournalError> {
        if events.is_empty() {
            return Ok(());
        }
        state.buffer.clear();
        state.buffer.shrink_to(BUFFER);
        let mut tip = state.tip;
        for (index, event) in events.iter().enumerate() {
            let signer = self.signer().filter(|_| index + 1 == events.len());
            tip = tip.encode(event, signer, &mut state.buffer).map_err(JournalError::Encode)?;
        }
        append_once(&self.events, &state.buffer, state.tip.size)
            .map_err(|error| self.directory.error("couldn't be written", NAME, error))?;
        self.commit(&tip).inspect_err(|_| {
            // An append that the caller is told has failed must not be in the record.
            let _ = self.events.set_len(state.tip.size);
        })?;
        state.tip = tip;
        if let Some(indexer) = &self.indexer {
            indexer.offer(&self.run, &state.buffer);
        }
        Ok(())
    }

    /// Syncs the lines to disk if configured, then writes the head: the head must never be ahead of the lines.
    fn commit(&self, tip: &Tip) -> Result<(), JournalError> {
        if self.durability == Durability::Sync {
            self.events.sync_data().map_err(|error| self.directory.error("couldn't be synced", NAME, error))?;
        }
        Head::new(&self.run, tip, self.key.as_ref())
            .write(&self.head)
            .map_err(|error| self.directory.error("couldn't be written", head::NAME, error))
    }

    /// Finds where the journal ends now, and recovers the end if a process was killed while writing.
    fn catch_up(&self, state: &mut AppendState, size: u64) -> Result<(), JournalError> {
        let head = self.trusted_head()?;
        // A file that shrank is checked from its beginning, so that the right fault is reported.
        let start = if size < state.tip.size { Tip::START } else { state.tip };
        state.unread.push(start.size..size);
        let walked = walk(FileRange::new(&self.events, start.size, size), start, Some(&head), self.signer())
            .map_err(|error| self.directory.error("couldn't be read", NAME, error))?;
        match walked.fault {
            // After a power failure the head may cover the torn line, but none after it.
            Some(JournalFault::Torn { line }) if head.seq <= line => {
                let recovered = self.move_torn_end(walked.trusted.size, size)?;
                state.tip = walked.trusted;
                return self.write(state, &[recovered]);
            }
            // Without a key, an append that the head doesn't cover yet can't be told from a forged one.
            Some(JournalFault::AfterSignature { .. }) if self.key.is_none() => {}
            Some(fault) => return Err(self.damaged(fault)),
            None => {}
        }
        if walked.tip.seq > head.seq {
            self.commit(&walked.tip)?;
        }
        state.tip = walked.tip;
        Ok(())
    }

    fn signer(&self) -> Option<LineSigner<'_>> {
        self.key.as_ref().map(|key| LineSigner { run: &self.run, key })
    }

    /// The head, after its signature was checked.
    fn trusted_head(&self) -> Result<Head, JournalError> {
        let head = Head::read(&self.head)
            .map_err(|error| self.directory.error("couldn't be read", head::NAME, error))?
            .map_err(|fault| self.damaged(fault))?;
        match &self.key {
            Some(key) => head.check(&self.run, key).map_err(|fault| self.damaged(fault))?,
            None if head.signature.is_some() => return Err(JournalError::KeyNeeded { run: self.run.to_string() }),
            None => {}
        }
        Ok(head)
    }

    /// Moves the torn end into a file of its own, and returns the event that reports it.
    fn move_torn_end(&self, from: u64, to: u64) -> Result<Event, JournalError> {
        let mut torn = Vec::new();
        FileRange::new(&self.events, from, to)
            .read_to_end(&mut torn)
            .map_err(|error| self.directory.error("couldn't be read", NAME, error))?;
        let (mut file, kept_as) = self.directory.numbered("events.torn-")?;
        file.write_all(&torn)
            .and_then(|()| file.sync_all())
            .and_then(|()| self.events.set_len(from))
            .map_err(|error| self.directory.error("couldn't be moved into a file of its own", NAME, error))?;
        let sha256 = hex::string(&Sha256::digest(&torn).into());
        Ok(self.event(EventPayload::JournalRecovered { bytes: torn.len() as u64, sha256, kept_as }))
    }

    /// An event about the run itself, at the current time.
    pub(crate) fn event(&self, payload: EventPayload) -> Event {
        Event {
            time: self.clock.now(),
            run: self.run.to_string(),
            turn: None,
            trace_id: None,
            tool_call_id: None,
            payload,
        }
    }

    fn lock(&self) -> Result<FileLock<'_>, JournalError> {
        FileLock::exclusive(&self.events).map_err(|error| self.directory.error("couldn't be locked", NAME, error))
    }

    /// The size of the file, checked before every append. A file without a name left is a record that nobody can ever
    /// read.
    fn size(&self) -> Result<u64, JournalError> {
        let found = rustix::fs::fstat(&self.events)
            .map_err(|errno| self.directory.error("couldn't be inspected", NAME, errno.into()))?;
        match found.st_nlink {
            0 => Err(self.directory.error("was removed", NAME, io::ErrorKind::NotFound.into())),
            _ => Ok(found.st_size as u64),
        }
    }

    fn damaged(&self, fault: JournalFault) -> JournalError {
        JournalError::Damaged { run: self.run.to_string(), fault }
    }
}
