//! What a server needs from whoever starts it: the gate, a clock, and a session for each client.

use std::path::Path;
use std::sync::Arc;

use toolgate_contract::{Clock, ToolError};
use toolgate_runtime::{Approver, Ceiling, EventSink, Gate, QuestionAnswerer, Session};

/// Whoever starts a server.
pub trait ServerBackend: Send + Sync + 'static {
    /// The one way to a tool.
    fn gate(&self) -> &Gate;
    /// Time and fresh ids.
    fn clock(&self) -> &dyn Clock;
    /// The directory that tools work in.
    fn workspace(&self) -> &Path;
    /// Sets of tools that no client goes beyond.
    fn ceilings(&self) -> &[Ceiling];
    /// Begins a client's stay: a session and a run of its own, with this person at the client.
    fn receive(&self, visitor: &ClientIdentity, present: ClientHandlers) -> Result<McpSession, ToolError>;
}

/// Who is there at a client. Others may be asked beside them.
pub struct ClientHandlers {
    /// Answers asks.
    pub approver: Arc<dyn Approver>,
    /// Answers the agent's own questions.
    pub answerer: Arc<dyn QuestionAnswerer>,
    /// Sees what happens.
    pub sink: Arc<dyn EventSink>,
}

/// A client that has made its first call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientIdentity {
    /// Who it is by the way it came in: a token's owner, or `local`.
    pub principal: String,
    /// What it calls itself. Nobody has checked that.
    pub name: String,
}

/// A client's stay. It ends when this is dropped.
pub struct McpSession {
    /// Its session.
    pub session: Session,
    leave: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl McpSession {
    /// A stay in this session; `leave` is done when it ends.
    pub fn new(session: Session, leave: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { session, leave: Some(Box::new(leave)) }
    }
}

impl Drop for McpSession {
    fn drop(&mut self) {
        if let Some(leave) = self.leave.take() {
            leave();
        }
    }
}
