//! `toolgate call`: makes one call through the gate, from the shell.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use semver::VersionReq;
use serde_json::json;
use toolgate_contract::{AnyTool, CancellationToken, Declaration, Reply, Right, ToolError};
use toolgate_dialects::{DialectSet, ShownResult, strict_json};
use toolgate_runtime::{Approver, NobodyAnswers, NobodyToAsk, QuestionAnswerer, quoted};
use toolgate_workspace::{DialectReply, DialectSession, RunChoice};

use super::dialects::checked;
use super::tools::needed_arguments;
use super::{Invocation, block_on, runs};
use crate::exit::Exit;
use crate::output::outln;
use crate::signals::cancel_on_signal;
use crate::terminal::{ApproveOnce, ReplyContext, TerminalAnswerer, TerminalApprover, TerminalSink, show_reply};
use crate::workspace::{CLI, open_workspace_with, person_name, typed_program, warn, with_attach_socket};

/// Call a tool, on the same path as any agent's call.
///
/// Of a tool that runs a command, this exits with the command's own exit code; in the reply, `ok` says whether the call
/// worked, and `exit_code` how its command ended.
///
/// Examples:
///   toolgate call list
///   toolgate call read '{"path":"src/main.rs","limit":40}'
///   echo '{"path":"notes.md"}' | toolgate call read -
///   toolgate call --json read --args-file args.json
///   toolgate call shell '{"command":"cargo test"}' && echo passed
///   toolgate call --dialect claude Grep '{"pattern":"TODO"}'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CallArgs {
    /// The tool's name; `toolgate tools` lists them.
    tool: String,
    /// The arguments as a JSON object; `-` reads them from standard input.
    #[arg(value_name = "JSON", conflicts_with = "args_file")]
    args: Option<String>,
    /// Read the arguments from a file.
    #[arg(long, value_name = "FILE")]
    args_file: Option<PathBuf>,
    /// Approve this one call, whatever it would ask. Never overrides a deny.
    #[arg(long)]
    approve: bool,
    /// Continue an earlier run instead of beginning a new one: its id, its beginning, or `last`.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// The session whose approvals apply.
    #[arg(long, env = "TOOLGATE_SESSION", default_value = "cli", hide_env_values = true)]
    session: String,
    /// The versions of the tool that the arguments are written for, such as ^1.
    #[arg(long, value_name = "REQ")]
    version_req: Option<VersionReq>,
    /// Request exactly this in addition to what the tool declares: net.connect=HOST:PORT, fs.write=/PATH or
    /// unsandboxed.
    #[arg(long, value_name = "RIGHT")]
    permit: Vec<Right>,
    /// The reason; shown to the person who approves.
    #[arg(long, value_name = "TEXT")]
    justification: Option<String>,
    /// Take the tool's name and arguments, and show the result, as a client's model knows them; `toolgate dialects` lists
    /// them. Several can be named.
    #[arg(long, value_name = "NAMES")]
    dialect: Option<DialectSet>,
    /// Whether this is a verb of the person's, such as `undo`, which no skill of an agent limits.
    #[arg(skip)]
    is_verb: bool,
}

/// A call that was made.
pub(super) struct PerformedCall {
    pub(super) reply: Reply,
    /// The run that records it.
    pub(super) run: String,
    /// What a model gets in a dialect.
    shown: Option<ShownResult>,
    sink: Arc<TerminalSink>,
}

impl PerformedCall {
    pub(super) fn print(&self, invocation: &Invocation) -> Result<()> {
        let Self { reply, run, sink, shown } = self;
        match (invocation.json, shown) {
            (true, Some(shown)) => {
                outln!("{}", json!({ "text": shown.text, "is_error": shown.is_error, "reply": reply }));
            }
            (false, Some(shown)) => outln!("{}", shown.text),
            (true, None) => outln!("{}", serde_json::to_string(reply)?),
            (false, None) => show_reply(
                reply,
                &ReplyContext { run, toolgate: typed_program(&invocation.location) },
                sink.has_shown_output(),
            ),
        }
        Ok(())
    }
}

/// Shows how to write what was given as a bare word: the tool's first needed argument, as JSON.
fn with_example(error: ToolError, arguments: &[u8], tool: Option<&Declaration>) -> ToolError {
    let word = String::from_utf8_lossy(arguments).trim().to_owned();
    let needed = tool.and_then(|tool| needed_arguments(tool).first().copied());
    match (tool, needed) {
        (Some(tool), Some(argument)) if !word.is_empty() && !word.starts_with(['{', '[']) => {
            let args = quoted(&json!({ argument: word }).to_string());
            error.with_hint(format!("Arguments are a JSON object: `toolgate call {} {args}`.", tool.name))
        }
        _ => error,
    }
}

