//! `toolgate with`: a whole client in the sandbox, with its own state and its provider in reach.

mod confined_client;
mod guarded_settings;
mod session_hooks;

use std::ffi::OsString;

use anyhow::{Context, Result, bail};
use clap::Args;

use self::confined_client::ConfinedClient;
use self::guarded_settings::GuardedSettings;
use self::session_hooks::{SessionHooks, without_workspace_hooks};
use super::Invocation;
use super::sandbox::{ClientState, SandboxArgs};
use crate::exit::Exit;
use crate::output::errln;

/// Run a whole client, or any other command, in the sandbox.
///
/// The client can change the workspace and its own state, and reach its provider and the hosts that configuration or `--connect` name;
/// secrets of the workspace are hidden, and so is the rest of your home. What it starts, such as commands and MCP servers, is
/// inside too. What it changes in the workspace is recorded: `toolgate changes` shows it, `toolgate undo` undoes it, and what
/// git, your shell, editors or agents would run automatically is quarantined when it ends.
///
/// Clients that are known: claude, codex, gemini, opencode, copilot. Switches that take the client's own safeguards away are refused.
///
/// Examples:
///   toolgate with claude
///   toolgate with codex --model gpt-5.5
///   toolgate with --connect registry.npmjs.org gemini
///   toolgate with -- ./agent.sh
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct WithArgs {
    /// Let it reach this host too: a name, `*.example.com`, an address or a range; with a port beside 80 and 443 as HOST:PORT.
    /// A server on this machine needs its port: `localhost:8080`.
    #[arg(long, value_name = "HOST")]
    connect: Vec<String>,
    /// Say afterwards what held.
    #[arg(long, short)]
    verbose: bool,
    /// The client or command, and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl WithArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let name = self.command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(client) = ConfinedClient::named(&name) else {
            return SandboxArgs::confining(self.command, self.connect, self.verbose, ClientState::default())
                .run(invocation);
        };
        let words: Vec<String> = self.command[1..].iter().map(|word| word.to_string_lossy().into_owned()).collect();
        if let Some((flag, reason)) = client.refused(&words) {
            bail!("`{flag}` is refused: {reason}");
        }
        let home = invocation.location.home.clone().context("HOME is not set, so the client's state can't be found")?;
        client.check_switches(&invocation.location.directory, &home)?;
        let supported = client.supported().context("its hooks aren't known")?;
        let hooks = SessionHooks::begin(supported, &invocation.location.directory)?;
        let mut command = self.command;
        let mut state = client.state(&home)?;
        state.replaced = without_workspace_hooks(invocation)?;
        hooks.install(&mut command, &home, &mut state)?;
        let hosts = client.hosts().into_iter().chain([hooks.host()]).chain(self.connect).collect();
        let guarded = client.guarded(&home, &invocation.location.directory)?;
        let ended = SandboxArgs::confining(command, hosts, self.verbose, state).run(invocation);
        drop(hooks);
        guarded.into_iter().try_for_each(tell_restored)?;
        ended
    }
}

/// Restores a file of the client's, and says what it had changed for sessions outside.
fn tell_restored(guarded: GuardedSettings) -> Result<()> {
    let file = guarded.file().display().to_string();
    let restored = guarded.restore()?;
    if !restored.is_empty() {
        errln!(
            "{file} is as it was before in what names programs or gives rights: {}. Change that outside of the sandbox.",
            restored.join(", ")
        );
    }
    Ok(())
}
