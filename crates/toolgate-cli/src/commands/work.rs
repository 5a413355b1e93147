//! `toolgate work`: takes tasks from the inbox and works on them, one at a time.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use parking_lot::Mutex;
use toolgate_agent::model::Model;
use toolgate_agent::{Agent, AgentLimits};
use toolgate_contract::{BoxFuture, CancellationToken};
use toolgate_journal::Inbox;
use toolgate_workspace::{RunChoice, Workspace};

use super::run::ModelArgs;
use super::{Invocation, block_on};
use crate::exit::Exit;
use crate::output::errln;
use crate::signals::cancel_on_signal;
use crate::terminal::{TerminalSink, YELLOW, paint, plain};
use crate::work::{
    IdleOnce, InboxLink, ReplyChannel, RunRecords, Supervisor, TaskAttempt, TaskResult, TaskWorker, TelegramBot,
    reply_channel,
};
use crate::workspace::open_workspace_with;

/// Polling interval of an idle worker.
const PAUSE: Duration = Duration::from_millis(500);

/// Take tasks from the inbox and work on them, one at a time.
///
/// A worker holds a task by a lease. When the worker is killed, the lease expires and the next worker continues the
/// task; it is told what was already done. Each answer goes where its task says, and is stored until it is delivered.
///
/// While the inbox can't be used (a database that is down), a worker keeps trying, with growing pauses, and what it works
/// on goes on until its lease has ended. With --once it gives up after --retry-seconds, with exit code 5 if the database
/// isn't available; an attempt to connect may take 10 seconds more.
///
/// With --once, a task that another worker holds is waited for until its lease was renewed or has expired.
///
/// With --telegram-chat, messages from these chats become tasks, and approvals are requested there, with buttons.
///
/// Examples:
///   toolgate work --model anthropic:claude-sonnet-4-5
///   toolgate work --once --model ollama:qwen3             work on the queued tasks, then exit
///   TOOLGATE_TELEGRAM_TOKEN=… toolgate work --model openai:gpt-5 --telegram-chat 123456
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct WorkArgs {
    /// Exit when no task is left.
    #[arg(long)]
    once: bool,
    /// With --once: seconds to keep trying while the inbox can't be used.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=86400))]
    retry_seconds: u64,
    #[command(flatten)]
    model: ModelArgs,
    /// Maximum number of turns per task.
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().turns)]
    max_turns: u64,
    /// Seconds after which another worker takes a task that isn't renewed.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    lease_seconds: u64,
    /// A Telegram chat whose messages are tasks; can be given more than once.
    #[arg(long, value_name = "ID", help_heading = "Telegram", allow_hyphen_values = true)]
    telegram_chat: Vec<i64>,
    /// A file with the bot's token. Otherwise: TOOLGATE_TELEGRAM_TOKEN.
    #[arg(long, value_name = "FILE", help_heading = "Telegram")]
    telegram_token_file: Option<PathBuf>,
    /// Another server with the Bot API.
    #[arg(long, value_name = "URL", default_value = "https://api.telegram.org", help_heading = "Telegram")]
    telegram_url: String,
}

