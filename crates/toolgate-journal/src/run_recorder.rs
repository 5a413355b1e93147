//! Where events and approvals are written: the trait that every call writes through, and its one real implementation,
//! which writes to a run's directory.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use toolgate_contract::{ApprovalScope, Event, ToolError};

use crate::{Grant, GrantStore, Run, WorkspaceIdentity};

/// Records events. When recording fails, no call runs.
pub trait Recorder: Send + Sync {
    /// Writes these events, all or none, before returning.
    fn record(&self, events: &[Event]) -> Result<(), ToolError>;
    /// Takes the id of a call for a new call of this run; false if a call of the run has it already.
    fn claim_call(&self, tool_call_id: &str) -> Result<bool, ToolError>;
    /// The workspace that grants are given in.
    fn workspace(&self) -> WorkspaceIdentity;
    /// Records an approval; one that reaches beyond its call is a grant from now on.
    fn remember(&self, grant: &Grant) -> Result<(), ToolError>;
    /// The grants of the workspace that apply now, whichever session they were given in.
    fn grants(&self, now: Timestamp) -> Result<Vec<Grant>, ToolError>;
    /// Removes the grants that end with the run and its session.
    fn end_grants(&self) -> Result<(), ToolError>;
    /// Stores a call that waits for approval, with its arguments unchanged, and returns the path.
    fn keep_pending(&self, call_id: &str, args: &[u8]) -> Result<String, ToolError>;
}

/// Records into the directory of one run.
pub struct RunRecorder {
    run: Arc<Run>,
    /// Without a store, grants are forgotten when the program ends.
    store: Option<Arc<GrantStore>>,
    in_memory: Mutex<Vec<Grant>>,
}

impl RunRecorder {
    /// A recorder for this run, whose grants are kept in this store.
    pub fn new(run: Arc<Run>, store: Option<Arc<GrantStore>>) -> Self {
        Self { run, store, in_memory: Mutex::default() }
    }
}

impl Recorder for RunRecorder {
    fn record(&self, events: &[Event]) -> Result<(), ToolError> {
        self.run.journal.append(events).map(drop).map_err(ToolError::from)
    }

    fn claim_call(&self, tool_call_id: &str) -> Result<bool, ToolError> {
        self.run.journal.claim_call(tool_call_id).map_err(ToolError::from)
    }

    fn workspace(&self) -> WorkspaceIdentity {
        self.store.as_ref().map(|store| store.workspace().clone()).unwrap_or_default()
    }

    fn remember(&self, grant: &Grant) -> Result<(), ToolError> {
        self.run.approvals.append(grant).map_err(ToolError::from)?;
        match &self.store {
            _ if grant.scope == ApprovalScope::Call => Ok(()),
            Some(store) => store.add(grant, grant.at).map_err(ToolError::from),
            None => {
                self.in_memory.lock().push(grant.clone());
                Ok(())
            }
        }
    }

    fn grants(&self, now: Timestamp) -> Result<Vec<Grant>, ToolError> {
        match &self.store {
            Some(store) => Ok(store.grants(now).map_err(ToolError::from)?.grants),
            None => Ok(self.in_memory.lock().iter().filter(|grant| grant.is_live(now)).cloned().collect()),
        }
    }

    fn end_grants(&self) -> Result<(), ToolError> {
        let ends =
            |grant: &Grant| grant.run == self.run.id && grant.scope < ApprovalScope::Always && !grant.session_continues;
        self.in_memory.lock().retain(|grant| !ends(grant));
        match &self.store {
            Some(store) => store.remove(ends).map(drop).map_err(ToolError::from),
            None => Ok(()),
        }
    }

    fn keep_pending(&self, call_id: &str, args: &[u8]) -> Result<String, ToolError> {
        Ok(self.run.save_pending(call_id, args).map_err(ToolError::from)?.display().to_string())
    }
}
