//! The server that the public conformance suite is run against: MCP over HTTP on a free port of loopback, without a token,
//! with the tools, prompts and resources that the suite names. The gate, the journal and the MCP server are the real ones.

mod extension;
mod fixtures;
mod prompts;

use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;
use toolgate_mcp::{McpOptions, McpServer, service};
use toolgate_testkit::TestWorkspace;

use crate::extension::ConformanceExtension;

/// Prints the URL of the endpoint, then serves until the process is killed.
#[tokio::main]
async fn main() -> std::io::Result<()> {
    let extension = Arc::new(ConformanceExtension::default());
    let tools = toolgate_tools::all().into_iter().chain(fixtures::all(&extension));
    let world = TestWorkspace::new(tools, "");
    let server = McpServer::with_extension(world.workspace(), McpOptions::default(), extension)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, Router::new().nest("/mcp", service(server))).await
}
