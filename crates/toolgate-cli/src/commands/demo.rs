//! `toolgate demo`: an agent at work in a small project, with a model that follows a script. Everything else is real.
#![allow(clippy::disallowed_methods, reason = "makes a temporary project for the demo")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use toolgate_agent::model::{Script, Scripted};
use toolgate_agent::{Agent, Controls};
use toolgate_contract::{BoxFuture, Call, CancellationToken, Finish, Reply, Scope};
use toolgate_journal::read_tree;
use toolgate_runtime::{Answer, ApprovalRequest, Approver, EventSink, Session};

use super::{block_on, undo};
use crate::config::{PolicyFlags, Sources};
use crate::exit::Exit;
use crate::signals::cancel_on_signal;
use crate::terminal::{
    ApproveOnce, BOLD, DIM, Manner, Reporter, TerminalApprover, Waiting, Whence, YELLOW, paint, show_reply, show_tree,
};
use crate::wiring::{Desk, Place, RunChoice, person_name};

/// Watch an agent at work, without any key.
///
/// In a temporary folder, an agent finds a failing test in a small project, mends the code, runs the test in the
/// sandbox, is refused two dangerous things, and asks you before it deletes a file. Then the record is shown as a tree,
/// and everything is undone. Only the model is scripted; the gate, the sandbox and the record are the real ones.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Keep the folder, to look around in it.
    #[arg(long)]
    keep: bool,
}

/// The project: a script with a fault, its test, a secret, and a leftover.
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

const TASK: &str = "The slugs are wrong. Find out why, mend it, and tidy up.";

impl Demo {
    pub(crate) fn run(self) -> Result<Exit> {
        let folder = tempfile::Builder::new().prefix("toolgate-demo-").tempdir().context("no temporary folder")?;
        let (place, workspace) = prepare(folder.path())?;
        say(&format!("A small project in {}:", workspace.display()));
        let names: Vec<&str> = PROJECT.iter().map(|(name, _)| *name).collect();
        anstream::eprintln!("{}", paint(DIM, names.join("  ")));
        say(&format!("$ toolgate run \"{TASK}\""));
        let desk = Desk::open_with(&place, toolgate_agent::tools(), Vec::new())?;
        let stay = desk.begin(&RunChoice { run: None, session: "demo".into(), front_end: "agent" })?;
        let finish = work(&desk, stay.session, &stay.run.id)?;
        stay.run.end()?;
        say("$ toolgate runs tree");
        show_tree(&read_tree(stay.run.path())?);
        desk.finish();
        take_back(&place, &stay.run.id)?;
        self.leave(folder);
        Ok(Exit::of_finish(finish))
    }

    fn leave(&self, folder: tempfile::TempDir) {
        match self.keep {
            true => say(&format!("Kept: {}", folder.keep().join("project").display())),
            false => say("The folder is gone again. Next: toolgate run --help"),
        }
    }
}

/// Makes the project, with a configuration of its own, so that the demo is the same everywhere.
fn prepare(folder: &Path) -> Result<(Place, PathBuf)> {
    let workspace = folder.join("project");
    std::fs::create_dir(&workspace)?;
    for (name, content) in PROJECT {
        std::fs::write(workspace.join(name), content)?;
    }
    let sources = Sources { user: folder.join("config.toml"), state: folder.join("state"), ..Sources::usual()? };
    let place = Place::find(Some(workspace), sources, PolicyFlags::default())?;
    let workspace = place.workspace.clone();
    Ok((place, workspace))
}

/// Lets the agent work.
fn work(desk: &Desk, session: Session, run: &str) -> Result<Finish> {
    let script = Script::parse(include_str!("demo/script.toml"))?;
    let manner = if std::io::IsTerminal::is_terminal(&std::io::stderr()) { Manner::Streaming } else { Manner::Lines };
    let reporter = Arc::new(Reporter::new(manner));
    let approver: Arc<dyn Approver> = match TerminalApprover::is_possible() {
        true => Arc::new(Waiting::new(TerminalApprover { by: person_name() }, Arc::clone(&reporter))),
        false => Arc::new(AnswersItself),
    };
    let session = session.approved_by(approver).watched_by(Arc::clone(&reporter) as Arc<dyn EventSink>);
    let agent = Agent::new(Arc::new(Scripted::new(script)), Arc::clone(&desk.gate), session, Controls::default());
    let outcome = block_on(async {
        let cancel = CancellationToken::new();
        cancel_on_signal(cancel.clone(), || {});
        agent.heard_by(Arc::clone(&reporter) as _).work(TASK, cancel).await
    })?;
    reporter.end(&outcome, run);
    Ok(outcome.finish)
}

/// Undoes the run and tries the test again, as another start of the program would.
fn take_back(place: &Place, run: &str) -> Result<()> {
    let desk = Desk::open(place)?;
    let stay = desk.begin(&RunChoice { run: None, session: "demo".into(), front_end: "cli" })?;
    say("$ toolgate undo --run last");
    let undone = call(&desk, &stay.session, "undo", json!({ "run": run }))?;
    undo::WORDING.show(&undone, &stay.run.id, &desk.state)?;
    say("$ sh test.sh, as it was before");
    let tried = call(&desk, &stay.session, "shell", json!({ "command": "sh test.sh" }))?;
    show_reply(&tried, &Whence { run: &stay.run.id, toolgate: place.typed() }, false);
    stay.run.end()?;
    desk.finish();
    Ok(())
}

/// Makes a call of its own. Whoever watches the demo has agreed to that.
fn call(desk: &Desk, session: &Session, tool: &str, args: Value) -> Result<Reply> {
    let session = session.clone().approved_by(Arc::new(ApproveOnce { by: "the demo itself".into() }));
    let call = Call::new(tool, args, desk.clock.as_ref());
    block_on(desk.gate.perform(call, &session, CancellationToken::new()))
}

/// Stands in for the person where there is none.
struct AnswersItself;

impl Approver for AnswersItself {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        let words = format!("May `{}` run? {} Nobody is here, so the demo says yes.", request.tool, request.reason);
        anstream::eprintln!("{}", paint(YELLOW, words));
        Box::pin(std::future::ready(Answer::Granted { scope: Scope::Call, by: "the demo itself".into() }))
    }
}

fn say(words: &str) {
    anstream::eprintln!("\n{}", paint(BOLD, words));
}
