//! `toolgate hook`: answers the hooks of clients, and runs the commands that they were told to run here.

mod answering;
pub(super) mod confined;
mod doctor;
mod exec;
mod helper;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use toolgate_hooks::{CommandPlace, HookClient, HookOutput, HookedWorkspace, client_named, client_tool};

use super::{Invocation, block_on};
use crate::exit::Exit;
use crate::workspace::open_workspace_with;

/// Judge what a client's own tools do, from the client's hooks.
///
/// `toolgate init --for CLIENT --hooks --write` sets a client up; the client then calls this by itself. The event comes on standard
/// input, and the decision goes out in the client's own form. Whatever goes wrong, the call is denied.
///
/// Examples:
///   toolgate init --for claude --hooks --write
///   echo '{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Read","tool_input":{"file_path":".env"}}' |
///     toolgate hook claude
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    verb: HookVerb,
}

#[derive(Debug, Subcommand)]
enum HookVerb {
    /// Answer an event of Claude Code.
    Claude(EventArgs),
    /// Answer an event of Codex.
    Codex(EventArgs),
    /// Answer an event of Gemini CLI.
    Gemini(EventArgs),
    /// Answer an event of opencode's plugin.
    Opencode(EventArgs),
    /// Answer an event of GitHub Copilot CLI.
    Copilot(EventArgs),
    /// Answer an event of Cursor.
    Cursor(EventArgs),
    /// Answer an event of goose.
    Goose(EventArgs),
    /// Run a command that a hook has judged; hooks put this in a command's place.
    Exec(exec::ExecArgs),
    Doctor(doctor::HookDoctorArgs),
    /// Answer events on a socket until none came for a while; hooks start this by themselves.
    #[command(hide = true)]
    Serve,
}

/// The event of a hook.
#[derive(Debug, Args)]
struct EventArgs {
    /// The event's name, for clients whose events don't say it.
    event: Option<String>,
    /// The file that names who judges, where the whole client is confined.
    #[arg(long, value_name = "FILE", hide = true)]
    confined: Option<PathBuf>,
}

impl HookArgs {
    /// Answers, also where the workspace can't be found: then the call is denied.
    pub(crate) fn run(self, invocation: impl FnOnce() -> Result<Invocation>) -> Result<Exit> {
        let (client, event) = match self.verb {
            HookVerb::Exec(exec) => return exec.run(&invocation()?),
            HookVerb::Doctor(doctor) => return doctor.run(&invocation()?),
            HookVerb::Serve => return helper::serve(&invocation()?),
            HookVerb::Claude(event) => ("claude", event),
            HookVerb::Codex(event) => ("codex", event),
            HookVerb::Gemini(event) => ("gemini", event),
            HookVerb::Opencode(event) => ("opencode", event),
            HookVerb::Copilot(event) => ("copilot", event),
            HookVerb::Cursor(event) => ("cursor", event),
            HookVerb::Goose(event) => ("goose", event),
        };
        let client: &'static HookClient =
            client_named(client).expect("every client of the command line is in the list");
        let name = event.event.as_deref();
        Ok(match event.confined {
            Some(judge) => answering::answer(client, name, |request| confined::ask(&judge, request)),
            None => answering::answer(client, name, |request| judge_here(client, &request, &invocation()?)),
        })
    }
}

/// Judges an event by the helper, or in this process.
fn judge_here(client: &'static HookClient, request: &HookRequest, invocation: &Invocation) -> Result<HookOutput> {
    if let Some(output) = helper::ask(invocation, request) {
        return Ok(output);
    }
    let hooked = open_hooked(invocation)?;
    let output = block_on(answering::answer_request(&hooked, client, request))?;
    hooked.workspace.finish();
    helper::start(invocation);
    output
}

/// An event on its way to whoever judges it.
#[derive(Debug, Serialize, Deserialize)]
struct HookRequest {
    /// The client.
    client: String,
    /// The event's name, where the event doesn't say it.
    name: Option<String>,
    /// The event as it came.
    event: Vec<u8>,
}

/// The workspace as hooks open it.
fn open_hooked(invocation: &Invocation) -> Result<HookedWorkspace> {
    open_hooked_in(invocation, CommandPlace::Rewritten(own_words(invocation)?))
}

/// The workspace as hooks open it whose commands run in this place.
fn open_hooked_in(invocation: &Invocation, place: CommandPlace) -> Result<HookedWorkspace> {
    let workspace = open_workspace_with(&invocation.location, vec![client_tool()], Vec::new())?;
    let home = invocation.location.home.clone().unwrap_or_else(|| "/".into());
    Ok(HookedWorkspace { workspace, place, home })
}

/// This very program, for this workspace and by the same rules.
pub(super) fn own_words(invocation: &Invocation) -> Result<Vec<String>> {
    let program = std::env::current_exe()?.display().to_string();
    let workspace = invocation.location.directory.display().to_string();
    let flags = invocation.location.flags.words().iter().cloned();
    Ok([program, "-w".to_owned(), workspace].into_iter().chain(flags).collect())
}
