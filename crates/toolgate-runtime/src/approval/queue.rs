//! The approval queue as a second way to answer, besides the front end of a session: a request is in the queue while it
//! waits, so that another terminal or HTTP client can answer it too. The first answer wins, and the other request is
//! withdrawn. The agent's own questions are queued in the same way.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_contract::{BoxFuture, Clock, Question, QuestionAnswer, QuestionOutcome, schemars};
use toolgate_journal::{ApprovalQueue, QueueEntry, QueuedAnswer};

use super::{ApprovalAnswer, ApprovalRequest, Approver};
use crate::question::QuestionAnswerer;

/// How often the queue is checked for an answer.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The approval queue, and how a session uses it.
#[derive(Clone)]
pub struct ApprovalQueueClient {
    /// The queue in the state directory.
    pub approvals: Arc<ApprovalQueue>,
    /// How long to wait for an answer from the queue alone, where the front end can't ask a person. Zero: not at all.
    pub wait: Duration,
    /// Where times and ids come from.
    pub clock: Arc<dyn Clock>,
}

/// The run and session of a request.
pub(crate) struct Requester<'a> {
    pub(crate) run: &'a str,
    pub(crate) session: &'a str,
}

/// A request in the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum QueueItem {
    /// A call that needs approval.
    Approval(ApprovalRequest),
    /// A question that the agent asks.
    Question(QueuedQuestion),
}

/// A question that the agent asks, as stored in the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedQuestion {
    /// The call that asks.
    pub tool_call_id: String,
    /// What is asked.
    #[serde(flatten)]
    pub question: Question,
}

impl ApprovalQueueClient {
    /// Asks for approval in the front end and in the queue at once. If the front end answers immediately, nothing is
    /// queued.
    pub(crate) async fn ask(
        &self,
        front_end: &dyn Approver,
        requester: &Requester<'_>,
        request: &ApprovalRequest,
    ) -> ApprovalAnswer {
        let front_end = front_end.ask(request).map(|answer| (answer != ApprovalAnswer::Nobody).then_some(answer));
        let item = QueueItem::Approval(request.clone());
        let answer = self.race(Box::pin(front_end), requester, &item, |answer| as_approval(answer, request)).await;
        answer.unwrap_or(ApprovalAnswer::Nobody)
    }

    /// Asks the agent's question in the front end and in the queue at once.
    pub(crate) async fn ask_question(
        &self,
        front_end: &dyn QuestionAnswerer,
        requester: &Requester<'_>,
        call: &str,
        question: &Question,
    ) -> QuestionOutcome {
        let in_front_end =
            front_end.answer(call, question).map(|outcome| (outcome != QuestionOutcome::Nobody).then_some(outcome));
        let item = QueueItem::Question(QueuedQuestion { tool_call_id: call.to_owned(), question: question.clone() });
        let outcome = self.race(Box::pin(in_front_end), requester, &item, as_question_answer).await;
        outcome.unwrap_or(QuestionOutcome::Nobody)
    }

    async fn race<T>(
        &self,
        mut front_end: BoxFuture<'_, Option<T>>,
        requester: &Requester<'_>,
        item: &QueueItem,
        read: impl Fn(QueuedAnswer) -> Option<T>,
    ) -> Option<T> {
        match (&mut front_end).now_or_never() {
            Some(None) => return self.wait_in_queue_alone(requester, item).await.and_then(read),
            Some(answer) => return answer,
            None => {}
        }
        match select(front_end, pin!(self.wait_in_queue(requester, item, None))).await {
            Either::Left((None, queue)) => tokio::time::timeout(self.wait, queue).await.ok().flatten().and_then(read),
            Either::Left((answer, _)) => answer,
            Either::Right((answer, front_end)) => match answer.and_then(read) {
                None => front_end.await,
                answer => answer,
            },
        }
    }

    /// Waits for an answer from the queue alone.
    async fn wait_in_queue_alone(&self, requester: &Requester<'_>, item: &QueueItem) -> Option<QueuedAnswer> {
        if self.wait.is_zero() {
            return None;
        }
        let expires = self.clock.now().checked_add(self.wait).ok();
        tokio::time::timeout(self.wait, self.wait_in_queue(requester, item, expires)).await.ok().flatten()
    }

    /// Queues a request until it is answered. A queue that can't be used counts as no answer.
    async fn wait_in_queue(
        &self,
        requester: &Requester<'_>,
        item: &QueueItem,
        expires: Option<Timestamp>,
    ) -> Option<QueuedAnswer> {
        let request: Value = serde_json::to_value(item).ok()?;
        let ask = QueueEntry {
            id: format!("ask_{}", self.clock.id().simple()),
            run: requester.run.to_owned(),
            session: requester.session.to_owned(),
            asked: self.clock.now(),
            expires,
            request,
        };
        let ticket = self.approvals.put(&ask).ok()?;
        loop {
            match ticket.answer().ok()? {
                None => tokio::time::sleep(POLL_INTERVAL).await,
                answer => return answer,
            }
        }
    }
}

/// An approval counts only for a scope that was offered.
fn as_approval(answer: QueuedAnswer, request: &ApprovalRequest) -> Option<ApprovalAnswer> {
    match answer {
        QueuedAnswer::Denied { by, reason } => Some(ApprovalAnswer::Denied { by, reason }),
        QueuedAnswer::Aborted { by, reason } => Some(ApprovalAnswer::Aborted { by, reason }),
        QueuedAnswer::Granted { scope, by } if request.offers(scope) => Some(ApprovalAnswer::Granted { scope, by }),
        QueuedAnswer::Granted { by, .. } => {
            let reason = Some("The answer has a wider scope than any that was offered.".into());
            Some(ApprovalAnswer::Denied { by, reason })
        }
        QueuedAnswer::Said { .. } => None,
    }
}

/// Only a text answers a question; an approval or refusal doesn't.
fn as_question_answer(answer: QueuedAnswer) -> Option<QuestionOutcome> {
    match answer {
        QueuedAnswer::Said { words, choice, by } => {
            Some(QuestionOutcome::Answered(QuestionAnswer { answer: words, choice, by }))
        }
        QueuedAnswer::Granted { .. } | QueuedAnswer::Denied { .. } | QueuedAnswer::Aborted { .. } => None,
    }
}

/// Answers questions in the front end and in the queue.
pub(crate) struct QueuedAnswerer {
    pub(crate) front_end: Arc<dyn QuestionAnswerer>,
    pub(crate) queue: ApprovalQueueClient,
    pub(crate) run: String,
    pub(crate) session: String,
}

impl QuestionAnswerer for QueuedAnswerer {
    fn answer<'a>(&'a self, call: &'a str, question: &'a Question) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(async move {
            let requester = Requester { run: &self.run, session: &self.session };
            self.queue.ask_question(self.front_end.as_ref(), &requester, call, question).await
        })
    }

    fn sample<'a>(&'a self, call: &'a str, request: &'a Value) -> BoxFuture<'a, Option<Value>> {
        self.front_end.sample(call, request)
    }
}
