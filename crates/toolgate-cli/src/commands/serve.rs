//! `toolgate serve`: the gate for other programs.

mod http;
mod limits;
mod mcp;
mod tls;
mod tool_sets;

use anyhow::Result;
use clap::Args;

use toolgate_contract::CancellationToken;

use super::Invocation;
use crate::exit::Exit;
use crate::output::errln;
use crate::signals::cancel_on_signal;
use crate::terminal::{DIM, paint};

/// Serve this workspace's tools to other programs.
///
/// With `--stdio` it speaks MCP to the client that started it, in both protocol versions (2025-11-25 and 2026-07-28).
/// Each client has its own session and run; questions are asked through the client if it can show them. It ends when the
/// client disconnects, with everything that the client had started.
///
/// Otherwise it listens on loopback, for HTTP. Every request needs the token from the file that is named when the server
/// starts; `GET /openapi.json` describes what can be asked, and `/mcp` speaks MCP, to the owner and to sessions. Beyond loopback it
/// listens only with a certificate. Ctrl-C, SIGTERM or SIGHUP ends every call and its processes, finishes the record and stops;
/// another one more than a second later leaves at once.
///
/// Examples:
///   toolgate serve --stdio
///   toolgate serve --stdio --tools read,edit,shell
///   claude mcp add toolgate -- toolgate serve --stdio
///   toolgate serve --listen 127.0.0.1:9000
///   toolgate serve --listen 0.0.0.0:8731 --tls-cert gate.pem --tls-key gate.key --allow-host gate.example.com:8731
///   curl -H "Authorization: Bearer $(cat ~/.local/state/toolgate/http.token)" \
///        -H 'Content-Type: application/json' -d '{"name":"list"}' http://127.0.0.1:8731/v1/calls
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    mcp: mcp::McpServerArgs,
    #[command(flatten)]
    http: http::HttpServerArgs,
}

impl ServeArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        match self.mcp.is_alone() {
            true => self.mcp.run(invocation),
            false => self.http.run(invocation, &self.mcp),
        }
    }
}

/// Stops in order at the first signal.
fn stop_on_signal() -> CancellationToken {
    let stop = CancellationToken::new();
    let announce = || errln!("{}", paint(DIM, "Stopping: calls are cancelled and the record is finished."));
    cancel_on_signal(stop.clone(), announce);
    stop
}
