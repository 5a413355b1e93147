//! The workspace as the backend of an MCP server: each client gets a session and a run of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate_console::LiveEvents;
use toolgate_contract::{Clock, ErrorCode, Event, ToolError};
use toolgate_mcp::{ClientHandlers, ClientIdentity, McpSession, ServerBackend};
use toolgate_policy::Ceiling;
use toolgate_runtime::{EventSink, Gate};

use crate::wiring::{RunChoice, Workspace};

/// Letters of a client's name that its session's id keeps.
const MAX_LETTERS: usize = 32;

/// A workspace that serves MCP.
pub(super) struct McpBackend {
    pub(super) workspace: Arc<Workspace>,
    pub(super) ceilings: Vec<Ceiling>,
    /// Where the workspace is.
    pub(super) directory: PathBuf,
}

impl ServerBackend for McpBackend {
    fn gate(&self) -> &Gate {
        &self.workspace.gate
    }

    fn clock(&self) -> &dyn Clock {
        self.workspace.clock.as_ref()
    }

    fn workspace(&self) -> &Path {
        &self.directory
    }

    fn ceilings(&self) -> &[Ceiling] {
        &self.ceilings
    }

    fn open_session(&self, identity: &ClientIdentity, handlers: ClientHandlers) -> Result<McpSession, ToolError> {
        let session = format!("mcp_{}_{}", letters(&identity.name), self.workspace.clock.id().simple());
        let choice = RunChoice { run: None, session, front_end: "mcp" };
        let recorded = self.workspace.begin(&choice).map_err(|fault| {
            ToolError::new(ErrorCode::IoError, format!("The session can't begin: {fault:#}."))
                .with_hint("Ask the person to look at the workspace's directory `.toolgate`.")
        })?;
        let ClientHandlers { approver, answerer, sink } = handlers;
        let sink = Arc::new(EventTee { client: sink, listeners: self.workspace.live.clone() });
        let mut session = recorded.session.approved_by(approver).answered_by(answerer).watched_by(sink);
        session.ceilings.clone_from(&self.ceilings);
        let run = recorded.run;
        Ok(McpSession::new(session, move || {
            // The end of a run is a courtesy to readers; what happened is recorded already.
            let _ = run.end();
        }))
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
