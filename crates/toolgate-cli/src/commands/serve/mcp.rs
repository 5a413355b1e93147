//! The MCP half of `toolgate serve`: one client on standard input and output, or the endpoint `/mcp` of the HTTP server.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use clap::Args;
use toolgate_contract::CancellationToken;
use toolgate_dialects::DialectSet;
use toolgate_mcp::{McpOptions, McpServer};
use toolgate_workspace::Workspace;

use super::limits::ServerLimitArgs;
use super::{stop_on_signal, tool_sets};
use crate::commands::Invocation;
use crate::commands::dialects::checked;
use crate::exit::Exit;
use crate::workspace::{open_workspace, with_attach_socket};

/// Options of the MCP server.
#[derive(Debug, Args)]
pub(crate) struct McpServerArgs {
    /// Speak MCP on standard input and output, in place of HTTP.
    #[arg(long)]
    stdio: bool,
    /// Offer only these tools over MCP, by name or by set: `reading`, `files`, `all`.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    tools: Vec<String>,
    /// Offer the tools over MCP under the names that a client's model knows; `toolgate dialects` lists them. Several can be
    /// named, `native` for the native tools among them. Without this, `dialects.clients` of the configuration decides by
    /// each client's name.
    #[arg(long, value_name = "NAMES")]
    dialect: Option<DialectSet>,
}

impl McpServerArgs {
    /// Whether MCP alone is wanted, and not the HTTP server.
    pub(super) fn is_alone(&self) -> bool {
        self.stdio
    }

    pub(super) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let workspace = Arc::new(open_workspace(&invocation.location)?);
        let server = McpServer::new(Arc::clone(&workspace), self.options(&workspace)?)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async {
            stop_with(&server, stop_on_signal());
            with_attach_socket(&workspace, &invocation.location, toolgate_mcp::serve_stdio(&server)).await;
        });
        // A thread may still wait for input that nobody wants.
        runtime.shutdown_background();
        workspace.finish();
        Ok(Exit::Ok)
    }

    /// Which tools are offered, and under which names.
    fn options(&self, workspace: &Workspace) -> Result<McpOptions> {
        let dialects = self.dialect.clone().map(|set| checked(set, workspace.gate.declarations())).transpose()?;
        Ok(McpOptions {
            ceilings: tool_sets::ceilings(&self.tools, workspace.gate.declarations())?,
            dialects,
            client_dialects: client_dialects(workspace)?,
            ..McpOptions::default()
        })
    }

    /// The endpoint `/mcp` for a server that authenticates requests itself, until that is told to stop.
    pub(super) fn routes(
        &self,
        workspace: Arc<Workspace>,
        limits: &ServerLimitArgs,
        stop: CancellationToken,
    ) -> Result<Router> {
        let options = McpOptions {
            max_message_bytes: limits.max_body_bytes,
            max_requests: limits.max_calls_per_session,
            is_preauthenticated: true,
            ..self.options(&workspace)?
        };
        let server = McpServer::new(workspace, options)?;
        let routes = Router::new().nest("/mcp", toolgate_mcp::service(Arc::clone(&server)));
        stop_with(&server, stop);
        Ok(routes)
    }
}

/// The dialects of clients by their names, as configured.
fn client_dialects(workspace: &Workspace) -> Result<BTreeMap<String, DialectSet>> {
    let read = |(client, names): (&String, &String)| {
        let set = names.parse::<DialectSet>().map_err(|error| anyhow::anyhow!("{error}"));
        let set = set.and_then(|set| checked(set, workspace.gate.declarations()));
        Ok((client.clone(), set.with_context(|| format!("`dialects.clients` of `{client}` can't be spoken"))?))
    };
    workspace.client_dialects.iter().map(read).collect()
}

/// Ends every call and then the server, once it is told to stop.
fn stop_with(server: &Arc<McpServer>, stop: CancellationToken) {
    let server = Arc::clone(server);
    tokio::spawn(async move {
        stop.cancelled().await;
        server.stop();
    });
}
