//! One process of a session: its state, its output, and the means to control it.

use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use tokio::sync::{broadcast, watch};
use toolgate_contract::{
    Artifacts, BoxFuture, CancellationToken, ChildProcess, Denial, EventPayload, ProcessExit, ProcessFacts,
    ProcessHandle, ProcessProgress, Screen, Signal, Stream, StreamText, TerminalSize, ToolError, WorkspacePath,
};
use toolgate_redact::{Redactor, StreamRedactor};

use super::ProcessRegistry;
use super::follower::ProcessFollower;
use super::spool::Spool;
use super::terminal_emulator::{ScreenCells, TerminalEmulator};
use crate::gate::EventWriter;

/// Chunks of output that an attached terminal may be behind.
const FOLLOWED: usize = 256;

/// One process of a session.
pub struct SessionProcess {
    facts: ProcessFacts,
    /// The session's id, for a person who sees the processes of several sessions.
    pub session: String,
    channels: Mutex<[OutputChannel; 2]>,
    painted: Option<Mutex<TerminalEmulator>>,
    redactor: Arc<Redactor>,
    progress: watch::Sender<ProcessProgress>,
    pieces: Mutex<Option<broadcast::Sender<Arc<[u8]>>>>,
    child: Arc<dyn ChildProcess>,
    pub(super) stop: CancellationToken,
    pub(super) event_writer: EventWriter,
    is_redacted: AtomicBool,
    state: Mutex<ProcessState>,
    registry: Weak<ProcessRegistry>,
}

/// A stream of the process: redaction and storage.
struct OutputChannel {
    redacting: StreamRedactor,
    spool: Spool,
}

#[derive(Default)]
struct ProcessState {
    /// It keeps running after its call.
    detached: bool,
    /// Its call has ended, and no reply has named it.
    abandoned: bool,
    ended: bool,
    read: [u64; 2],
    fed_at: [u64; 2],
}

/// The parts of a new process of a session.
pub(crate) struct NewProcess {
    pub(crate) facts: ProcessFacts,
    pub(crate) session: String,
    pub(crate) terminal: Option<TerminalSize>,
    pub(crate) child: Arc<dyn ChildProcess>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    /// Bytes of a long stream that are shown, of its beginning and of its end each.
    pub(crate) shown: usize,
    pub(crate) event_writer: EventWriter,
}

impl SessionProcess {
    pub(crate) fn new(new: NewProcess, registry: &Arc<ProcessRegistry>) -> Self {
        let channel = || OutputChannel {
            redacting: new.redactor.stream(),
            spool: Spool::new(Arc::clone(&new.artifacts), new.shown),
        };
        Self {
            channels: Mutex::new([channel(), channel()]),
            painted: new.terminal.map(|size| Mutex::new(TerminalEmulator::new(size))),
            redactor: new.redactor,
            progress: watch::Sender::new(ProcessProgress::default()),
            pieces: Mutex::new(Some(broadcast::Sender::new(FOLLOWED))),
            child: new.child,
            stop: CancellationToken::new(),
            event_writer: new.event_writer,
            is_redacted: AtomicBool::new(false),
            state: Mutex::default(),
            registry: Arc::downgrade(registry),
            facts: new.facts,
            session: new.session,
        }
    }

    /// Adds output. Returns the redacted part that is final, and the number of bytes of both streams so far.
    pub(super) fn take(&self, stream: Stream, bytes: &[u8]) -> Result<(Vec<u8>, u64), ToolError> {
        if let Some(pieces) = self.pieces().as_ref().filter(|pieces| pieces.receiver_count() > 0) {
            let _ = pieces.send(bytes.into());
        }
        let clean = self.channels()[stream as usize].redacting.push(bytes);
        self.keep(stream, clean)
    }

    /// Ends the stream, and adds what was held back.
    pub(super) fn release(&self, stream: Stream) -> Result<(Vec<u8>, u64), ToolError> {
        let clean = self.channels()[stream as usize].redacting.finish();
        self.keep(stream, clean)
    }

    fn keep(&self, stream: Stream, clean: Vec<u8>) -> Result<(Vec<u8>, u64), ToolError> {
        let (sizes, is_redacted) = {
            let mut channels = self.channels();
            channels[stream as usize].spool.push(&clean)?;
            let [out, err] = &*channels;
            ([out.spool.bytes(), err.spool.bytes()], out.redacting.redacted() || err.redacting.redacted())
        };
        if let Some(painted) = &self.painted {
            painted.lock().paint(&clean);
        }
        self.is_redacted.fetch_or(is_redacted, Ordering::Relaxed);
        self.progress.send_modify(|progress| {
            [progress.stdout, progress.stderr] = sizes;
            progress.pieces += 1;
        });
        Ok((clean, sizes[0] + sizes[1]))
    }

    /// Stores long streams as artifacts.
    pub(super) fn store(&self) -> Result<Vec<toolgate_contract::ArtifactRef>, ToolError> {
        let mut channels = self.channels();
        let stored: Result<Vec<_>, _> = channels.iter_mut().map(|channel| channel.spool.finish()).collect();
        Ok(stored?.into_iter().flatten().collect())
    }

