//! `toolgate run`: gives a task to a model, which works on it through the gate.

mod agent_args;
mod agent_kinds;
mod agent_run;
mod model;
mod prompt_facts;
pub(super) mod resume;

use std::io::{IsTerminal, Read};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use parking_lot::Mutex;
use toolgate_agent::AgentOutcome;
use toolgate_contract::CancellationToken;
use toolgate_runtime::{Approver, NobodyAnswers, NobodyToAsk, QuestionAnswerer};

pub(crate) use self::agent_args::AgentArgs;
pub(crate) use self::agent_run::{AgentRun, RunObservers};
pub(crate) use self::model::{ModelArgs, OpenedModel};
use super::{Invocation, block_on};
use crate::exit::Exit;
use crate::output::outln;
use crate::signals::cancel_on_signal;
use crate::terminal::{
    ExclusivePrompt, JsonReporter, ReportStyle, Reporter, TaskProgress, TerminalAnswerer, TerminalApprover,
};
use crate::watcher::{AnsweredOnScreen, OwnRun, RunScreen, Watcher};
use crate::workspace::{person_name, with_attach_socket};

/// Give a task to a model, which works on it through the gate.
///
/// Every call of the model is judged, confined, recorded and undoable like any other. Where policy requires a person,
/// you are asked at the terminal; without a terminal such calls are refused. Ctrl-C stops the work cleanly, another
/// one more than a second later at once.
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
    #[command(flatten)]
    agent: AgentArgs,
    /// Show the task on the whole terminal as it goes on, as `toolgate watch` does; the report follows at its end.
    #[arg(long)]
    live: bool,
}

impl RunArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let task = self.task()?;
        let saying = self.is_live(invocation).then(Arc::default);
        let (observers, reporter) = self.observers(invocation, saying.clone());
        let run = AgentRun::begin(&self.agent, invocation, "agent", &observers)?;
        let screen = saying.map(|saying| self.screen(&run, saying, invocation)).transpose()?;
        let outcome = block_on(async {
            let cancel = CancellationToken::new();
            cancel_on_signal(cancel.clone(), || {});
            let _ticking = reporter.clone().map(Reporter::tick);
            let agent = run.agent(&invocation.location, &observers.listener).await;
            let work = async {
                let outcome = agent.work(&task, cancel).await;
                run.session.end().await;
                outcome
            };
            with_attach_socket(&run.workspace, &invocation.location, work).await
        })?;
        run.run.end().context("the end of the run couldn't be recorded")?;
        run.workspace.finish();
        drop(screen);
        if let Some(reporter) = &reporter {
            reporter.end(&outcome, &run.run.id, run.opened.settings.cost(outcome.tokens));
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

    /// Whether the whole terminal shows the task. Without a queue nobody could answer there.
    fn is_live(&self, invocation: &Invocation) -> bool {
        self.live && !invocation.json && RunScreen::is_possible() && invocation.location.approvals().is_ok()
    }

    fn screen(&self, run: &AgentRun, saying: Arc<Mutex<String>>, invocation: &Invocation) -> Result<RunScreen> {
        let progress = TaskProgress::new(&run.limits);
        RunScreen::begin(Watcher::of_run(&invocation.location, OwnRun { id: run.run.id.clone(), progress, saying })?)
    }

    /// Where progress is reported: as JSON, to a terminal, as plain lines, or at the end, after a live screen.
    fn observers(
        &self,
        invocation: &Invocation,
        live: Option<Arc<Mutex<String>>>,
    ) -> (RunObservers, Option<Arc<Reporter>>) {
        let (approver, answerer): (Arc<dyn Approver>, Arc<dyn QuestionAnswerer>) =
            (Arc::new(NobodyToAsk), Arc::new(NobodyAnswers));
        if invocation.json {
            let sink = Arc::new(JsonReporter);
            return (RunObservers { sink: sink.clone(), listener: sink, approver, answerer }, None);
        }
        let is_live = live.is_some();
        let style = match live {
            Some(saying) => ReportStyle::AtTheEnd { lines: Vec::new(), saying },
            None => ReportStyle::of_terminal(false),
        };
        let reporter = Arc::new(Reporter::new(style));
        let (approver, answerer): (Arc<dyn Approver>, Arc<dyn QuestionAnswerer>) = match () {
            () if is_live => (Arc::new(AnsweredOnScreen), Arc::new(AnsweredOnScreen)),
            () if TerminalApprover::is_possible() => (
                Arc::new(ExclusivePrompt::new(TerminalApprover { by: person_name() }, Arc::clone(&reporter))),
                Arc::new(ExclusivePrompt::new(TerminalAnswerer { by: person_name() }, Arc::clone(&reporter))),
            ),
            () => (approver, answerer),
        };
        let observers = RunObservers { sink: reporter.clone(), listener: reporter.clone(), approver, answerer };
        (observers, Some(reporter))
    }
}

/// The answer goes to standard output, unless the terminal has already shown it.
fn print_answer(outcome: &AgentOutcome, invocation: &Invocation) {
    let was_shown = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    if let (Some(answer), false, false) = (outcome.answer(), was_shown, invocation.json) {
        outln!("{}", crate::terminal::plain(answer));
    }
}
