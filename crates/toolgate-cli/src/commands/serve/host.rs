//! The desk as the host of an MCP server: each client gets a session and a run of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate_contract::{Clock, ErrorCode, ToolError};
use toolgate_mcp::{Guest, Host, Visitor};
use toolgate_policy::Ceiling;
use toolgate_runtime::{Approver, EventSink, Gate};

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

    fn receive(
        &self,
        visitor: &Visitor,
        approver: Arc<dyn Approver>,
        sink: Arc<dyn EventSink>,
    ) -> Result<Guest, ToolError> {
        let session = format!("mcp_{}_{}", letters(&visitor.name), self.desk.clock.id().simple());
        let choice = RunChoice { run: None, session, front_end: "mcp" };
        let stay = self.desk.begin(&choice).map_err(|fault| {
            ToolError::new(ErrorCode::IoError, format!("The session can't begin: {fault:#}."))
                .with_hint("Ask the person to look at the workspace's folder `.toolgate`.")
        })?;
        let mut session = stay.session.approved_by(approver).watched_by(sink);
        session.ceilings.clone_from(&self.ceilings);
        let run = stay.run;
        Ok(Guest::new(session, move || {
            // The record's end is a courtesy to readers; what happened is in it already.
            let _ = run.end();
        }))
    }
}

/// A name as it can stand in a session's id, so that the record tells who called.
fn letters(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(plain).take(MOST_LETTERS).collect();
    if name.is_empty() { "client".into() } else { name }
}
