//! Fills a store in the background. A call never waits for the store and never fails with it: lines that the store
//! can't take right now are dropped, the run is marked as behind, and the missing events are read from the journal
//! later.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::{EventStore, JournalError, RecordedEvent, list_runs, read_events};

/// How many appends may wait for the store.
const QUEUE: usize = 1024;

/// How many appends go into one transaction. More gain little, and all of them are in memory at once, decoded: a
/// thousand took ten megabytes where calls came faster than the store took them.
const APPENDS_PER_TRANSACTION: usize = 64;

/// How long to wait for more lines, unless a caller waits for the store.
const PAUSE: Duration = Duration::from_millis(20);

/// How many events go into one transaction when a journal is read back.
const EVENTS_PER_TRANSACTION: usize = 250;

/// A thread that copies appended lines into a store.
pub struct Indexer {
    queue: Option<SyncSender<IndexerCommand>>,
    behind: Arc<LaggingRuns>,
    worker: Option<JoinHandle<()>>,
}

enum IndexerCommand {
    Lines { run: Arc<str>, lines: Vec<u8> },
    Flush(SyncSender<Result<(), JournalError>>),
}

/// The runs of which the store misses events.
#[derive(Default)]
struct LaggingRuns(Mutex<BTreeSet<Arc<str>>>);

impl LaggingRuns {
    fn mark(&self, run: Arc<str>) {
        self.0.lock().insert(run);
    }

    fn take(&self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Indexer {
    /// Starts the thread for the runs of one state directory. It opens the store itself, on the first lines.
    pub fn start(
        state_dir: &Path,
        open: impl FnMut() -> Result<Arc<dyn EventStore>, JournalError> + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, messages) = sync_channel(QUEUE);
        let behind = Arc::<LaggingRuns>::default();
        let mut worker = IndexerThread {
            state_dir: state_dir.to_owned(),
            open: Box::new(open),
            store: None,
            behind: Arc::clone(&behind),
        };
        let worker = std::thread::Builder::new().name("indexer".into()).spawn(move || worker.work(&messages))?;
        Ok(Self { queue: Some(queue), behind, worker: Some(worker) })
    }

    /// Queues lines that were just appended. Never waits.
    pub(crate) fn offer(&self, run: &Arc<str>, lines: &[u8]) {
        let message = IndexerCommand::Lines { run: Arc::clone(run), lines: lines.to_vec() };
        let sent = self.queue.as_ref().map(|queue| queue.try_send(message));
        if let Some(Err(TrySendError::Full(_) | TrySendError::Disconnected(_))) = sent {
            self.behind.mark(Arc::clone(run));
        }
    }

    /// Waits until the store has everything that was appended before, or returns why it can't.
    pub fn flush(&self) -> Result<(), JournalError> {
        let stopped = || JournalError::Store("the indexer has stopped".into());
        let (answer, done) = sync_channel(1);
        self.queue.as_ref().ok_or_else(stopped)?.send(IndexerCommand::Flush(answer)).map_err(|_| stopped())?;
        self.wake();
        done.recv().map_err(|_| stopped())?
    }

    fn wake(&self) {
        self.worker.iter().for_each(|worker| worker.thread().unpark());
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        drop(self.queue.take());
        self.wake();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

/// The state of the thread.
struct IndexerThread {
    state_dir: PathBuf,
    open: Box<dyn FnMut() -> Result<Arc<dyn EventStore>, JournalError> + Send>,
    store: Option<Arc<dyn EventStore>>,
    behind: Arc<LaggingRuns>,
}

impl IndexerThread {
    fn work(&mut self, messages: &Receiver<IndexerCommand>) {
        let mut is_caught_up = true;
        while let Ok(first) = messages.recv() {
            // Lines come in bursts, and a transaction for each would take a core from the callers.
            if is_caught_up {
                std::thread::park_timeout(PAUSE);
            }
            let waiting: Vec<IndexerCommand> = messages.try_iter().take(APPENDS_PER_TRANSACTION - 1).collect();
            is_caught_up = waiting.len() < APPENDS_PER_TRANSACTION - 1;
            let mut lines = BTreeMap::<Arc<str>, Vec<u8>>::new();
            let mut flushes = Vec::new();
            for message in std::iter::once(first).chain(waiting) {
                match message {
                    IndexerCommand::Lines { run, lines: more } => lines.entry(run).or_default().extend(more),
                    IndexerCommand::Flush(answer) => flushes.push(answer),
                }
            }
            for (run, lines) in lines {
                self.apply(run, &lines);
            }
            for answer in flushes {
                let _ = answer.send(self.fill_gaps());
            }
        }
        let _ = self.fill_gaps();
    }

    /// The store. If it couldn't be opened, the next lines try again.
    fn store(&mut self) -> Result<Arc<dyn EventStore>, JournalError> {
        if self.store.is_none() {
            self.store = Some((self.open)()?);
        }
        self.store.clone().ok_or_else(|| JournalError::Store("the store isn't open".into()))
    }

    fn apply(&mut self, run: Arc<str>, lines: &[u8]) {
        let lines = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let applied = lines
            .map(RecordedEvent::parse)
            .collect::<io::Result<Vec<_>>>()
            .map_err(JournalError::io("A line couldn't be read back"))
            .and_then(|events| self.store()?.apply(&run, &events));
        if applied.is_err() {
            self.behind.mark(run);
        }
    }

    /// Reads missed events from the journals. Runs that still can't be applied stay marked.
    fn fill_gaps(&mut self) -> Result<(), JournalError> {
        let mut outcome = Ok(());
        for run in self.behind.take() {
            if let Err(error) = self.store().and_then(|store| catch_up(&self.state_dir, &run, &*store)) {
                self.behind.mark(run);
                outcome = Err(error);
            }
        }
        outcome
    }
}

/// Copies the missing events of a run into the store, and returns how many there were. A run without a journal, because
/// it is just beginning or never began, has none.
pub fn catch_up(state_dir: &Path, run: &str, store: &dyn EventStore) -> Result<u64, JournalError> {
    let failed = || JournalError::io(format!("The journal of run `{run}` couldn't be read"));
    let indexed = store.indexed_up_to(run)?;
    let mut events = match read_events(&state_dir.join("runs").join(run)) {
        Err(JournalError::NoSuchRun { .. }) => return Ok(0),
        other => other?.after(indexed).map_err(failed())?,
    };
    let mut count = 0;
    loop {
        let mut batch = Vec::new();
        for event in events.by_ref() {
            match event {
                Ok(event) => batch.push(event),
                // A line that can't be parsed has no row; `verify` reports what is wrong with it.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Err(error) => return Err(failed()(error)),
            }
            if batch.len() == EVENTS_PER_TRANSACTION {
                break;
            }
        }
        if batch.is_empty() {
            return Ok(count);
        }
        store.apply(run, &batch)?;
        count += batch.len() as u64;
    }
}

/// Rebuilds a store from the journals of a state directory, and returns how many events it holds now. Runs without a
/// directory are left alone: they may belong to another host.
pub fn reindex(state_dir: &Path, store: &dyn EventStore) -> Result<u64, JournalError> {
    let mut count = 0;
    for run in list_runs(state_dir)? {
        store.clear(&run)?;
        count += catch_up(state_dir, &run, store)?;
    }
    Ok(count)
}
