//! `toolgate console`: a one-time link to the console of a running server.

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use toolgate_contract::Clock;
use toolgate_contract::SystemClock;
use toolgate_journal::ConsoleAccess;

use super::Invocation;
use crate::exit::Exit;
use crate::output::{errln, outln};

/// Print a one-time link to the console: the page that shows what agents do, and answers them.
///
/// It needs a server of this workspace that runs (`toolgate serve`). The link signs one browser in, once, and for ten minutes.
/// The part behind `#` is never sent over the network by a browser; the page exchanges it for a cookie that lasts twelve hours.
///
/// Examples:
///   toolgate console
///   toolgate console --open
///   toolgate console --sign-out-all
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ConsoleArgs {
    /// Open it in the browser.
    #[arg(long)]
    open: bool,
    /// The server's address as the browser reaches it, where it isn't the one that the server listens on.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Sign out all browsers of this workspace instead.
    #[arg(long, conflicts_with_all = ["open", "url"])]
    sign_out_all: bool,
}

impl ConsoleArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        if self.sign_out_all {
            let ended = links(invocation).end_all_sessions(&workspace_name(invocation));
            match invocation.json {
                true => outln!("{}", json!({ "signed_out": ended })),
                false => errln!("Signed out: {}.", toolgate_contract::counted(ended, "browser")),
            }
            return Ok(Exit::Ok);
        }
        let url = match self.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => {
                let running = links(invocation).servers(&workspace_name(invocation));
                let Some(server) = running.into_iter().next() else {
                    bail!("no server of this workspace runs; start one with `toolgate serve`")
                };
                server.url
            }
        };
        let link = new_link(invocation, &url)?;
        match invocation.json {
            true => outln!("{}", json!({ "link": link })),
            false => outln!("{link}"),
        }
        if self.open {
            open_in_browser(&link)?;
        }
        Ok(Exit::Ok)
    }
}

/// The links and browser sessions of this user.
pub(super) fn links(invocation: &Invocation) -> ConsoleAccess {
    ConsoleAccess::new(invocation.location.config.console())
}

/// The workspace, as links name it.
pub(super) fn workspace_name(invocation: &Invocation) -> String {
    invocation.location.directory.display().to_string()
}

/// Makes a link to the server at this address.
pub(super) fn new_link(invocation: &Invocation, url: &str) -> Result<String> {
    let made = links(invocation).create_link(&workspace_name(invocation), SystemClock.now());
    let token =
        made.with_context(|| format!("no link can be kept in {}", invocation.location.config.console().display()))?;
    Ok(format!("{url}/#once={token}"))
}

/// Opens a link in the person's browser.
#[allow(clippy::disallowed_methods, reason = "starts the browser of the person who asked for it")]
pub(super) fn open_in_browser(link: &str) -> Result<()> {
    let mut command = std::process::Command::new("xdg-open");
    command.arg(link).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    let started = command.stderr(std::process::Stdio::null()).spawn();
    started.map(drop).context("no browser can be opened (`xdg-open`); open the link by hand")
}
