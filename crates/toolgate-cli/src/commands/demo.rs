//! `toolgate demo`: an agent works in a small project, with a scripted model. Everything else is real.
#![allow(clippy::disallowed_methods, reason = "makes a temporary project for the demo")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use toolgate_agent::model::{ModelScript, ScriptedModel};
use toolgate_agent::{Agent, AgentLimits};
use toolgate_config::{ConfigPaths, FlagLayer};
use toolgate_contract::{ApprovalScope, BoxFuture, Call, CancellationToken, FinishReason, Reply};
use toolgate_journal::read_tree;
use toolgate_runtime::{ApprovalAnswer, ApprovalRequest, Approver, EventSink, Session};
use toolgate_workspace::{RunChoice, Workspace, WorkspaceLocation};

use super::{block_on, undo};
use crate::exit::Exit;
use crate::output::errln;
use crate::signals::cancel_on_signal;
use crate::terminal::{
    ApproveOnce, BOLD, DIM, ExclusivePrompt, ReplyContext, ReportStyle, Reporter, TerminalApprover, YELLOW, paint,
    show_reply, show_tree,
};
use crate::workspace::{open_workspace, open_workspace_with, person_name, typed_program};

/// Watch an agent at work, without an API key.
///
/// In a temporary directory, an agent finds a failing test in a small project, fixes the code, runs the test in the
/// sandbox, is refused two dangerous actions, and asks you before it deletes a file. Then the journal is shown as a
/// tree, and everything is undone. Only the model is scripted; the gate, the sandbox and the journal are the real ones.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the directory, to inspect it.
    #[arg(long)]
    keep: bool,
}

/// The project: a script with a bug, its test, a secret, and a leftover file.
const PROJECT: &[(&str, &str)] = &[
    ("slug.sh", "# Turns a title into a slug.\nslug() {\n    printf '%s' \"$1\" | tr ' ' '-'\n}\n"),
    (
        "test.sh",
        ". ./slug.sh\n\
         check() {\n    got=$(slug \"$1\")\n    [ \"$got\" = \"$2\" ] || { echo \"expected $2, got $got\"; exit 1; }\n}\n\
         check 'hello' 'hello'\ncheck 'Hello World' 'hello-world'\necho 'ok: 2 tests'\n",
    ),
    (".env", "PUBLISH_TOKEN=nobody-sees-this-one\n"),
    ("slug.sh.orig", "# an old copy\n"),
];

const TASK: &str = "The slugs are wrong. Find out why, fix it, and tidy up.";

impl DemoArgs {
    pub(crate) fn run(self, as_json: bool) -> Result<Exit> {
        anyhow::ensure!(!as_json, "The demo is for people, so it has no --json. `toolgate --json run TASK` has it.");
        let directory =
            tempfile::Builder::new().prefix("toolgate-demo-").tempdir().context("no temporary directory")?;
        let (location, workspace) = prepare(directory.path())?;
        say(&format!("A small project in {}:", workspace.display()));
        let names: Vec<&str> = PROJECT.iter().map(|(name, _)| *name).collect();
        errln!("{}", paint(DIM, names.join("  ")));
        say(&format!("$ toolgate run \"{TASK}\""));
        let workspace = open_workspace_with(&location, toolgate_agent::tools(), Vec::new())?;
        let recorded = workspace.begin(&RunChoice { run: None, session: "demo".into(), front_end: "agent" })?;
        let finish = work(&workspace, recorded.session, &recorded.run.id)?;
        recorded.run.end()?;
        say("$ toolgate runs tree");
        show_tree(&read_tree(recorded.run.path())?);
        workspace.finish();
        undo_and_retest(&location, &recorded.run.id)?;
        self.leave(directory);
        Ok(Exit::of_finish(finish))
    }

    fn leave(&self, directory: tempfile::TempDir) {
        match self.keep {
            true => say(&format!("Kept: {}", directory.keep().join("project").display())),
            false => say("The directory was removed. Next: toolgate run --help"),
        }
    }
}

/// Creates the project, with its own configuration, so that the demo is the same everywhere.
fn prepare(directory: &Path) -> Result<(WorkspaceLocation, PathBuf)> {
    let workspace = directory.join("project");
    std::fs::create_dir(&workspace)?;
    for (name, content) in PROJECT {
        std::fs::write(workspace.join(name), content)?;
    }
    let sources =
        ConfigPaths { user: directory.join("config.toml"), state: directory.join("state"), ..ConfigPaths::usual()? };
    let location = WorkspaceLocation::find(&workspace, sources, FlagLayer::default())?;
    let workspace = location.directory.clone();
    Ok((location, workspace))
}

/// Runs the agent.
fn work(workspace: &Workspace, session: Session, run: &str) -> Result<FinishReason> {
    let script = ModelScript::parse(include_str!("demo/script.toml"))?;
    let reporter = Arc::new(Reporter::new(ReportStyle::of_terminal(false)));
    let approver: Arc<dyn Approver> = match TerminalApprover::is_possible() {
        true => Arc::new(ExclusivePrompt::new(TerminalApprover { by: person_name() }, Arc::clone(&reporter))),
        false => Arc::new(DemoApprover),
    };
    let session = session.approved_by(approver).watched_by(Arc::clone(&reporter) as Arc<dyn EventSink>);
    let agent =
        Agent::new(Arc::new(ScriptedModel::new(script)), Arc::clone(&workspace.gate), session, AgentLimits::default());
    let outcome = block_on(async {
        let cancel = CancellationToken::new();
        cancel_on_signal(cancel.clone(), || {});
        agent.with_text_sink(Arc::clone(&reporter) as _).work(TASK, cancel).await
    })?;
    reporter.end(&outcome, run, None);
    Ok(outcome.finish)
}

/// Undoes the run and runs the test again, as a new start of the program would.
fn undo_and_retest(location: &WorkspaceLocation, run: &str) -> Result<()> {
    let workspace = open_workspace(location)?;
    let recorded = workspace.begin(&RunChoice { run: None, session: "demo".into(), front_end: "cli" })?;
    say("$ toolgate undo --run last");
    let undone = call(&workspace, &recorded.session, "undo", json!({ "run": run }))?;
    undo::REPORT.show(&undone, &recorded.run.id, &workspace.state, &typed_program(location))?;
    say("$ sh test.sh, as it was before");
    let tried = call(&workspace, &recorded.session, "shell", json!({ "command": "sh test.sh" }))?;
    show_reply(&tried, &ReplyContext { run: &recorded.run.id, toolgate: typed_program(location) }, false);
    recorded.run.end()?;
    workspace.finish();
    Ok(())
}

/// Makes a call for the demo. By starting the demo, the person has approved it.
fn call(workspace: &Workspace, session: &Session, tool: &str, args: Value) -> Result<Reply> {
    let session = session.clone().approved_by(Arc::new(ApproveOnce { by: "the demo itself".into() }));
    let call = Call::new(tool, args, workspace.clock.as_ref());
    block_on(workspace.gate.perform(call, &session, CancellationToken::new()))
}

/// Approves in the person's place where there is no terminal.
struct DemoApprover;

impl Approver for DemoApprover {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        let words =
            format!("May `{}` run? {} There is no terminal, so the demo approves.", request.tool, request.reason);
        errln!("{}", paint(YELLOW, words));
        Box::pin(std::future::ready(ApprovalAnswer::Granted {
            scope: ApprovalScope::Call,
            by: "the demo itself".into(),
        }))
    }
}

fn say(words: &str) {
    errln!("\n{}", paint(BOLD, words));
}
