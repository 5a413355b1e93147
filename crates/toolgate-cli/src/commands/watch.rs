//! `toolgate watch`: follows a workspace on the whole terminal, and answers what waits.

use std::io::IsTerminal;

use anyhow::{Result, bail};
use clap::Args;

use super::Invocation;
use crate::exit::Exit;
use crate::watcher::{Watcher, WholeTerminal};

/// Follow this workspace on the terminal: calls at work, what waits for your answer, to-do lists, output and events.
///
/// It shows what every front end does here: agents, MCP clients, the HTTP server and other terminals. Requests are answered
/// with the letters that they offer; the answer counts once the request has been shown for half a second. Tab goes to
/// the next request, `q` quits.
///
/// Examples:
///   toolgate watch
///   toolgate -w ~/project watch
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct WatchArgs;

impl WatchArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        if !std::io::stderr().is_terminal() || !std::io::stdin().is_terminal() {
            bail!("`toolgate watch` needs a terminal; `toolgate runs tail --follow` prints events to a pipe")
        }
        let mut watcher = Watcher::of_workspace(&invocation.location)?;
        let _screen = WholeTerminal::enter()?;
        while watcher.step()? {}
        Ok(Exit::Ok)
    }
}
