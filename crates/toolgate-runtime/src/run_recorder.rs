//! A run's directory as the recorder of its session: events into the journal, grants where their scope says.

use std::sync::Arc;

use toolgate_contract::{ApprovalScope, Event, ToolError};
use toolgate_journal::{Grant, GrantFile, JournalError, Run};

use crate::session::Recorder;

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
