//! A client's session: each client gets a session and a run of its own.

use std::sync::Arc;

use toolgate_contract::{ApprovalScope, BoxFuture, Event, ToolError};
use toolgate_journal::Run;
use toolgate_runtime::{
    ApprovalAnswer, ApprovalRequest, Approver, EventSink, NobodyAnswers, NobodyToAsk, PrincipalSession,
    QuestionAnswerer, Session,
};
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

/// A client's session: its own, or the one that its token stands for. The run of its own ends when this is dropped.
pub(crate) struct McpSession {
    /// The session of the runtime.
    pub(crate) session: Session,
    /// The run of a session of the client's own.
    own_run: Option<Arc<Run>>,
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
        let session = attach(recorded.session, server, handlers);
        Ok(Self { session, own_run: Some(recorded.run) })
    }

    /// Lets a client act in the session that its token stands for: same run, tools and grants. If the session may answer
    /// its own approvals, the client's person does, for no longer than the session lasts.
    pub(crate) fn join(server: &McpServer, principal: &PrincipalSession, handlers: ClientHandlers) -> Self {
        let ClientHandlers { approver, answerer, sink } = handlers;
        let handlers = match principal.may_answer {
            true => ClientHandlers { approver: Arc::new(NeverAlways(approver)), answerer, sink },
            false => ClientHandlers { approver: Arc::new(NobodyToAsk), answerer: Arc::new(NobodyAnswers), sink },
        };
        Self { session: attach(principal.session.for_another_client(), server, handlers), own_run: None }
    }

    /// Ends a session of the client's own, with its processes; one that its token stands for goes on.
    pub(crate) async fn end(&self) {
        if self.own_run.is_some() {
            self.session.end().await;
        }
    }
}

impl Drop for McpSession {
    fn drop(&mut self) {
        // The end of a run is a courtesy to readers; what happened is recorded already.
        let _ = self.own_run.as_ref().map(|run| run.end());
    }
}

/// A session that a client's person answers and that the client watches, held to the server's sets of tools.
fn attach(session: Session, server: &McpServer, handlers: ClientHandlers) -> Session {
    let ClientHandlers { approver, answerer, sink } = handlers;
    let sink = Arc::new(EventTee { client: sink, listeners: server.workspace.live.clone() });
    let mut session = session.approved_by(approver).answered_by(answerer).watched_by(sink);
    session.ceilings.extend(server.options.ceilings.iter().cloned());
    session
}

/// Offers every scope but "always", which would reach the sessions of others.
struct NeverAlways(Arc<dyn Approver>);

impl Approver for NeverAlways {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let mut request = request.clone();
            request.scopes.retain(|offer| offer.scope != ApprovalScope::Always);
            self.0.ask(&request).await
        })
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