impl WorkArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let opened = self.model.open(&invocation.location.load()?.settings.model)?;
        let token = self.telegram_token()?;
        let mut secrets = opened.secrets();
        secrets.extend(token.clone().map(|token| ("the bot's token".to_owned(), token)));
        let workspace = open_workspace_with(&invocation.location, toolgate_agent::tools(), secrets)?;
        let (state, inbox, store) =
            (invocation.location.state()?, workspace.stores.inbox()?, workspace.stores.store()?);
        let controls = AgentLimits { turns: self.max_turns, ..AgentLimits::default() };
        let worker = AgentWorker { workspace, model: opened.model, controls, as_json: invocation.json };
        block_on(self.serve(RunRecords { state: Arc::new(state), store }, inbox, &worker, token, invocation.json))??;
        worker.workspace.finish();
        Ok(Exit::Ok)
    }

    async fn serve(
        &self,
        records: RunRecords,
        inbox: Arc<dyn Inbox>,
        worker: &AgentWorker,
        token: Option<String>,
        as_json: bool,
    ) -> Result<()> {
        let cancel = CancellationToken::new();
        cancel_on_signal(cancel.clone(), || {});
        let telegram = self.telegram(token)?;
        if let Some(telegram) = telegram.clone() {
            let inbox = Arc::clone(&inbox);
            tokio::spawn(async move { telegram.listen(inbox).await });
        }
        let (clock, warn) = (Arc::clone(&worker.workspace.clock), |text: &str| warn(text));
        let supervisor = Supervisor {
            link: InboxLink::new(inbox, Arc::clone(&clock), warn),
            records,
            worker,
            clock,
            lease: Duration::from_secs(self.lease_seconds),
            unconfirmed: Mutex::default(),
        };
        let channel_of = |task: &toolgate_journal::Task| reply_channel(&task.reply_to, telegram.as_ref(), as_json);
        self.take_tasks(&supervisor, &channel_of, &cancel).await
    }

    /// Takes and finishes tasks until there are none, with `--once`, or until this process is told to stop.
    async fn take_tasks(
        &self,
        supervisor: &Supervisor<'_>,
        channel_of: &(dyn Fn(&toolgate_journal::Task) -> Result<Arc<dyn ReplyChannel>> + Sync),
        cancel: &CancellationToken,
    ) -> Result<()> {
        let (mut failures, mut idle) = (0, IdleOnce::default());
        while !cancel.is_cancelled() {
            let pause = match supervisor.take().await {
                Ok(Some(taken)) => {
                    failures = 0;
                    if self.once {
                        idle.took(taken.token());
                    }
                    match supervisor.finish(&taken, channel_of, cancel).await {
                        Ok(()) => continue,
                        // An error affects one task only: its lease expires and it is tried again.
                        Err(error) => warn(&format!("{error:#}")),
                    }
                    PAUSE
                }
                Ok(None) if self.once && !supervisor.must_wait(&mut idle).await => break,
                Ok(None) => {
                    failures = 0;
                    PAUSE
                }
                Err(error) => {
                    failures += 1;
                    self.pause_after_failure(supervisor, failures).ok_or(error)?
                }
            };
            tokio::select! { () = cancel.cancelled() => {}, () = tokio::time::sleep(pause) => {} }
        }
        Ok(())
    }

    /// How long to wait while the inbox can't be used. None when it is time to give up.
    fn pause_after_failure(&self, supervisor: &Supervisor<'_>, failures: u32) -> Option<Duration> {
        let pause = supervisor.link.pause(failures);
        if !self.once {
            return Some(pause);
        }
        let failing = supervisor.link.failing_for().unwrap_or_default();
        let left = Duration::from_secs(self.retry_seconds).checked_sub(failing).filter(|left| !left.is_zero());
        left.map(|left| pause.min(left))
    }

    fn telegram(&self, token: Option<String>) -> Result<Option<Arc<TelegramBot>>> {
        if self.telegram_chat.is_empty() {
            return Ok(None);
        }
        let token = token.context("Telegram needs a bot's token: TOOLGATE_TELEGRAM_TOKEN or --telegram-token-file.")?;
        Ok(Some(Arc::new(TelegramBot::new(&self.telegram_url, &token, self.telegram_chat.iter().copied())?)))
    }

    #[allow(clippy::disallowed_methods, reason = "reads the file that the user named on the command line")]
    fn telegram_token(&self) -> Result<Option<String>> {
        let text = match &self.telegram_token_file {
            Some(file) => {
                Some(std::fs::read_to_string(file).with_context(|| format!("{} can't be read", file.display()))?)
            }
            None => std::env::var("TOOLGATE_TELEGRAM_TOKEN").ok(),
        };
        Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
    }
}

fn warn(text: &str) {
    errln!("{} {}", paint(YELLOW.bold(), "warning:"), plain(text));
}

/// Runs an agent behind the gate, with a new run for each task.
struct AgentWorker {
    workspace: Workspace,
    model: Arc<dyn Model>,
    controls: AgentLimits,
    as_json: bool,
}

impl TaskWorker for AgentWorker {
    fn work<'a>(&'a self, job: TaskAttempt<'a>, cancel: CancellationToken) -> BoxFuture<'a, Result<TaskResult>> {
        Box::pin(async move {
            let choice = RunChoice { run: None, session: "inbox".into(), front_end: "inbox" };
            let recorded = self.workspace.begin_as(&job.run, &choice)?;
            // Nobody continues the run while the task is worked on.
            let _hold = self.workspace.state.hold_run(&recorded.run.id)?;
            let session = recorded
                .session
                .approved_by(job.reply_channel.approver())
                .answered_by(job.reply_channel.answerer())
                .watched_by(Arc::new(TerminalSink::new(self.as_json)));
            let (ending, model) = (session.clone(), Arc::clone(&self.model));
            let agent = Agent::new(model, Arc::clone(&self.workspace.gate), session, self.controls.clone());
            let outcome = agent.work(&job.objective, cancel).await;
            ending.end().await;
            recorded.run.end().context("the end of the run couldn't be recorded")?;
            Ok(TaskResult { outcome: outcome.finish.to_string(), answer: outcome.summary })
        })
    }
}
