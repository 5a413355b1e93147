//! A command that a client was told to run here: it takes the gate's path like any call of `shell`. Its output is passed on as it
//! comes, without secrets, and the client gets the command's own exit code.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_contract::{
    Call, CancellationToken, ErrorCode, HookedTool, ProcessHandle, Reply, Right, Stream, ToolError,
};
use toolgate_dialects::{DialectMemory, changed_directory};
use toolgate_journal::HookRecord;
use toolgate_runtime::{Session, SessionProcess};

use crate::client::{HookClient, client_named};
use crate::hooked_workspace::{HookedWorkspace, relative};
use crate::sessions::recorded_session;
use crate::standing_prompt::ClientPrompt;

/// The longest that a command in the foreground may take: the client has a limit of its own.
const MOST_SECONDS: u64 = 600;
/// How often output is looked for.
const EVERY: Duration = Duration::from_millis(15);
/// How often it is looked for a command that has just been started.
const FIRST_LOOKS: Duration = Duration::from_millis(1);
/// Bytes that are passed on at a time.
const PIECE: usize = 256 * 1024;
/// The exit code of a command that wasn't run.
const NOT_RUN: u8 = 126;

/// What was judged of a command, until it is run. It is used once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CommandTicket {
    pub(crate) client: String,
    pub(crate) session: String,
    pub(crate) tool: String,
    pub(crate) command: String,
    pub(crate) workdir: String,
    pub(crate) background: bool,
    pub(crate) requested: Vec<Right>,
    pub(crate) justification: Option<String>,
    /// Whether a person has agreed, or is asked by the client before the command is run.
    pub(crate) is_approved: bool,
}

/// A command as the client has started it.
#[derive(Debug, Clone, Copy)]
pub struct HookedCommand<'a> {
    /// The id that the hook gave the command.
    pub id: &'a str,
    /// The command.
    pub command: &'a str,
    /// Where the client has started it.
    pub directory: &'a Path,
}

/// Where a command's output goes.
pub type CommandOutput<'a> = dyn FnMut(Stream, &[u8]) + Send + 'a;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnd {
    /// The exit code for the client.
    pub code: u8,
    /// What the client's model has to know beside the output: why it wasn't run, what was denied, what was quarantined.
    pub notes: Vec<String>,
}

impl CommandEnd {
    fn refused(error: &ToolError) -> Self {
        let hint = error.hint.iter().cloned();
        Self { code: NOT_RUN, notes: std::iter::once(error.message.clone()).chain(hint).collect() }
    }
}

/// Runs the command with this id, which has to be the very one that was judged. It is judged once more, as a call of its own, where
/// the client has started it.
pub async fn run_command(
    hooked: &HookedWorkspace,
    started: HookedCommand<'_>,
    cancel: CancellationToken,
    output: &mut CommandOutput<'_>,
) -> CommandEnd {
    let known = take_ticket(hooked, started).and_then(|ticket| {
        let unknown = || ToolError::invalid_args(format!("`{}` is no client with hooks.", ticket.client));
        let client = client_named(&ticket.client).ok_or_else(unknown)?;
        Ok((client, ticket.started_in(started.directory, &hooked.workspace.directory, client)))
    });
    let (client, ticket) = match known {
        Ok(known) => known,
        Err(error) => return CommandEnd::refused(&error),
    };
    match perform(hooked, client, &ticket, cancel, output).await {
        Ok(end) => end,
        Err(error) => CommandEnd::refused(&error),
    }
}

impl CommandTicket {
    /// The ticket for where the client has started the command. Not every hook is told what its tool was asked for: Codex has an
    /// argument for the directory that it keeps to itself. What a person has approved for one directory isn't approved for another.
    fn started_in(mut self, directory: &Path, workspace: &Path, client: &HookClient) -> Self {
        // A shell that goes on from `cd` to `cd` is imitated here, and never leaves where the client has begun.
        if !client.keeps_directory {
            let judged_in = workspace.join(&self.workdir);
            self.is_approved &= judged_in == directory;
            self.workdir = match relative(Some(directory), workspace) {
                inside if inside.is_empty() => ".".to_owned(),
                inside => inside,
            };
        }
        self
    }
}

fn take_ticket(hooked: &HookedWorkspace, started: HookedCommand<'_>) -> Result<CommandTicket, ToolError> {
    let HookedCommand { id, command, .. } = started;
    let store = hooked.workspace.gate.changes().hook_store()?;
    let ticket: Option<CommandTicket> = store.read(HookRecord::Command, id)?;
    let is_taken = store.remove(HookRecord::Command, id)?;
    ticket.filter(|ticket| is_taken && ticket.command == command).ok_or_else(|| {
        ToolError::new(ErrorCode::PolicyDenied, "No command was judged under this id, or it was run before.")
            .with_hint("Run the command itself; the client's hook brings it here.")
    })
}

