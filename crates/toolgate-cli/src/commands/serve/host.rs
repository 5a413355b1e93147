//! The desk as the host of an MCP server: each client gets a session and a run of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate_console::Passing;
use toolgate_contract::{Clock, ErrorCode, Event, ToolError};
use toolgate_mcp::{Guest, Host, Present, Visitor};
use toolgate_policy::Ceiling;
use toolgate_runtime::{EventSink, Gate};

use crate::wiring::{Desk, RunChoice};

/// Letters of a client's name that its session keeps.
const MOST_LETTERS: usize = 32;

/// A desk that serves MCP.
pub(super) struct McpHost {
    pub(super) desk: Arc<Desk>,
    pub(super) ceilings: Vec<Ceiling>,
    pub(super) workspace: PathBuf,
}

impl Host for McpHost {
    fn gate(&self) -> &Gate {
        &self.desk.gate
    }

    fn clock(&self) -> &dyn Clock {
        self.desk.clock.as_ref()
    }

    fn workspace(&self) -> &Path {
        &self.workspace
    }

    fn ceilings(&self) -> &[Ceiling] {
        &self.ceilings
    }

    fn receive(&self, visitor: &Visitor, present: Present) -> Result<Guest, ToolError> {
        let session = format!("mcp_{}_{}", letters(&visitor.name), self.desk.clock.id().simple());
        let choice = RunChoice { run: None, session, front_end: "mcp" };
        let stay = self.desk.begin(&choice).map_err(|fault| {
            ToolError::new(ErrorCode::IoError, format!("The session can't begin: {fault:#}."))
                .with_hint("Ask the person to look at the workspace's folder `.toolgate`.")
        })?;
        let Present { approver, respondent, sink } = present;
        let sink = Arc::new(Shown { client: sink, listeners: self.desk.passing.clone() });
        let mut session = stay.session.approved_by(approver).answered_by(respondent).watched_by(sink);
        session.ceilings.clone_from(&self.ceilings);
        let run = stay.run;
        Ok(Guest::new(session, move || {
            // The record's end is a courtesy to readers; what happened is in it already.
            let _ = run.end();
        }))
    }
}

/// Shows what happens to the client, and to those who listen over HTTP.
struct Shown {
    client: Arc<dyn EventSink>,
    listeners: Passing,
}

impl EventSink for Shown {
    fn event(&self, event: &Event) {
        self.client.event(event);
        self.listeners.event(event);
    }

    fn passing(&self, event: &Event) {
        self.client.passing(event);
        self.listeners.passing(event);
    }

    fn is_watched(&self) -> bool {
        self.client.is_watched() || self.listeners.is_watched()
    }
}

/// A name as it can stand in a session's id, so that the record tells who called.
fn letters(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(plain).take(MOST_LETTERS).collect();
    if name.is_empty() { "client".into() } else { name }
}