impl CallArgs {
    /// A call that the person has approved by typing the command.
    pub(super) fn approved(tool: &str, args: String) -> Self {
        Self {
            tool: tool.into(),
            args: Some(args),
            args_file: None,
            approve: true,
            run: None,
            session: "cli".into(),
            version_req: None,
            permit: Vec::new(),
            justification: None,
            dialect: None,
            is_verb: true,
        }
    }

    /// Records the call in an earlier run.
    pub(super) fn in_run(self, run: Option<String>) -> Self {
        Self { run, ..self }
    }

    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        self.run_with(invocation, Vec::new())
    }

    /// Makes the call with additional tools that only this call needs.
    pub(super) fn run_with(self, invocation: &Invocation, tools: Vec<Arc<dyn AnyTool>>) -> Result<Exit> {
        let performed = self.perform(invocation, tools)?;
        performed.print(invocation)?;
        Ok(Exit::of_reply(&performed.reply))
    }

    /// Makes the call; the caller shows the reply.
    pub(super) fn perform(self, invocation: &Invocation, tools: Vec<Arc<dyn AnyTool>>) -> Result<PerformedCall> {
        let arguments = self.arguments()?;
        let workspace = open_workspace_with(&invocation.location, tools, Vec::new())?;
        let tool = workspace.gate.declaration(&self.tool);
        let args = strict_json::parse(&arguments).map_err(|error| with_example(error, &arguments, tool))?;
        let run = self.run.as_ref().map(|run| runs::find(&workspace.state, run)).transpose()?;
        let choice = RunChoice { run, session: self.session.clone(), front_end: CLI };
        let recorded = workspace.begin(&choice)?;
        let sink = Arc::new(TerminalSink::new(invocation.json));
        let session = recorded
            .session
            .approved_by(self.approver(invocation))
            .answered_by(answerer(invocation))
            .watched_by(Arc::clone(&sink) as _)
            // This program exits after the call.
            .waiting();
        let session = match self.is_verb {
            true => session,
            false => workspace.limited_by_skills(session, &recorded.run)?,
        };
        let mut call = toolgate_contract::Call::new(&self.tool, args, workspace.clock.as_ref());
        call.version = self.version_req;
        call.requested_permissions = self.permit;
        call.justification = self.justification;
        let dialects = checked(self.dialect.unwrap_or_default(), workspace.gate.declarations())?;
        let dialects = DialectSession::new(dialects, &workspace.directory);
        let DialectReply { reply, shown } = block_on(async {
            let cancel = CancellationToken::new();
            cancel_on_signal(cancel.clone(), || {});
            let work = async {
                let reply = dialects.perform(call, &workspace.gate, &session, cancel).await;
                session.end().await;
                reply
            };
            with_attach_socket(&workspace, &invocation.location, work).await
        })?;
        // The reply is the result, and says itself whether it was recorded.
        if let Err(error) = recorded.run.end() {
            warn(&format!("The end of the run couldn't be recorded: {error}"));
        }
        workspace.finish();
        Ok(PerformedCall { reply, run: recorded.run.id.clone(), shown, sink })
    }

    fn approver(&self, invocation: &Invocation) -> Arc<dyn Approver> {
        let by = person_name();
        match self.approve {
            true => Arc::new(ApproveOnce { by: format!("{by} (--approve)") }),
            false if !invocation.json && TerminalApprover::is_possible() => Arc::new(TerminalApprover { by }),
            false => Arc::new(NobodyToAsk),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "reads the file that the user named on the command line")]
    fn arguments(&self) -> Result<Vec<u8>> {
        match (&self.args_file, self.args.as_deref()) {
            (Some(file), _) => std::fs::read(file).with_context(|| format!("{} can't be read", file.display())),
            (None, Some("-")) => {
                let mut bytes = Vec::new();
                std::io::stdin().read_to_end(&mut bytes).context("standard input can't be read")?;
                Ok(bytes)
            }
            (None, Some(json)) => Ok(json.as_bytes().to_vec()),
            (None, None) => Ok(b"{}".to_vec()),
        }
    }
}

/// Answers the agent's questions: the person at the terminal, if there is one.
pub(super) fn answerer(invocation: &Invocation) -> Arc<dyn QuestionAnswerer> {
    match !invocation.json && TerminalApprover::is_possible() {
        true => Arc::new(TerminalAnswerer { by: person_name() }),
        false => Arc::new(NobodyAnswers),
    }
}
