//! What a server needs from the program that starts it: the gate, a clock, and a session for each client.

use std::path::Path;
use std::sync::Arc;

use toolgate_contract::{Clock, ToolError};
use toolgate_runtime::{Approver, Ceiling, EventSink, Gate, QuestionAnswerer, Session};

/// The program that starts a server.
pub trait ServerBackend: Send + Sync + 'static {
    /// The gate that every call goes through.
    fn gate(&self) -> &Gate;
    /// The source of times and fresh ids.
    fn clock(&self) -> &dyn Clock;
    /// The directory that tools work in.
    fn workspace(&self) -> &Path;
    /// Sets of tools that every client is held to.
    fn ceilings(&self) -> &[Ceiling];
    /// Opens a session with a run of its own for a client, whose person answers through these handlers.
    fn open_session(&self, identity: &ClientIdentity, handlers: ClientHandlers) -> Result<McpSession, ToolError>;
}

/// How a session reaches the client that it belongs to. The backend may ask others as well.
pub struct ClientHandlers {
    /// Answers approval requests.
    pub approver: Arc<dyn Approver>,
    /// Answers the agent's own questions.
    pub answerer: Arc<dyn QuestionAnswerer>,
    /// Receives the session's events.
    pub sink: Arc<dyn EventSink>,
}

/// Who a client is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientIdentity {
    /// Who it was authenticated as: a token's owner, or `local`.
    pub principal: String,
    /// What it calls itself. Nobody has checked that.
    pub name: String,
}

/// A client's session. It ends when this is dropped.
pub struct McpSession {
    /// The session of the runtime.
    pub session: Session,
    on_end: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl McpSession {
    /// Wraps a session; `on_end` runs when it ends.
    pub fn new(session: Session, on_end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { session, on_end: Some(Box::new(on_end)) }
    }
}

impl Drop for McpSession {
    fn drop(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            on_end();
        }
    }
}
