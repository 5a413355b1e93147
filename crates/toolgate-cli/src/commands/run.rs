//! `toolgate run`: gives a task to a model, which works on it through the gate.

mod agent_kinds;
mod model;
mod resume;

use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use toolgate_agent::{Agent, AgentLimits, AgentOutcome, TextSink};
use toolgate_config::{WORKSPACE_FILE, read_optional, trust};
use toolgate_contract::{Call, CancellationToken};
use toolgate_runtime::{Approver, EventSink, NobodyAnswers, NobodyToAsk, QuestionAnswerer, Session};
use toolgate_workspace::{RunChoice, Workspace};

pub(crate) use self::model::ModelArgs;
use super::{Invocation, block_on};
use crate::exit::Exit;
use crate::signals::cancel_on_signal;
use crate::terminal::{
    ExclusivePrompt, JsonReporter, LiveView, ReportStyle, Reporter, TerminalAnswerer, TerminalApprover,
};
use crate::workspace::{open_workspace_with, person_name, with_attach_socket};

/// Give a task to a model, which works on it through the gate.
///
/// Every call of the model is judged, confined, recorded and undoable like any other. Where policy requires a person,
/// you are asked at the terminal; without a terminal such calls are refused. Ctrl-C stops the work cleanly, a second
/// Ctrl-C at once.
///
/// Examples:
///   toolgate run "make the tests pass" --model anthropic:claude-sonnet-4-5
///   toolgate run "what does this project do?" --model openai:gpt-5 --preset read-only
///   toolgate run - --model ollama:qwen3 --live < task.txt
///   toolgate --json run "tidy up" --model chat:gpt-oss --base-url http://127.0.0.1:8080/v1
///   toolgate run --continue                                          go on where the last run stopped
///   toolgate run --resume run_01a1 "and now the documentation"
///
/// A run goes on after an answer, a limit, an interrupt or a crash, from its record. A call that had started and has no
/// end on record is shown to the model as one that may have happened; it isn't repeated.
///
/// You can define kinds of subagents in ~/.config/toolgate/agents/NAME.toml: a description, instructions and the tools
/// that they are limited to.
///
/// Models: openai:NAME, anthropic:NAME, chat:NAME (any server with the chat completions API), ollama:NAME,
/// scripted:FILE. Put json+ before a model that can't call functions.
///
/// Exit codes, in addition to the usual ones:
///   10 turn_limit       all turns are used          15 invalid_answers  the model's replies were invalid
///   11 time_limit       the time is up              16 model_failed     no connection, or refused
///   12 token_limit      all tokens are used         17 circuit_open     the model failed too often
///   13 context_limit    the task no longer fits    130 cancelled        cancelled by a signal
///   14 no_progress      the same calls repeat
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RunArgs {
    /// The task; `-` reads it from standard input. With --continue or --resume, the next message.
    #[arg(required_unless_present_any = ["continues", "resume"])]
    task: Option<String>,
    /// Go on with the last run in which an agent worked.
    #[arg(long = "continue", short = 'c')]
    continues: bool,
    /// Go on with this run: its id, its beginning, or `last`.
    #[arg(long, value_name = "RUN", conflicts_with = "continues")]
    resume: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    /// Maximum number of turns.
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().turns)]
    max_turns: u64,
    /// Maximum time in minutes.
    #[arg(long, value_name = "N", default_value_t = 60.0)]
    max_minutes: f64,
    /// Maximum number of tokens, input and output, subagents included.
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().tokens)]
    max_tokens: u64,
    /// Maximum tokens of context; older results are dropped to make room.
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().context)]
    context_tokens: u64,
    /// Show a live view at the bottom of the terminal.
    #[arg(long)]
    live: bool,
    /// The session whose approvals apply.
    #[arg(long, env = "TOOLGATE_SESSION", default_value = "agent", hide_env_values = true)]
    session: String,
}

