//! What the program lends to the server: the gate and everything that belongs to it.

use std::sync::Arc;

use toolgate_contract::{Clock, ToolError};
use toolgate_journal::{EventStore, Inbox, Run, StateDirectory};
use toolgate_runtime::{ApprovalQueueClient, Gate, Session};

use crate::live_events::LiveEvents;

/// The gate, the record and the desk of one workspace.
pub trait ConsoleBackend: Send + Sync + 'static {
    /// The gate that every call walks.
    fn gate(&self) -> &Gate;
    /// The workspace's record.
    fn state(&self) -> &StateDirectory;
    /// The store of past runs.
    fn store(&self) -> Result<Arc<dyn EventStore>, ToolError>;
    /// Where tasks wait.
    fn inbox(&self) -> Result<Arc<dyn Inbox>, ToolError>;
    /// The desk on which asks wait; none where answers couldn't be told from forgeries.
    fn queue(&self) -> Option<&ApprovalQueueClient>;
    /// Where times and ids come from.
    fn clock(&self) -> &dyn Clock;
    /// Who holds the owner's token, for the record.
    fn owner(&self) -> String;
    /// Begins a run for a session.
    fn begin(&self, session: &str) -> Result<SessionRun, ToolError>;
    /// What passes in the sessions that this house has begun, of all front ends.
    fn live(&self) -> &LiveEvents;
    /// Waits until the store has what was recorded.
    fn finish(&self);
}

/// A client's stay: its session and the run that is recorded.
pub struct SessionRun {
    /// The session.
    pub session: Session,
    /// Its run.
    pub run: Arc<Run>,
}
