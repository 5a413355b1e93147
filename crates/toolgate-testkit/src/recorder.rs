//! A recorder that fails on purpose, with the real one behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use toolgate_contract::{ErrorCode, Event, ToolError};
use toolgate_journal::{Grant, Recorder, WorkspaceIdentity};

/// Fails after a number of writes.
pub struct FailingRecorder {
    inner: Arc<dyn Recorder>,
    first_failure: usize,
    writes: AtomicUsize,
}

impl FailingRecorder {
    /// Passes this many writes to `inner`; all later ones fail.
    pub fn after(writes: usize, inner: Arc<dyn Recorder>) -> Self {
        Self { inner, first_failure: writes, writes: AtomicUsize::new(0) }
    }
}

impl Recorder for FailingRecorder {
    fn record(&self, events: &[Event]) -> Result<(), ToolError> {
        match self.writes.fetch_add(1, Ordering::SeqCst) < self.first_failure {
            true => self.inner.record(events),
            false => Err(ToolError::new(ErrorCode::IoError, "the disk is gone")),
        }
    }

    fn claim_call(&self, tool_call_id: &str) -> Result<bool, ToolError> {
        self.inner.claim_call(tool_call_id)
    }

    fn workspace(&self) -> WorkspaceIdentity {
        self.inner.workspace()
    }

    fn grants(&self, now: Timestamp) -> Result<Vec<Grant>, ToolError> {
        self.inner.grants(now)
    }

    fn end_grants(&self) -> Result<(), ToolError> {
        self.inner.end_grants()
    }

    fn remember(&self, grant: &Grant) -> Result<(), ToolError> {
        self.inner.remember(grant)
    }

    fn keep_pending(&self, call_id: &str, args: &[u8]) -> Result<String, ToolError> {
        self.inner.keep_pending(call_id, args)
    }
}
