//! Where events and approvals are written: the trait that every call writes through, and its one real implementation,
//! which writes to a run's directory.

use std::sync::Arc;

use crate::{Grant, GrantFile, JournalError, Run};
use toolgate_contract::{ApprovalScope, Event, ToolError};

/// Records events. When recording fails, no call runs.
pub trait Recorder: Send + Sync {
    /// Writes these events, all or none, before returning.
    fn record(&self, events: &[Event]) -> Result<(), ToolError>;
    /// Stores an approval in the place that its scope names.
    fn remember(&self, grant: &Grant) -> Result<(), ToolError>;
    /// Stores a call that waits for approval, with its arguments unchanged, and returns the path.
    fn keep_pending(&self, call_id: &str, args: &[u8]) -> Result<String, ToolError>;
}

/// Records into the directory of one run.
pub struct RunRecorder {
    run: Arc<Run>,
    session_grants: GrantFile,
}

impl RunRecorder {
    /// A recorder for this run. Grants for the session are written to `session_grants`.
    pub fn new(run: Arc<Run>, session_grants: GrantFile) -> Self {
        Self { run, session_grants }
    }

    /// The grants that apply to this run and its session, and one warning for each line that was skipped.
    pub fn known_grants(&self) -> Result<(Vec<Grant>, Vec<String>), JournalError> {
        let (run, session) = (self.run.approvals.load()?, self.session_grants.load()?);
        Ok(([run.grants, session.grants].concat(), [run.warnings, session.warnings].concat()))
    }
}

impl Recorder for RunRecorder {
    fn record(&self, events: &[Event]) -> Result<(), ToolError> {
        self.run.journal.append(events).map(drop).map_err(ToolError::from)
    }

    /// Writes every grant to the run's directory. A grant that outlives the run is also written to the session's file.
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
