//! `toolgate serve`: the gate for other programs.

mod budget;
mod host;
mod loopback;

use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use toolgate_mcp::{Options, Server};

use self::host::McpHost;
use super::Setting;
use crate::exit::Exit;
use crate::wiring::Desk;

/// Serve this workspace's tools to other programs.
///
/// With `--stdio` it speaks MCP to the client that started it, in both eras of the protocol (2025-11-25 and 2026-07-28).
/// Each client has its own session and run; questions are asked through the client if it can show them. It ends when the
/// client hangs up, with everything that the client had started.
///
/// Examples:
///   toolgate serve --stdio
///   toolgate serve --stdio --tools read,edit,shell
///   toolgate serve --stdio --tools reading
///   claude mcp add toolgate -- toolgate serve --stdio
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Serve {
    /// Speak MCP on standard input and output.
    #[arg(long)]
    stdio: bool,
    /// Offer only these tools, by name or by set: `reading`, `files`, `all`.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    tools: Vec<String>,
    /// Offer what the conformance suite asks for, on a free port of loopback and without a token.
    #[arg(long, hide = true, conflicts_with = "stdio")]
    conformance: bool,
}

impl Serve {
    pub(crate) fn run(self, setting: &Setting) -> Result<Exit> {
        if !self.stdio && !self.conformance {
            bail!("there is nothing to serve on; say `toolgate serve --stdio`");
        }
        let fixtures = if self.conformance { toolgate_mcp::conformance_tools() } else { Vec::new() };
        let desk = Desk::open_with(&setting.place, fixtures)?;
        let ceilings = budget::ceilings(&self.tools, desk.gate.declarations())?;
        let host = Arc::new(McpHost { desk, ceilings, workspace: setting.place.workspace.clone() });
        let options = Options { conformance: self.conformance, ..Options::default() };
        let server = Server::new(Arc::clone(&host) as _, options)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let served = runtime.block_on(async {
            stop_on_signal(&server)?;
            match self.stdio {
                true => toolgate_mcp::serve_stdio(&server).await,
                false => loopback::serve(&server).await?,
            }
            anyhow::Ok(())
        });
        // A thread may still wait for input that nobody wants.
        runtime.shutdown_background();
        host.desk.finish();
        served.map(|()| Exit::Ok)
    }
}

/// The first signal ends every call and then the server; a second one ends the program at once.
fn stop_on_signal(server: &Arc<Server>) -> Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let server = Arc::clone(server);
    tokio::spawn(async move {
        for is_second in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if is_second {
                std::process::exit(130);
            }
            server.stop();
        }
    });
    Ok(())
}
