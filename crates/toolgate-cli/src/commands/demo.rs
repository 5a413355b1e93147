//! `toolgate demo`: an agent at work in a small project, with a model that follows a script. Everything else is real.
#![allow(clippy::disallowed_methods, reason = "makes a temporary project for the demo")]

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use toolgate_agent::model::{Script, Scripted};
use toolgate_agent::{Agent, Controls};
use toolgate_contract::{BoxFuture, Call, CancellationToken, Finish, Scope};
use toolgate_journal::{read_events, tree};
use toolgate_runtime::{Answer, ApprovalRequest, Approver, EventSink, Session};

use super::block_on;
use super::call::cancel_on_interrupt;
use crate::config::{PolicyFlags, Sources};
use crate::exit::Exit;
use crate::terminal::{
    ApproveOnce, BOLD, DIM, Manner, Reporter, TerminalApprover, Waiting, YELLOW, paint, show_reply, show_tree,
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
        let place = prepare(folder.path())?;
        let finish = block_on(show(&place))??;
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

/// The agent at work, then the record of it, then all of it taken back.
async fn show(place: &Place) -> Result<Finish> {
    say(&format!("A small project in {}:", place.workspace.display()));
    let names: Vec<&str> = PROJECT.iter().map(|(name, _)| *name).collect();
    anstream::eprintln!("{}", paint(DIM, names.join("  ")));
    say(&format!("$ toolgate run \"{TASK}\""));
    let desk = Desk::open_with(place, toolgate_agent::tools(), Vec::new())?;
    let choice = RunChoice { run: None, session: "demo".into(), front_end: "agent" };
    let stay = desk.begin(&choice)?;
    let finish = work(&desk, stay.session, &stay.run.id).await?;
    stay.run.end()?;
    say("$ toolgate runs tree");
    let events: Result<Vec<_>, _> = read_events(stay.run.path())?.map(|line| line.map(|line| line.event)).collect();
    show_tree(&tree(&events?));
    say("$ toolgate undo --run last");
    let again = desk.begin(&choice)?;
    call(&desk, &again.session, "undo", json!({ "run": stay.run.id })).await;
    say("$ sh test.sh, as it was before");
    call(&desk, &again.session, "shell", json!({ "command": "sh test.sh" })).await;
    again.run.end()?;
    desk.finish();
    Ok(finish)
}

/// Makes the project, with a configuration of its own, so that the demo is the same everywhere.
fn prepare(folder: &Path) -> Result<Place> {
    let workspace = folder.join("project");
    std::fs::create_dir(&workspace)?;
    for (name, content) in PROJECT {
        std::fs::write(workspace.join(name), content)?;
    }
    let managed = Sources::usual().map(|sources| sources.managed)?;
    let sources = Sources { managed, user: folder.join("config.toml"), state: folder.join("state") };
    Place::find(Some(workspace), sources, PolicyFlags::default())
}

/// Lets the agent work.
async fn work(desk: &Desk, session: Session, run: &str) -> Result<Finish> {
    let script = Script::parse(include_str!("demo/script.toml"))?;
    let manner = if std::io::IsTerminal::is_terminal(&std::io::stderr()) { Manner::Streaming } else { Manner::Lines };
    let reporter = Arc::new(Reporter::new(manner));
    let approver: Arc<dyn Approver> = match TerminalApprover::is_possible() {
        true => Arc::new(Waiting::new(TerminalApprover { by: person_name() }, Arc::clone(&reporter))),
        false => Arc::new(AnswersItself),
    };
    let session = session.approved_by(approver).watched_by(Arc::clone(&reporter) as Arc<dyn EventSink>);
    let agent = Agent::new(Arc::new(Scripted::new(script)), Arc::clone(&desk.gate), session, Controls::default());
    let cancel = CancellationToken::new();
    let on_interrupt = cancel_on_interrupt(cancel.clone());
    let outcome = agent.heard_by(Arc::clone(&reporter) as _).work(TASK, cancel).await;
    on_interrupt.abort();
    reporter.end(&outcome, run);
    Ok(outcome.finish)
}

/// Makes a call of its own and shows what it brings. Whoever watches the demo has agreed to that.
async fn call(desk: &Desk, session: &Session, tool: &str, args: Value) {
    let session = session.clone().approved_by(Arc::new(ApproveOnce { by: "the demo itself".into() }));
    let call = Call::new(tool, args, desk.clock.as_ref());
    show_reply(&desk.gate.perform(call, &session, CancellationToken::new()).await);
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
