//! The processes of one session, as a cleared tool sees them. Every command is one; whichever call started it, any call of
//! the session can go on with it, and nobody else's.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use crate::{
    ArtifactRef, BoxFuture, Denial, Enforced, LaunchSpec, Pids, SettledChanges, Signal, Stream, ToolError,
    WorkspacePath,
};

/// The processes of a session.
pub trait ProcessTable: Send + Sync {
    /// Starts a command that is killed after `longest` and doesn't see what policy hides. It belongs to the session at once, so whoever starts it for one call
    /// has to end it with that call; [`ProcessGuard`] does.
    fn start(&self, spec: LaunchSpec, longest: Duration) -> BoxFuture<'_, Result<Arc<dyn ProcessHandle>, ToolError>>;
    /// The process with this handle, running or ended.
    fn find(&self, process: &str) -> Result<Arc<dyn ProcessHandle>, ToolError>;
    /// All of them, oldest first.
    fn all(&self) -> Vec<Arc<dyn ProcessHandle>>;
    /// How long a process may go on without its call.
    fn longest(&self) -> Duration;
}

/// A process of the session: one that runs, or one that has ended and can still be read.
pub trait ProcessHandle: Send + Sync {
    /// What doesn't change about it.
    fn facts(&self) -> &ProcessFacts;
    /// How far it has come. Whoever waits for more is woken by this.
    fn progress(&self) -> watch::Receiver<ProcessProgress>;
    /// At most so many bytes of a stream, redacted, from a position on.
    fn read(&self, stream: Stream, from: u64, most: usize) -> Result<Vec<u8>, ToolError>;
    /// All of a stream, as far as it can be shown, once it has ended.
    fn whole(&self, stream: Stream) -> Result<StreamText, ToolError>;
    /// What was written last and might still turn out to be a secret, as it would be shown now. It is part of no stream yet.
    fn unfinished(&self, stream: Stream) -> Vec<u8>;
    /// What its terminal shows, if it has one.
    fn screen(&self) -> Option<Screen>;
    /// Whether a secret was replaced in its output.
    fn is_redacted(&self) -> bool;
    /// Where the last reader of both streams got to.
    fn read_so_far(&self) -> [u64; 2];
    /// Remembers how far both streams were read.
    fn have_read(&self, to: [u64; 2]);
    /// How far both streams had come when it was last written to: what is behind that may be an answer.
    fn fed_at(&self) -> [u64; 2];
    /// Remembers that it is written to now.
    fn note_fed(&self);
    /// Writes to its input, or types into its terminal. Waits while it doesn't read.
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), ToolError>>;
    /// Ends its input.
    fn close_input(&self) -> BoxFuture<'_, Result<(), ToolError>>;
    /// Sends a signal to it and its process group.
    fn signal(&self, signal: Signal) -> Result<(), ToolError>;
    /// What confinement kept from it so far. The errors that it wrote tell what it tried to do with files.
    fn denials(&self, errors: &str) -> Vec<Denial>;
    /// Hidden files that it opened so far, and saw a decoy of.
    fn opened(&self) -> Vec<WorkspacePath>;
    /// Lets it go on without its call. False if it has ended already.
    fn detach(&self) -> bool;
    /// Whether it goes on, or went on, without its call.
    fn is_detached(&self) -> bool;
    /// Kills it and everything that it started. Returns when all are gone.
    fn stop(&self) -> BoxFuture<'_, ()>;
    /// Begins to kill it, and lets go of it when it is gone.
    fn abandon(&self);
}

/// What doesn't change about a process.
#[derive(Debug, Clone)]
pub struct ProcessFacts {
    /// Its handle.
    pub id: String,
    /// The command line.
    pub command: String,
    /// The directory that it was started in, as the caller would write it.
    pub workdir: String,
    /// When it was started.
    pub started: Timestamp,
    /// Whether it has a terminal.
    pub terminal: bool,
    /// Its numbers on this machine.
    pub pids: Pids,
    /// Which guarantees hold.
    pub enforced: Enforced,
}

/// How far a process has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessProgress {
    /// Bytes on standard output, redacted.
    pub stdout: u64,
    /// Bytes on standard error, redacted.
    pub stderr: u64,
    /// Changes with every piece of output, also while it is held back.
    pub pieces: u64,
    /// How it ended, once it and everything that it started are gone.
    pub end: Option<ProcessExit>,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessExit {
    /// Its code as a shell would give it, or what kept it from having one.
    pub code: Result<i32, String>,
    /// Why it was stopped, if it didn't end by itself.
    pub stopped: Option<StopReason>,
    /// How long it ran.
    pub duration: Duration,
    /// The streams that were too long to keep at hand, whole.
    pub refs: Vec<ArtifactRef>,
    /// What became of what it changed.
    pub changes: Option<SettledChanges>,
}

/// Why a process was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Its time was up.
    Time,
    /// It wrote more than can be kept.
    Output,
    /// Somebody wanted it, or its session ended.
    Request,
}

/// A stream as it can be shown: whole, or its beginning and its end with what lies between stored.
#[derive(Debug, Clone, Default)]
pub struct StreamText {
    /// The text; where something is missing, beginning and end are joined without a mark.
    pub text: String,
    /// What is missing, and where it is.
    pub missing: Option<OmittedText>,
}

/// A part of a text that isn't there because all of the text is stored already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedText {
    /// Lines that are missing.
    pub lines: u64,
    /// Bytes that are missing.
    pub bytes: u64,
    /// All of the text.
    pub artifact: ArtifactRef,
}

/// What a terminal shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    /// Its lines, without what is empty at their ends.
    pub text: String,
    /// The line of the cursor, from 1.
    pub row: u16,
    /// The column of the cursor, from 1.
    pub column: u16,
}

/// A process as the call holds it that started it: unless it is let go on, it ends with the call.
pub struct ProcessGuard(Option<Arc<dyn ProcessHandle>>);

impl ProcessGuard {
    /// Holds on to a process.
    pub fn new(process: Arc<dyn ProcessHandle>) -> Self {
        Self(Some(process))
    }

    /// The process.
    pub fn process(&self) -> &dyn ProcessHandle {
        self.0.as_deref().expect("it is only taken by value")
    }

    /// Lets it go on as a process of the session. Gives it back if it has ended already.
    pub fn detach(mut self) -> Result<Arc<dyn ProcessHandle>, Self> {
        match self.0.take() {
            Some(process) if process.detach() => Ok(process),
            ended => Err(Self(ended)),
        }
    }
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        if let Some(process) = &self.0 {
            process.abandon();
        }
    }
}
