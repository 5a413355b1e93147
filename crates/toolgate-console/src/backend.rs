//! What the server needs from the program that starts it: the gate and everything that belongs to it.

use std::sync::Arc;

use toolgate_contract::{Clock, ToolError};
use toolgate_journal::{EventStore, Inbox, Run, StateDirectory};
use toolgate_runtime::{ApprovalQueueClient, Gate, Session};

use crate::live_events::LiveEvents;

/// The gate, the record and the approval queue of one workspace.
pub trait ConsoleBackend: Send + Sync + 'static {
    /// The gate that every call goes through.
    fn gate(&self) -> &Gate;
    /// The workspace's record.
    fn state(&self) -> &StateDirectory;
    /// The store of past runs.
    fn store(&self) -> Result<Arc<dyn EventStore>, ToolError>;
    /// The inbox of tasks.
    fn inbox(&self) -> Result<Arc<dyn Inbox>, ToolError>;
    /// The approval queue; none without a signing key, because answers could be forged.
    fn queue(&self) -> Option<&ApprovalQueueClient>;
    /// The source of times and ids.
    fn clock(&self) -> &dyn Clock;
    /// The name of the owner, for the record.
    fn owner(&self) -> String;
    /// Begins a run for a session.
    fn begin(&self, session: &str) -> Result<SessionRun, ToolError>;
    /// Live events of the sessions of all front ends.
    fn live(&self) -> &LiveEvents;
    /// Waits until the store has what was recorded.
    fn finish(&self);
}

/// A session and the run that it is recorded in.
pub struct SessionRun {
    /// The session.
    pub session: Session,
    /// The run.
    pub run: Arc<Run>,
}
