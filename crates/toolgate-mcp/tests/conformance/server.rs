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
    let world = world(&extension);
    let server = McpServer::with_extension(world.workspace(), McpOptions::default(), extension)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, Router::new().nest("/mcp", service(server))).await
}

/// Anybody on this machine can call, without a token: so there are the suite's tools alone, which do nothing.
fn world(extension: &Arc<ConformanceExtension>) -> TestWorkspace {
    TestWorkspace::new(fixtures::all(extension), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_real_tool_is_offered() {
        let world = world(&Arc::default());
        let workspace = world.workspace();
        let offered: Vec<&str> = workspace.gate.declarations().map(|tool| tool.name.as_str()).collect();
        let real: Vec<String> = toolgate_tools::all().iter().map(|tool| tool.declaration().name.clone()).collect();
        assert!(!offered.is_empty() && !real.is_empty());
        assert!(offered.iter().all(|name| !real.iter().any(|real| real == name)), "{offered:?}");
    }
}
