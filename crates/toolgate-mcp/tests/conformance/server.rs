//! The server that the public conformance suite is run against: MCP over HTTP on a free port of loopback, without a token,
//! with the tools, prompts and resources that the suite names. The gate, the journal and the MCP server are the real ones.

mod extension;
mod fixtures;
mod prompts;

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;
use toolgate_contract::{Clock, ToolError};
use toolgate_mcp::{ClientHandlers, ClientIdentity, McpOptions, McpServer, McpSession, ServerBackend, service};
use toolgate_runtime::{Ceiling, Gate};
use toolgate_testkit::TestWorkspace;

use crate::extension::ConformanceExtension;

/// A temporary workspace that serves MCP.
struct ConformanceBackend(TestWorkspace);

impl ServerBackend for ConformanceBackend {
    fn gate(&self) -> &Gate {
        &self.0.gate
    }

    fn clock(&self) -> &dyn Clock {
        self.0.clock.as_ref()
    }

    fn workspace(&self) -> &Path {
        self.0.path()
    }

    fn ceilings(&self) -> &[Ceiling] {
        &[]
    }

    fn open_session(&self, identity: &ClientIdentity, handlers: ClientHandlers) -> Result<McpSession, ToolError> {
        let ClientHandlers { approver, answerer, sink } = handlers;
        let name = format!("{}_{}", identity.principal, self.clock().id().simple());
        let (session, run) = self.0.begin_session(&name);
        let session = session.approved_by(approver).answered_by(answerer).watched_by(sink);
        Ok(McpSession::new(session, move || drop(run.end())))
    }
}

/// Prints the URL of the endpoint, then serves until the process is killed.
#[tokio::main]
async fn main() -> std::io::Result<()> {
    let extension = Arc::new(ConformanceExtension::default());
    let tools = toolgate_tools::all().into_iter().chain(fixtures::all(&extension));
    let backend = Arc::new(ConformanceBackend(TestWorkspace::new(tools, "")));
    let server = McpServer::with_extension(backend, McpOptions::default(), extension)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, Router::new().nest("/mcp", service(server))).await
}
