//! One client's stay: the run its calls are recorded in, who answers for it, who watches, and what it was granted.

use std::sync::{Arc, Mutex, MutexGuard};

use toolgate_contract::{Artifacts, Event, ToolError};
use toolgate_journal::Grant;
use toolgate_policy::{Bounds, Ceiling};

use crate::approval::{Approver, NobodyToAsk};

/// Keeps events. When it fails, nothing runs.
pub trait Recorder: Send + Sync {
    /// Writes these events, all or none, before returning.
    fn record(&self, events: &[Event]) -> Result<(), ToolError>;
    /// Remembers an approval where its scope says.
    fn remember(&self, grant: &Grant) -> Result<(), ToolError>;
    /// Keeps a call that waits for approval, with its arguments as they were, and tells where.
    fn keep_pending(&self, call_id: &str, args: &[u8]) -> Result<String, ToolError>;
}

/// Watches events as they come: a live view, a stream, a console.
pub trait EventSink: Send + Sync {
    /// Something happened and is on record.
    fn event(&self, event: &Event);
    /// Whether anyone sees it.
    fn is_watched(&self) -> bool {
        true
    }
}

/// For programs: nobody watches.
pub struct NobodyWatches;

impl EventSink for NobodyWatches {
    fn event(&self, _event: &Event) {}

    fn is_watched(&self) -> bool {
        false
    }
}

/// One client's stay.
pub struct Session {
    /// The session's id; grants of scope `session` belong to it.
    pub id: String,
    /// The run that calls are recorded in.
    pub run: String,
    /// Keeps the events of the run.
    pub recorder: Arc<dyn Recorder>,
    /// Keeps the output of the run.
    pub artifacts: Arc<dyn Artifacts>,
    /// Whoever answers an ask.
    pub approver: Arc<dyn Approver>,
    /// Whoever watches.
    pub sink: Arc<dyn EventSink>,
    /// Sets of tools that this session can't go beyond: an active skill's, a parent agent's.
    pub ceilings: Vec<Ceiling>,
    /// The agent's turn, where there is one.
    pub turn: Option<u64>,
    grants: Mutex<Vec<Grant>>,
    bounds: Mutex<Option<Arc<Bounds>>>,
}

impl Session {
    /// A session with nobody to ask and nobody watching.
    pub fn new(
        id: impl Into<String>,
        run: impl Into<String>,
        recorder: Arc<dyn Recorder>,
        artifacts: Arc<dyn Artifacts>,
    ) -> Self {
        Self {
            id: id.into(),
            run: run.into(),
            recorder,
            artifacts,
            approver: Arc::new(NobodyToAsk),
            sink: Arc::new(NobodyWatches),
            ceilings: Vec::new(),
            turn: None,
            grants: Mutex::default(),
            bounds: Mutex::default(),
        }
    }

    /// The same session with this approver.
    #[must_use]
    pub fn approved_by(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = approver;
        self
    }

    /// The same session with this watcher.
    #[must_use]
    pub fn watched_by(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.sink = sink;
        self
    }

    /// The same session, with answers that were given before.
    #[must_use]
    pub fn with_grants(self, grants: Vec<Grant>) -> Self {
        self.grants().extend(grants);
        self
    }

    /// From the next call on, the session is held to these places, or to none in particular.
    pub fn hold_to(&self, bounds: Option<Bounds>) {
        *self.bounds.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = bounds.map(Arc::new);
    }

    pub(crate) fn bounds(&self) -> Option<Arc<Bounds>> {
        self.bounds.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Writes events down, then shows them.
    pub(crate) fn record(&self, events: &[Event]) -> Result<(), ToolError> {
        self.recorder.record(events)?;
        events.iter().for_each(|event| self.sink.event(event));
        Ok(())
    }

    pub(crate) fn grants(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.grants.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