async fn perform(
    hooked: &HookedWorkspace,
    client: &'static HookClient,
    ticket: &CommandTicket,
    cancel: CancellationToken,
    output: &mut CommandOutput<'_>,
) -> Result<CommandEnd, ToolError> {
    let workspace = &hooked.workspace;
    let recorded = recorded_session(workspace, client, &ticket.session, None)
        .map_err(|error| ToolError::new(ErrorCode::IoError, error.to_string()))?;
    let mut session = recorded.session.waiting();
    if ticket.is_approved {
        session.queue = None;
        session = session.approved_by(Arc::new(ClientPrompt::new(client.title)));
    }
    let (gate, started) = (Arc::clone(&workspace.gate), shell_call(ticket, hooked));
    let performing = gate.perform(started, &session, cancel.clone());
    tokio::pin!(performing);
    let mut forwarding = Forwarding::default();
    let reply = loop {
        tokio::select! {
            biased;
            reply = &mut performing => break reply,
            () = tokio::time::sleep(forwarding.pause()) => forwarding.pass_on(&session, output),
        }
    };
    let end = match reply.payload.as_ref().is_some_and(|payload| payload["running"] == true) {
        true => follow(&session, &mut forwarding, cancel, output).await,
        false => forwarding.end(&session, &reply, output),
    };
    if client.keeps_directory {
        keep_directory(hooked, &recorded.run.id, ticket, end.code);
    }
    session.end().await;
    workspace.finish();
    Ok(end)
}

fn shell_call(ticket: &CommandTicket, hooked: &HookedWorkspace) -> Call {
    let mut args = json!({ "command": ticket.command, "workdir": ticket.workdir, "background": ticket.background });
    if !ticket.background {
        args["timeout_seconds"] = json!(MOST_SECONDS);
        args["yield_ms"] = json!(MOST_SECONDS * 1000);
    }
    let mut call = Call::new("shell", args, hooked.workspace.clock.as_ref());
    call.requested_permissions.clone_from(&ticket.requested);
    call.justification.clone_from(&ticket.justification);
    let (client, tool) = (ticket.client.clone(), ticket.tool.clone());
    call.hooked = Some(HookedTool { client, tool, client_executes: false });
    call
}

/// Follows a command in the background to its end.
async fn follow(
    session: &Session,
    forwarding: &mut Forwarding,
    cancel: CancellationToken,
    output: &mut CommandOutput<'_>,
) -> CommandEnd {
    let found = forwarding.process.clone().or_else(|| session.processes.all().pop());
    let Some(process) = found else { return CommandEnd { code: 0, notes: Vec::new() } };
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            () = process.ended() => break,
            () = tokio::time::sleep(EVERY) => forwarding.pass_on(session, output),
        }
    }
    forwarding.pass_on(session, output);
    let code = process.progress().borrow().end.as_ref().and_then(|end| end.code.clone().ok());
    CommandEnd { code: code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1), notes: Vec::new() }
}

/// What was passed on of a command's output. The session forgets a process that has ended, so it is held from the first look on.
#[derive(Default)]
struct Forwarding {
    process: Option<Arc<SessionProcess>>,
    passed: [u64; 2],
}

impl Forwarding {
    /// How long to wait before the next look: a short command must be seen before it has ended.
    fn pause(&self) -> Duration {
        if self.process.is_some() { EVERY } else { FIRST_LOOKS }
    }

    /// Passes on what has come since.
    fn pass_on(&mut self, session: &Session, output: &mut CommandOutput<'_>) {
        if self.process.is_none() {
            self.process = session.processes.all().pop();
        }
        let Some(process) = &self.process else { return };
        for (index, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
            while let Ok(bytes) = process.read(stream, self.passed[index], PIECE) {
                if bytes.is_empty() {
                    break;
                }
                self.passed[index] += bytes.len() as u64;
                output(stream, &bytes);
            }
        }
    }

    /// Passes on the rest, and says how the command ended.
    fn end(&mut self, session: &Session, reply: &Reply, output: &mut CommandOutput<'_>) -> CommandEnd {
        self.pass_on(session, output);
        match (&reply.error, &reply.payload) {
            (Some(error), _) => CommandEnd::refused(error),
            (None, payload) => {
                let payload = payload.clone().unwrap_or_default();
                if self.process.is_none() {
                    // It was over before it could be seen; the reply has what it wrote.
                    for (stream, name) in [(Stream::Stdout, "stdout"), (Stream::Stderr, "stderr")] {
                        output(stream, payload[name].as_str().unwrap_or_default().as_bytes());
                    }
                }
                let code = payload["exit_code"].as_i64().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
                CommandEnd { code, notes: notes(&payload) }
            }
        }
    }
}

/// What the sandbox denied, what was noted, and what was quarantined.
fn notes(payload: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let denied = list(&payload["denied"]).into_iter().filter_map(|denied| text(&denied["reason"]));
    let noted = list(&payload["changes"]["notes"]).into_iter().filter_map(|note| text(&note));
    let quarantined = list(&payload["changes"]["kept_aside"]).into_iter().filter_map(|kept| {
        Some(format!("`{}` was quarantined: {}.", kept["path"].as_str()?, kept["reason"].as_str()?))
    });
    denied.chain(noted).chain(quarantined).collect()
}

/// Keeps where a command that succeeded leaves the client's shell. Nothing depends on it but the next command's directory.
fn keep_directory(hooked: &HookedWorkspace, run: &str, ticket: &CommandTicket, code: u8) {
    let mut memory = DialectMemory::new(hooked.workspace.directory.display().to_string());
    memory.directory = if ticket.workdir == "." { String::new() } else { ticket.workdir.clone() };
    let Some(directory) = changed_directory(&ticket.command, &memory) else { return };
    if let (0, Ok(store)) = (code, hooked.workspace.gate.changes().hook_store()) {
        let _ = store.put(HookRecord::Directory, run, &directory.unwrap_or_default());
    }
}
