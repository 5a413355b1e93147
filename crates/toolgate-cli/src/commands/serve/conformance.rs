//! MCP over HTTP alone, on a free port of loopback, for the conformance suite.

use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use tokio::net::TcpListener;
use toolgate_mcp::McpServer;

/// Serves `/mcp` until the server is stopped; prints where.
pub(super) async fn serve(server: &Arc<McpServer>) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    anstream::println!("http://{}/mcp", listener.local_addr()?);
    let router = Router::new().nest("/mcp", toolgate_mcp::service(Arc::clone(server)));
    let stopped = server.stopped();
    axum::serve(listener, router).with_graceful_shutdown(stopped).await?;
    Ok(())
}
