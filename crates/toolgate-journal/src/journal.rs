//! The chained record of a run's events. An append is one `write` under a lock taken for just that append, so several
//! processes can keep one journal; whatever a crash leaves behind is either accepted, set aside byte for byte, or
//! refused, and never papered over.

use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use toolgate_contract::{Clock, Durability, Event, EventPayload};

use crate::chain::{FileRange, Tip, walk};
use crate::directory::{DirectoryHandle, FileLock, append_once};
use crate::head::{self, Head};
use crate::signing_key::LineSigner;
use crate::{Indexer, JournalError, JournalFault, RunOptions, SigningKey, hex};

/// The file's name.
pub(crate) const NAME: &str = "events.jsonl";

/// What is kept of the buffer between appends; a rare giant shouldn't hold its memory for the rest of the run.
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
    pen: Mutex<AppendState>,
}

/// Where we are in the file, and the buffer that lines are made in.
struct AppendState {
    tip: Tip,
    buffer: Vec<u8>,
}

impl Journal {
    /// Starts an empty journal. The head comes first: a journal without one was tampered with.
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

    /// Opens a journal, checks it whole, and mends what a crash may have left.
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
            let mut pen = journal.pen.lock();
            let _lock = journal.lock()?;
            let size = journal.size()?;
            journal.catch_up(&mut pen, size)?;
        }
        Ok(journal)
    }

    fn with(directory: Arc<DirectoryHandle>, events: File, head: File, run: &str, options: &RunOptions) -> Self {
        let pen = Mutex::new(AppendState { tip: Tip::START, buffer: Vec::with_capacity(BUFFER) });
        let RunOptions { durability, key, clock, indexer } = options.clone();
        Self { run: run.into(), directory, events, head, durability, key, clock, indexer, pen }
    }

    /// Appends events, all or none, and returns the number of the last one. When this returns, they are kept.
    pub fn append(&self, events: &[Event]) -> Result<u64, JournalError> {
        let mut pen = self.pen.lock();
        let _lock = self.lock()?;
        let size = self.size()?;
        if size != pen.tip.size {
            self.catch_up(&mut pen, size)?;
        }
        self.write(&mut pen, events)?;
        Ok(pen.tip.seq)
    }

    /// The number of the last event that this handle knows of.
    pub fn last(&self) -> u64 {
        self.pen.lock().tip.seq
    }

    /// Writes events behind the tip. The lock is held and the tip is right.
    fn write(&self, pen: &mut AppendState, events: &[Event]) -> Result<(), JournalError> {
        if events.is_empty() {
            return Ok(());
        }
        pen.buffer.clear();
        pen.buffer.shrink_to(BUFFER);
        let mut tip = pen.tip;
        for (index, event) in events.iter().enumerate() {
            let seal = self.seal().filter(|_| index + 1 == events.len());
            tip = tip.encode(event, seal, &mut pen.buffer).map_err(JournalError::Encode)?;
        }
        append_once(&self.events, &pen.buffer, pen.tip.size)
            .map_err(|error| self.directory.error("couldn't be written", NAME, error))?;
        self.settle(&tip).inspect_err(|_| {
            // What the caller is told has failed must not stand in the record.
            let _ = self.events.set_len(pen.tip.size);
        })?;
        pen.tip = tip;
        if let Some(indexer) = &self.indexer {
            indexer.offer(&self.run, &pen.buffer);
        }
        Ok(())
    }

    /// Brings the lines to the disk if asked to, then the head behind them: it must never be ahead.
    fn settle(&self, tip: &Tip) -> Result<(), JournalError> {
        if self.durability == Durability::Sync {
            self.events.sync_data().map_err(|error| self.directory.error("couldn't be synced", NAME, error))?;
        }
        Head::new(&self.run, tip, self.key.as_ref())
            .write(&self.head)
            .map_err(|error| self.directory.error("couldn't be written", head::NAME, error))
    }

    /// Learns where the journal ends now, and mends its end if a program was killed while it wrote.
    fn catch_up(&self, pen: &mut AppendState, size: u64) -> Result<(), JournalError> {
        let head = self.trusted_head()?;
        // A file that shrank is looked at from its beginning, so that the fault gets its proper name.
        let start = if size < pen.tip.size { Tip::START } else { pen.tip };
        let walked = walk(FileRange::new(&self.events, start.size, size), start, Some(&head), self.seal())
            .map_err(|error| self.directory.error("couldn't be read", NAME, error))?;
        match walked.fault {
            // The head may know the torn line, after a power cut, but none behind it.
            Some(JournalFault::Torn { line }) if head.seq <= line => {
                let recovered = self.set_aside(walked.vouched.size, size)?;
                pen.tip = walked.vouched;
                return self.write(pen, &[recovered]);
            }
            // Without a key, an append that the head wasn't told of can't be told from a forged one.
            Some(JournalFault::AfterSeal { .. }) if self.key.is_none() => {}
            Some(fault) => return Err(self.damaged(fault)),
            None => {}
        }
        if walked.tip.seq > head.seq {
            self.settle(&walked.tip)?;
        }
        pen.tip = walked.tip;
        Ok(())
    }

    fn seal(&self) -> Option<LineSigner<'_>> {
        self.key.as_ref().map(|key| LineSigner { run: &self.run, key })
    }

    /// The head, once it is known that nobody else made it.
    fn trusted_head(&self) -> Result<Head, JournalError> {
        let head = Head::read(&self.head)
            .map_err(|error| self.directory.error("couldn't be read", head::NAME, error))?
            .map_err(|fault| self.damaged(fault))?;
        match &self.key {
            Some(key) => head.check(&self.run, key).map_err(|fault| self.damaged(fault))?,
            None if head.seal.is_some() => return Err(JournalError::KeyNeeded { run: self.run.to_string() }),
            None => {}
        }
        Ok(head)
    }

    /// Moves the torn end into a file of its own, and returns the event that says so.
    fn set_aside(&self, from: u64, to: u64) -> Result<Event, JournalError> {
        let mut torn = Vec::new();
        FileRange::new(&self.events, from, to)
            .read_to_end(&mut torn)
            .map_err(|error| self.directory.error("couldn't be read", NAME, error))?;
        let (mut file, kept_as) = self.directory.numbered("events.torn-")?;
        file.write_all(&torn)
            .and_then(|()| file.sync_all())
            .and_then(|()| self.events.set_len(from))
            .map_err(|error| self.directory.error("couldn't be set aside", NAME, error))?;
        let sha256 = hex::string(&Sha256::digest(&torn).into());
        Ok(self.event(EventPayload::JournalRecovered { bytes: torn.len() as u64, sha256, kept_as }))
    }

    /// An event of the run as a whole, now.
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

    /// How long it is; asked before every append. A file without a name is a record that nobody will ever read.
    fn size(&self) -> Result<u64, JournalError> {
        let found = rustix::fs::fstat(&self.events)
            .map_err(|errno| self.directory.error("couldn't be looked at", NAME, errno.into()))?;
        match found.st_nlink {
            0 => Err(self.directory.error("was removed", NAME, io::ErrorKind::NotFound.into())),
            _ => Ok(found.st_size as u64),
        }
    }

    fn damaged(&self, fault: JournalFault) -> JournalError {
        JournalError::Damaged { run: self.run.to_string(), fault }
    }
}
