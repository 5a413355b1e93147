//! The MCP half of `toolgate serve`: one client on standard input and output, the endpoint
//! `/mcp` of the HTTP server, or the conformance suite on loopback.

use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use clap::Args;
use toolgate_contract::CancellationToken;
use toolgate_mcp::{McpOptions, McpServer};

use super::limits::ServerLimitArgs;
use super::mcp_backend::McpBackend;
use super::{conformance, stop_on_signal, tool_sets};
use crate::commands::Invocation;
use crate::exit::Exit;
use crate::wiring::Workspace;

/// Options of the MCP server.
#[derive(Debug, Args)]
pub(crate) struct McpServerArgs {
    /// Speak MCP on standard input and output, in place of HTTP.
    #[arg(long)]
    stdio: bool,
    /// Offer only these tools over MCP, by name or by set: `reading`, `files`, `all`.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    tools: Vec<String>,
    /// Offer what the conformance suite asks for, on a free port of loopback and without a token.
    #[arg(long, hide = true, conflicts_with = "stdio")]
    conformance: bool,
}

impl McpServerArgs {
    /// Whether MCP alone is wanted, and not the HTTP server.
    pub(super) fn is_alone(&self) -> bool {
        self.stdio || self.conformance
    }

    pub(super) fn run(self, setting: &Invocation) -> Result<Exit> {
        let fixtures = if self.conformance { toolgate_mcp::conformance_tools() } else { Vec::new() };
        let host = self.host(Arc::new(Workspace::open_with(&setting.place, fixtures, Vec::new())?), setting)?;
        let options = McpOptions { conformance: self.conformance, ..McpOptions::default() };
        let server = McpServer::new(Arc::clone(&host) as _, options)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let served = runtime.block_on(async {
            stop_with(&server, stop_on_signal());
            let work = async {
                match self.stdio {
                    true => toolgate_mcp::serve_stdio(&server).await,
                    false => conformance::serve(&server).await?,
                }
                anyhow::Ok(())
            };
            host.workspace.with_door(work).await
        });
        // A thread may still wait for input that nobody wants.
        runtime.shutdown_background();
        host.workspace.finish();
        served.map(|()| Exit::Ok)
    }
}

impl McpServerArgs {
    /// The endpoint `/mcp` for a server that has a door of its own, until that is told to stop.
    pub(super) fn routes(
        &self,
        workspace: Arc<Workspace>,
        setting: &Invocation,
        carries: &ServerLimitArgs,
        stop: CancellationToken,
    ) -> Result<Router> {
        let options = McpOptions {
            most_bytes: carries.max_body_bytes,
            most_underway: carries.max_calls_per_session,
            is_behind_door: true,
            ..McpOptions::default()
        };
        let server = McpServer::new(self.host(workspace, setting)?, options)?;
        let routes = Router::new().nest("/mcp", toolgate_mcp::service(Arc::clone(&server)));
        stop_with(&server, stop);
        Ok(routes)
    }

    fn host(&self, workspace: Arc<Workspace>, setting: &Invocation) -> Result<Arc<McpBackend>> {
        let ceilings = tool_sets::ceilings(&self.tools, workspace.gate.declarations())?;
        Ok(Arc::new(McpBackend { workspace, ceilings, directory: setting.place.workspace.clone() }))
    }
}

/// Ends every call and then the server, once it is told to stop.
fn stop_with(server: &Arc<McpServer>, stop: CancellationToken) {
    let server = Arc::clone(server);
    tokio::spawn(async move {
        stop.cancelled().await;
        server.stop();
    });
}
