//! Reply channels: where a task's answer goes, and who answers its questions. A task names its channel in one word:
//! `terminal`, a URL that the answer is posted to, or a chat.

use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use toolgate_contract::BoxFuture;
use toolgate_journal::{ReplyAddress, Task};
use toolgate_runtime::{Approver, NobodyAnswers, NobodyToAsk, QuestionAnswerer};

use super::json_client::JsonClient;
use super::telegram::TelegramBot;
use super::telegram_channel::TelegramChannel;
use crate::output::outln;
use crate::terminal::{BOLD, DIM, TerminalAnswerer, TerminalApprover, paint, plain};
use crate::workspace::person_name;

/// An answer to deliver.
pub(crate) struct TaskAnswer<'a> {
    pub(crate) task: &'a Task,
    pub(crate) outcome: &'a str,
    pub(crate) answer: &'a str,
}

impl TaskAnswer<'_> {
    /// The answer for programs.
    fn json(&self) -> Value {
        let Self { task, outcome, answer } = self;
        json!({ "id": task.id, "task": task.task, "outcome": outcome, "answer": answer, "runs": task.runs })
    }
}

/// Where a task came from and its answer goes.
pub(crate) trait ReplyChannel: Send + Sync {
    /// Delivers the answer. Delivery is at least once: it repeats if this process dies right after it.
    fn deliver<'a>(&'a self, answer: &'a TaskAnswer<'a>) -> BoxFuture<'a, Result<()>>;

    /// Answers approval requests.
    fn approver(&self) -> Arc<dyn Approver> {
        Arc::new(NobodyToAsk)
    }

    /// Answers the agent's questions.
    fn answerer(&self) -> Arc<dyn QuestionAnswerer> {
        Arc::new(NobodyAnswers)
    }
}

/// The reply channel that a task's word names.
pub(crate) fn reply_channel(
    reply_to: &str,
    telegram: Option<&Arc<TelegramBot>>,
    as_json: bool,
) -> Result<Arc<dyn ReplyChannel>> {
    Ok(match reply_to.parse()? {
        ReplyAddress::Terminal => Arc::new(TerminalChannel { as_json }),
        ReplyAddress::Url(url) => Arc::new(Webhook { url, web: JsonClient::new()? }),
        ReplyAddress::TelegramChat(chat) => {
            let telegram =
                telegram.context("The answer goes to Telegram, and this worker has no `--telegram-chat`.")?;
            Arc::new(TelegramChannel::new(Arc::clone(telegram), chat))
        }
    })
}

/// The person at the worker's terminal, or the program that reads its output.
struct TerminalChannel {
    as_json: bool,
}

impl ReplyChannel for TerminalChannel {
    fn deliver<'a>(&'a self, answer: &'a TaskAnswer<'a>) -> BoxFuture<'a, Result<()>> {
        if self.as_json {
            outln!("{}", answer.json());
            return Box::pin(std::future::ready(Ok(())));
        }
        let TaskAnswer { task, outcome, answer } = answer;
        outln!("{} {}", paint(BOLD, plain(&task.id)), paint(DIM, outcome));
        outln!("{}", plain(answer));
        Box::pin(std::future::ready(Ok(())))
    }

    fn approver(&self) -> Arc<dyn Approver> {
        match !self.as_json && TerminalApprover::is_possible() {
            true => Arc::new(TerminalApprover { by: person_name() }),
            false => Arc::new(NobodyToAsk),
        }
    }

    fn answerer(&self) -> Arc<dyn QuestionAnswerer> {
        match !self.as_json && TerminalApprover::is_possible() {
            true => Arc::new(TerminalAnswerer { by: person_name() }),
            false => Arc::new(NobodyAnswers),
        }
    }
}

/// A program at a URL. It recognises a repeated answer by the task's id.
struct Webhook {
    url: String,
    web: JsonClient,
}

impl ReplyChannel for Webhook {
    fn deliver<'a>(&'a self, answer: &'a TaskAnswer<'a>) -> BoxFuture<'a, Result<()>> {
        let body = answer.json();
        Box::pin(async move { self.web.post(&self.url, &body).await.map(drop) })
    }
}
