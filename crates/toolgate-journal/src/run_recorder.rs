//! Where events and approvals go: the trait that the path writes through, and its one real implementation, a run directory.

use std::sync::Arc;

use crate::{Grant, GrantFile, JournalError, Run};
use toolgate_contract::{ApprovalScope, Event, ToolError};

/// Keeps events. When it fails, nothing runs.
pub trait Recorder: Send + Sync {
    /// Writes these events, all or none, before returning.
    fn record(&self, events: &[Event]) -> Result<(), ToolError>;
    /// Remembers an approval where its scope says.
    fn remember(&self, grant: &Grant) -> Result<(), ToolError>;
    /// Keeps a call that waits for approval, with its arguments as they were, and tells where.
    fn keep_pending(&self, call_id: &str, args: &[u8]) -> Result<String, ToolError>;
}

/// Records into a run's directory.
pub struct RunRecorder {
    run: Arc<Run>,
    session_grants: GrantFile,
}

impl RunRecorder {
    /// A recorder for this run; grants for the session go to `session_grants`.
    pub fn new(run: Arc<Run>, session_grants: GrantFile) -> Self {
        Self { run, session_grants }
    }

    /// The answers that still hold for this run and its session, and a sentence for each line that had to be left out.
    pub fn known_grants(&self) -> Result<(Vec<Grant>, Vec<String>), JournalError> {
        let (run, session) = (self.run.approvals.load()?, self.session_grants.load()?);
        Ok(([run.grants, session.grants].concat(), [run.warnings, session.warnings].concat()))
    }
}

impl Recorder for RunRecorder {
    fn record(&self, events: &[Event]) -> Result<(), ToolError> {
        self.run.journal.append(events).map(drop).map_err(ToolError::from)
    }

    /// Every grant stands in the run's directory; one that outlives the run also stands with the session.
    fn remember(&self, grant: &Grant) -> Result<(), ToolError> {
        self.run.approvals.append(grant).map_err(ToolError::from)?;
        match grant.scope {
            ApprovalScope::Call | ApprovalScope::Run => Ok(()),
            ApprovalScope::Session | ApprovalScope::Always => {
                self.session_grants.append(grant).map_err(ToolError::from)
            }
        }
    }

    fn keep_pending(&self, call_id: &str, args: &[u8]) -> Result<String, ToolError> {
        Ok(self.run.save_pending(call_id, args).map_err(ToolError::from)?.display().to_string())
    }
}
