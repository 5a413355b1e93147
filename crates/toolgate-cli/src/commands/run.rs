//! `toolgate run`: gives a task to a model, which works on it through the gate.

mod kinds;
mod model;

use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use toolgate_agent::{Agent, Controls, Listener, Outcome};
use toolgate_contract::{Call, CancellationToken};
use toolgate_runtime::{Approver, EventSink, NobodyAnswers, NobodyToAsk, Respondent, Session};

pub(crate) use self::model::ModelChoice;
use super::{Setting, block_on};
use crate::config::{WORKSPACE_FILE, read_optional};
use crate::exit::Exit;
use crate::signals::cancel_on_signal;
use crate::terminal::{Board, JsonReporter, Manner, Reporter, TerminalApprover, TerminalRespondent, Waiting};
use crate::trust;
use crate::wiring::{Desk, RunChoice, person_name};

/// Give a task to a model, which works on it through the gate.
///
/// Every call of the model is judged, confined, recorded and undoable like any other. At a terminal you are asked where
/// policy wants a person; elsewhere such calls are refused. Ctrl-C stops the work cleanly, a second one at once.
///
/// Examples:
///   toolgate run "make the tests pass" --model anthropic:claude-sonnet-4-5
///   toolgate run "what does this project do?" --model openai:gpt-5 --preset read-only
///   toolgate run - --model ollama:qwen3 --live < task.txt
///   toolgate --json run "tidy up" --model chat:gpt-oss --base-url http://127.0.0.1:8080/v1
///
/// Kinds of agents that the model can send stand in ~/.config/toolgate/agents/NAME.toml: description, instructions and
/// the tools that it can't go beyond.
///
/// Models: openai:NAME, anthropic:NAME, chat:NAME (any server that speaks chat completions), ollama:NAME,
/// scripted:FILE. Put json+ before a model that can't call functions.
///
/// Exit codes, beside the usual ones:
///   10 turn_limit       all turns are used          15 invalid_answers  it couldn't be understood
///   11 time_limit       the time is up              16 model_failed     it can't be reached, or refuses
///   12 token_limit      all tokens are used         17 circuit_open     it failed too often
///   13 context_limit    the task no longer fits    130 cancelled        somebody stopped it
///   14 no_progress      it went in circles
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Run {
    /// The task; `-` reads it from standard input.
    task: String,
    #[command(flatten)]
    model: ModelChoice,
    /// Turns at the most.
    #[arg(long, value_name = "N", default_value_t = Controls::default().turns)]
    max_turns: u64,
    /// Minutes at the most.
    #[arg(long, value_name = "N", default_value_t = 60.0)]
    max_minutes: f64,
    /// Tokens at the most, in and out, other agents included.
    #[arg(long, value_name = "N", default_value_t = Controls::default().tokens)]
    max_tokens: u64,
    /// Tokens that the model is shown at once; older results make room.
    #[arg(long, value_name = "N", default_value_t = Controls::default().context)]
    context_tokens: u64,
    /// Keep a live view at the bottom of the terminal.
    #[arg(long)]
    live: bool,
    /// The session whose approvals count.
    #[arg(long, env = "TOOLGATE_SESSION", default_value = "agent", hide_env_values = true)]
    session: String,
}

impl Run {
    pub(crate) fn run(self, setting: &Setting) -> Result<Exit> {
        let (task, controls) = (self.task()?, self.controls()?);
        let (model, key) = self.model.open()?;
        let kinds = kinds::of_the_user(&setting.place.sources)?;
        let secrets = key.map(|key| ("the model's key".to_owned(), key.reveal().to_owned()));
        let desk = Desk::open_with(&setting.place, toolgate_agent::tools(), secrets.into_iter().collect())?;
        let choice = RunChoice { run: None, session: self.session.clone(), front_end: "agent" };
        let stay = desk.begin(&choice)?;
        let watching = self.watching(setting, &controls);
        let session =
            stay.session.approved_by(watching.approver).answered_by(watching.respondent).watched_by(watching.sink);
        let outcome = block_on(async {
            let cancel = CancellationToken::new();
            cancel_on_signal(cancel.clone(), || {});
            let _ticking = watching.reporter.clone().map(Reporter::tick);
            let words = workspace_words(&desk, &session, setting).await;
            let processes = Arc::clone(&session.processes);
            let agent = Agent::new(model, Arc::clone(&desk.gate), session, controls);
            let agent = agent.heard_by(watching.listener).with_kinds(kinds).told(words);
            let work = async {
                let outcome = agent.work(&task, cancel).await;
                processes.end().await;
                outcome
            };
            desk.with_door(work).await
        })?;
        stay.run.end().context("the end of the run couldn't be recorded")?;
        desk.finish();
        if let Some(reporter) = &watching.reporter {
            reporter.end(&outcome, &stay.run.id);
        }
        print_answer(&outcome, setting);
        Ok(Exit::of_finish(outcome.finish))
    }

