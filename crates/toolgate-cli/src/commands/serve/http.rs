//! The HTTP half of `toolgate serve`: where it listens, which clients it allows, and how it stops.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use tokio::net::TcpListener;
use toolgate_console::{AllowedOrigins, ConsoleOptions, HttpOptions, HttpServer, Tls, Token};
use toolgate_journal::{ServerAddress, load_or_create_token};
use toolgate_workspace::Workspace;

use super::limits::ServerLimitArgs;
use super::mcp::McpServerArgs;
use super::stop_on_signal;
use super::tls::TlsArgs;
use crate::attach::ProcessesElsewhere;
use crate::commands::Invocation;
use crate::commands::console::{links, new_link, open_in_browser, workspace_name};
use crate::commands::doctor;
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{BOLD, DIM, YELLOW, paint};
use crate::workspace::{open_workspace, warn, with_attach_socket};

/// Options of the HTTP server.
#[derive(Debug, Args)]
pub(crate) struct HttpServerArgs {
    /// Where to listen; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8731", env = "TOOLGATE_LISTEN")]
    listen: SocketAddr,
    /// Another `Host` that requests may name, with its port.
    #[arg(long, value_name = "HOST:PORT")]
    allow_host: Vec<String>,
    /// Another origin whose pages may send requests.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Open the console in the browser.
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    limits: ServerLimitArgs,
}

impl HttpServerArgs {
    pub(super) fn run(self, invocation: &Invocation, mcp: &McpServerArgs) -> Result<Exit> {
        let tls = self.tls.at(self.listen)?;
        let token_file = invocation.location.config.http_token();
        let token = load_or_create_token(&token_file)
            .with_context(|| format!("the token in {} can't be used", token_file.display()))?;
        let workspace = Arc::new(open_workspace(&invocation.location)?);
        let workers = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?;
        let served = runtime.block_on(self.serve(workspace, &Token::new(token), tls, invocation, mcp));
        runtime.shutdown_background();
        served.map(|()| Exit::Ok)
    }

    async fn serve(
        &self,
        workspace: Arc<Workspace>,
        token: &Token,
        tls: Option<Tls>,
        invocation: &Invocation,
        mcp: &McpServerArgs,
    ) -> Result<()> {
        let listener = TcpListener::bind(self.listen).await.with_context(|| {
            format!("{} can't be listened on; `--listen 127.0.0.1:0` takes any free port", self.listen)
        })?;
        let address = listener.local_addr()?;
        let allowed_origins = AllowedOrigins::at(address, &self.allow_host, &self.allow_origin);
        let stop = stop_on_signal();
        let routes = mcp.routes(Arc::clone(&workspace), &self.limits, stop.clone())?;
        let is_encrypted = tls.is_some();
        let console = Some(console_options(invocation, address, is_encrypted));
        let options = HttpOptions { allowed_origins, limits: self.limits.limits(), tls, console };
        let server = HttpServer::new(Arc::clone(&workspace) as _, token, options)?.with_routes(routes);
        // Without the entry the server works as well; `toolgate console` only has to be told where it is.
        let url = base_url(address, is_encrypted);
        let announced = links(invocation).announce(&ServerAddress { workspace: workspace_name(invocation), url });
        announce(address, is_encrypted, invocation);
        self.show_link(address, is_encrypted, invocation)?;
        with_attach_socket(&workspace, &invocation.location, server.serve(listener, stop)).await;
        drop(announced);
        Ok(())
    }

    /// At a terminal, prints a one-time link to the console, and opens it if that is wanted.
    fn show_link(&self, address: SocketAddr, is_encrypted: bool, invocation: &Invocation) -> Result<()> {
        if invocation.json || (!self.open && !std::io::stderr().is_terminal()) {
            return Ok(());
        }
        let link = new_link(invocation, &base_url(address, is_encrypted))?;
        errln!("\n  {} {}", paint(BOLD, "console"), link);
        errln!(
            "  {}",
            paint(DIM, "The link signs one browser in, once, for ten minutes; `toolgate console` prints another.")
        );
        // Where there is no browser, the server is still wanted.
        if self.open
            && let Err(error) = open_in_browser(&link)
        {
            warn(&format!("{error:#}"));
        }
        Ok(())
    }
}

/// Where a browser finds the server. One that listens everywhere is found on loopback from here.
fn base_url(address: SocketAddr, is_encrypted: bool) -> String {
    let scheme = if is_encrypted { "https" } else { "http" };
    match (address.ip().is_unspecified(), address.is_ipv4()) {
        (true, true) => format!("{scheme}://127.0.0.1:{}", address.port()),
        (true, false) => format!("{scheme}://[::1]:{}", address.port()),
        (false, _) => format!("{scheme}://{address}"),
    }
}

/// What the page needs beside the workspace.
fn console_options(invocation: &Invocation, address: SocketAddr, is_encrypted: bool) -> ConsoleOptions {
    let location = invocation.location.clone();
    let examined = Invocation { location: location.clone(), policy: invocation.policy.clone(), json: true };
    ConsoleOptions {
        access: links(invocation),
        location,
        doctor: Arc::new(move || doctor::report(&examined).map_err(|error| format!("{error:#}"))),
        others: Some(Arc::new(ProcessesElsewhere {
            directory: invocation.location.config.attach_sockets(),
            workspace: invocation.location.directory.display().to_string(),
        })),
        port: address.port(),
        is_encrypted,
    }
}

/// Says where the server listens, on standard error; with `--json` in one line of JSON on standard output.
fn announce(address: SocketAddr, is_encrypted: bool, invocation: &Invocation) {
    let (token_file, scheme) = (invocation.location.config.http_token(), if is_encrypted { "https" } else { "http" });
    if invocation.json {
        let ready = serde_json::json!({ "listening": format!("{scheme}://{address}"), "token_file": token_file });
        outln!("{ready}");
        return;
    }
    if !is_encrypted && !address.ip().is_loopback() {
        errln!(
            "{} the connection is not encrypted; others on the network can read it.",
            paint(YELLOW.bold(), "warning:")
        );
    }
    let field = |name: &str, value: String| errln!("  {} {value}", paint(DIM, format!("{name:<10}")));
    errln!("{}", paint(BOLD, format!("Listening on {scheme}://{address}")));
    field("workspace", invocation.location.directory.display().to_string());
    field("token", format!("in {}; send it as `Authorization: Bearer …`", token_file.display()));
    field("routes", format!("{scheme}://{address}/openapi.json"));
    field("MCP", format!("{scheme}://{address}/mcp"));
    field("approvals", "`toolgate approvals` in another terminal, or POST /v1/approvals/{id}".into());
}