    /// Marks the process as ended. Returns whether it kept running after its call; one that no reply named is removed.
    pub(super) fn close(&self) -> bool {
        let (detached, abandoned) = {
            let mut state = self.state();
            state.ended = true;
            (state.detached, state.abandoned)
        };
        if abandoned {
            self.forget();
        }
        self.pieces().take();
        detached
    }

    /// Notifies everyone who waits how it ended.
    pub(super) fn announce(&self, end: ProcessExit) {
        self.progress.send_modify(|progress| progress.end = Some(end));
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.progress.borrow().end.is_some()
    }

    /// Waits for its end.
    pub async fn ended(&self) {
        let mut progress = self.progress.subscribe();
        // The sender is a field of this value, so it can't be dropped.
        let _ = progress.wait_for(|progress| progress.end.is_some()).await;
    }

    /// Kills it and everything that it started. [`SessionProcess::ended`] returns when all have ended.
    pub fn kill(&self) {
        self.stop.cancel();
        if !self.has_ended() {
            self.child.kill();
        }
    }

    /// Attaches a terminal: returns the bytes that repaint its screen, or the end of its output if it has none, and its output
    /// from then on; none when it has ended. The attachment is recorded.
    pub fn follow(&self, by: &str) -> Option<(Vec<u8>, ProcessFollower)> {
        let pieces = self.pieces().as_ref()?.subscribe();
        let before = match &self.painted {
            Some(painted) => painted.lock().repaint_sequence(),
            None => self.last_lines(),
        };
        self.event_writer.record(EventPayload::ProcessAttached { process: self.facts.id.clone(), by: by.to_owned() });
        Some((before, ProcessFollower::new(pieces, self.redactor.stream())))
    }

    /// The cells of its terminal's screen, if it has one.
    pub fn cells(&self) -> Option<ScreenCells> {
        let painted = self.painted.as_ref()?;
        let unfinished = self.unfinished(Stream::Stdout);
        Some(painted.lock().cells_with(&unfinished))
    }

    /// The end of the output so far: for a terminal that attaches later, and for a page.
    pub fn last_lines(&self) -> Vec<u8> {
        const MOST: u64 = 4096;
        let mut channels = self.channels();
        let last = |channel: &mut OutputChannel| {
            let from = channel.spool.bytes().saturating_sub(MOST);
            channel.spool.read(from, MOST as usize).unwrap_or_default()
        };
        let [out, err] = &mut *channels;
        [last(out), last(err)].concat()
    }

    /// Changes the size of its terminal.
    pub fn resize(&self, size: TerminalSize) -> Result<(), ToolError> {
        self.child.resize(size)?;
        if let Some(painted) = &self.painted {
            painted.lock().resize(size);
        }
        Ok(())
    }

    fn forget(&self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.remove(&self.facts.id);
        }
    }

    fn channels(&self) -> MutexGuard<'_, [OutputChannel; 2]> {
        self.channels.lock()
    }

    fn pieces(&self) -> MutexGuard<'_, Option<broadcast::Sender<Arc<[u8]>>>> {
        self.pieces.lock()
    }

    fn state(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock()
    }
}

impl ProcessHandle for SessionProcess {
    fn facts(&self) -> &ProcessFacts {
        &self.facts
    }

    fn progress(&self) -> watch::Receiver<ProcessProgress> {
        self.progress.subscribe()
    }

    fn read(&self, stream: Stream, from: u64, most: usize) -> Result<Vec<u8>, ToolError> {
        self.channels()[stream as usize].spool.read(from, most)
    }

    fn whole(&self, stream: Stream) -> Result<StreamText, ToolError> {
        self.channels()[stream as usize].spool.whole()
    }

    fn unfinished(&self, stream: Stream) -> Vec<u8> {
        self.channels()[stream as usize].redacting.preview()
    }

    fn screen(&self) -> Option<Screen> {
        let painted = self.painted.as_ref()?;
        let unfinished = self.unfinished(Stream::Stdout);
        Some(painted.lock().with(&unfinished))
    }

    fn is_redacted(&self) -> bool {
        self.is_redacted.load(Ordering::Relaxed)
    }

    fn read_so_far(&self) -> [u64; 2] {
        self.state().read
    }

    fn have_read(&self, to: [u64; 2]) {
        self.state().read = to;
    }

    fn fed_at(&self) -> [u64; 2] {
        self.state().fed_at
    }

    fn note_fed(&self) {
        let ProcessProgress { stdout, stderr, .. } = *self.progress.borrow();
        self.state().fed_at = [stdout, stderr];
    }

    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), ToolError>> {
        self.child.write(bytes)
    }

    fn close_input(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        self.child.close_input()
    }

    fn signal(&self, signal: Signal) -> Result<(), ToolError> {
        self.child.signal(signal)
    }

    fn denials(&self, errors: &str) -> Vec<Denial> {
        self.child.denials(errors)
    }

    fn opened(&self) -> Vec<WorkspacePath> {
        self.child.opened()
    }

    fn detach(&self) -> bool {
        let mut state = self.state();
        state.detached = !state.ended;
        state.detached
    }

    fn is_detached(&self) -> bool {
        self.state().detached
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        self.kill();
        Box::pin(self.ended())
    }

    fn abandon(&self) {
        self.kill();
        let ended = {
            let mut state = self.state();
            state.abandoned = true;
            state.ended
        };
        if ended {
            self.forget();
        }
    }
}