    fn task(&self) -> Result<String> {
        let task = match self.task.as_str() {
            "-" => std::io::read_to_string(std::io::stdin().take(1 << 20)).context("standard input can't be read")?,
            task => task.to_owned(),
        };
        anyhow::ensure!(!task.trim().is_empty(), "The task is empty. Say what should be done.");
        Ok(task)
    }

    fn controls(&self) -> Result<Controls> {
        let time = Duration::try_from_secs_f64(self.max_minutes * 60.0)
            .ok()
            .filter(|time| !time.is_zero() && *time <= Duration::from_secs(30 * 24 * 3600))
            .context("`--max-minutes` has to be more than 0 and at most a month.")?;
        anyhow::ensure!(self.max_turns > 0, "`--max-turns` is 0. Give it 1 or more.");
        let (turns, tokens, context) = (self.max_turns, self.max_tokens, self.context_tokens);
        Ok(Controls { turns, time, tokens, context, ..Controls::default() })
    }

    /// Who watches: a program, a terminal, or a file.
    fn watching(&self, setting: &Setting, controls: &Controls) -> Watching {
        if setting.json {
            let sink = Arc::new(JsonReporter);
            return Watching {
                sink: sink.clone(),
                listener: sink,
                approver: Arc::new(NobodyToAsk),
                respondent: Arc::new(NobodyAnswers),
                reporter: None,
            };
        }
        let manner = match std::io::stderr().is_terminal() {
            true if self.live => Manner::Live(Box::new(Board::new(controls))),
            true => Manner::Streaming,
            false => Manner::Lines,
        };
        let reporter = Arc::new(Reporter::new(manner));
        let (approver, respondent): (Arc<dyn Approver>, Arc<dyn Respondent>) = match TerminalApprover::is_possible() {
            true => (
                Arc::new(Waiting::new(TerminalApprover { by: person_name() }, Arc::clone(&reporter))),
                Arc::new(Waiting::new(TerminalRespondent { by: person_name() }, Arc::clone(&reporter))),
            ),
            false => (Arc::new(NobodyToAsk), Arc::new(NobodyAnswers)),
        };
        Watching { sink: reporter.clone(), listener: reporter.clone(), approver, respondent, reporter: Some(reporter) }
    }
}

/// Whoever watches a run.
struct Watching {
    sink: Arc<dyn EventSink>,
    listener: Arc<dyn Listener>,
    approver: Arc<dyn Approver>,
    respondent: Arc<dyn Respondent>,
    reporter: Option<Arc<Reporter>>,
}

/// What a trusted workspace wants agents to know. It is read through the gate like any file.
async fn workspace_words(desk: &Desk, session: &Session, setting: &Setting) -> Option<String> {
    let (place, file) = (&setting.place, "AGENTS.md");
    let policy = read_optional(&place.workspace.join(WORKSPACE_FILE)).ok()??;
    if !trust::is_trusted(&place.sources.trusted(), &place.workspace, &policy) || !place.workspace.join(file).is_file()
    {
        return None;
    }
    let call = Call::new("read", json!({ "path": file }), desk.clock.as_ref());
    let reply = desk.gate.perform(call, session, CancellationToken::new()).await;
    Some(reply.payload?.get("content")?.as_str()?.to_owned())
}

/// The answer goes to standard output, unless the terminal there has shown it already.
fn print_answer(outcome: &Outcome, setting: &Setting) {
    let was_shown = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    if let (Some(answer), false, false) = (outcome.answer(), was_shown, setting.json) {
        anstream::println!("{}", crate::terminal::plain(answer));
    }
}
