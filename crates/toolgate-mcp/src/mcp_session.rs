//! A client's session: each client gets a session and a run of its own.

use std::sync::Arc;

use toolgate_contract::{Event, ToolError};
use toolgate_journal::Run;
use toolgate_runtime::{Approver, EventSink, QuestionAnswerer, Session};
use toolgate_workspace::{LiveEvents, RunChoice};

use crate::server::McpServer;

/// How many letters of a client's name its session's id keeps.
const MAX_LETTERS: usize = 32;

/// Who a client is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientIdentity {
    /// Who it was authenticated as: a token's owner, or `local`.
    pub principal: String,
    /// What it calls itself. Nobody has checked that.
    pub name: String,
}

/// How a session reaches the client that it belongs to.
pub(crate) struct ClientHandlers {
    /// Answers approval requests.
    pub(crate) approver: Arc<dyn Approver>,
    /// Answers the agent's own questions.
    pub(crate) answerer: Arc<dyn QuestionAnswerer>,
    /// Receives the session's events.
    pub(crate) sink: Arc<dyn EventSink>,
}

/// A client's session. Its run ends when this is dropped.
pub(crate) struct McpSession {
    /// The session of the runtime.
    pub(crate) session: Session,
    run: Arc<Run>,
}

impl McpSession {
    /// Opens a session with a run of its own for a client, whose person answers through these handlers.
    pub(crate) fn open(
        server: &McpServer,
        identity: &ClientIdentity,
        handlers: ClientHandlers,
    ) -> Result<Self, ToolError> {
        let workspace = &server.workspace;
        let session = format!("mcp_{}_{}", letters(&identity.name), workspace.clock.id().simple());
        let recorded = workspace.begin(&RunChoice { run: None, session, front_end: "mcp" })?;
        let ClientHandlers { approver, answerer, sink } = handlers;
        let sink = Arc::new(EventTee { client: sink, listeners: workspace.live.clone() });
        let mut session = recorded.session.approved_by(approver).answered_by(answerer).watched_by(sink);
        session.ceilings.clone_from(&server.options.ceilings);
        Ok(Self { session, run: recorded.run })
    }
}

impl Drop for McpSession {
    fn drop(&mut self) {
        // The end of a run is a courtesy to readers; what happened is recorded already.
        let _ = self.run.end();
    }
}

/// Sends events to the client and to those who listen over HTTP.
struct EventTee {
    client: Arc<dyn EventSink>,
    listeners: LiveEvents,
}

impl EventSink for EventTee {
    fn event(&self, event: &Event) {
        self.client.event(event);
        self.listeners.event(event);
    }

    fn live(&self, event: &Event) {
        self.client.live(event);
        self.listeners.live(event);
    }

    fn is_watched(&self) -> bool {
        self.client.is_watched() || self.listeners.is_watched()
    }
}

/// A name as part of a session's id, so that the record shows who called.
fn letters(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(plain).take(MAX_LETTERS).collect();
    if name.is_empty() { "client".into() } else { name }
}