impl RunArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let (task, controls) = (self.task()?, self.controls()?);
        let opened = self.model.open(&invocation.location.load()?.settings.model)?;
        let kinds = agent_kinds::user_agent_kinds(&invocation.location.config)?;
        let workspace = open_workspace_with(&invocation.location, toolgate_agent::tools(), opened.secrets())?;
        let run = resume::find(&workspace, self.continues, self.resume.as_deref())?;
        let choice = RunChoice { run, session: self.session.clone(), front_end: "agent" };
        let recorded = workspace.begin(&choice)?;
        let past = choice.run.as_ref().map(|_| resume::read(&workspace, &recorded.run)).transpose()?;
        let watching = self.watching(invocation, &controls);
        let session =
            recorded.session.approved_by(watching.approver).answered_by(watching.answerer).watched_by(watching.sink);
        let outcome = block_on(async {
            let cancel = CancellationToken::new();
            cancel_on_signal(cancel.clone(), || {});
            let _ticking = watching.reporter.clone().map(Reporter::tick);
            let words = workspace_instructions(&workspace, &session, invocation).await;
            let ending = session.clone();
            let agent = Agent::new(opened.model, Arc::clone(&workspace.gate), session, controls);
            let agent = agent.with_text_sink(watching.listener).with_kinds(kinds).with_workspace_instructions(words);
            let agent = match past {
                Some(past) => agent.continuing(past),
                None => agent,
            };
            let work = async {
                let outcome = agent.work(&task, cancel).await;
                ending.end().await;
                outcome
            };
            with_attach_socket(&workspace, &invocation.location, work).await
        })?;
        recorded.run.end().context("the end of the run couldn't be recorded")?;
        workspace.finish();
        if let Some(reporter) = &watching.reporter {
            reporter.end(&outcome, &recorded.run.id, opened.settings.cost(outcome.tokens));
        }
        print_answer(&outcome, invocation);
        Ok(Exit::of_finish(outcome.finish))
    }

    fn task(&self) -> Result<String> {
        let task = match self.task.as_deref().unwrap_or(resume::GO_ON) {
            "-" => std::io::read_to_string(std::io::stdin().take(1 << 20)).context("standard input can't be read")?,
            task => task.to_owned(),
        };
        anyhow::ensure!(!task.trim().is_empty(), "The task is empty. Say what should be done.");
        Ok(task)
    }

    fn controls(&self) -> Result<AgentLimits> {
        let time = Duration::try_from_secs_f64(self.max_minutes * 60.0)
            .ok()
            .filter(|time| !time.is_zero() && *time <= Duration::from_secs(30 * 24 * 3600))
            .context("`--max-minutes` has to be more than 0 and at most a month.")?;
        anyhow::ensure!(self.max_turns > 0, "`--max-turns` is 0. Give it 1 or more.");
        let (turns, tokens, context) = (self.max_turns, self.max_tokens, self.context_tokens);
        Ok(AgentLimits { turns, time, tokens, context, ..AgentLimits::default() })
    }

    /// Where progress is reported: as JSON, to a terminal, or as plain lines.
    fn watching(&self, invocation: &Invocation, controls: &AgentLimits) -> RunObservers {
        if invocation.json {
            let sink = Arc::new(JsonReporter);
            return RunObservers {
                sink: sink.clone(),
                listener: sink,
                approver: Arc::new(NobodyToAsk),
                answerer: Arc::new(NobodyAnswers),
                reporter: None,
            };
        }
        let style = match std::io::stderr().is_terminal() {
            true if self.live => ReportStyle::Live(Box::new(LiveView::new(controls))),
            true => ReportStyle::Streaming,
            false => ReportStyle::Lines,
        };
        let reporter = Arc::new(Reporter::new(style));
        let (approver, answerer): (Arc<dyn Approver>, Arc<dyn QuestionAnswerer>) = match TerminalApprover::is_possible()
        {
            true => (
                Arc::new(ExclusivePrompt::new(TerminalApprover { by: person_name() }, Arc::clone(&reporter))),
                Arc::new(ExclusivePrompt::new(TerminalAnswerer { by: person_name() }, Arc::clone(&reporter))),
            ),
            false => (Arc::new(NobodyToAsk), Arc::new(NobodyAnswers)),
        };
        RunObservers {
            sink: reporter.clone(),
            listener: reporter.clone(),
            approver,
            answerer,
            reporter: Some(reporter),
        }
    }
}

/// The observers of a run.
struct RunObservers {
    sink: Arc<dyn EventSink>,
    listener: Arc<dyn TextSink>,
    approver: Arc<dyn Approver>,
    answerer: Arc<dyn QuestionAnswerer>,
    reporter: Option<Arc<Reporter>>,
}

/// The agent instructions of a trusted workspace. They are read through the gate like any file.
async fn workspace_instructions(workspace: &Workspace, session: &Session, invocation: &Invocation) -> Option<String> {
    let (location, file) = (&invocation.location, "AGENTS.md");
    let policy = read_optional(&location.directory.join(WORKSPACE_FILE)).ok()??;
    if !trust::is_trusted(&location.config.trusted(), &location.directory, &policy)
        || !location.directory.join(file).is_file()
    {
        return None;
    }
    let call = Call::new("read", json!({ "path": file }), workspace.clock.as_ref());
    let reply = workspace.gate.perform(call, session, CancellationToken::new()).await;
    Some(reply.payload?.get("content")?.as_str()?.to_owned())
}

/// The answer goes to standard output, unless the terminal has already shown it.
fn print_answer(outcome: &AgentOutcome, invocation: &Invocation) {
    let was_shown = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    if let (Some(answer), false, false) = (outcome.answer(), was_shown, invocation.json) {
        anstream::println!("{}", crate::terminal::plain(answer));
    }
}
