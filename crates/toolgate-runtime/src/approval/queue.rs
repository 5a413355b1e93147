//! The desk beside a session's own way of asking: an ask lies there as long as it waits, so that another terminal or
//! HTTP can answer it too. The first answer wins, and the other way is withdrawn. The agent's own questions lie there in
//! the same way.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_contract::{BoxFuture, Clock, Question, QuestionAnswer, schemars};
use toolgate_journal::{ApprovalQueue, QueueEntry, QueuedAnswer};

use super::{ApprovalAnswer, ApprovalRequest, Approver};
use crate::question::QuestionAnswerer;

/// How often somebody who waits looks for an answer.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The desk, and how a session uses it.
#[derive(Clone)]
pub struct ApprovalQueueClient {
    /// Where asks lie.
    pub approvals: Arc<ApprovalQueue>,
    /// How long the desk alone is waited at, where a front end has nobody to ask. Zero: not at all.
    pub wait: Duration,
    /// Where times and ids come from.
    pub clock: Arc<dyn Clock>,
}

/// Whose ask it is.
pub(crate) struct Requester<'a> {
    pub(crate) run: &'a str,
    pub(crate) session: &'a str,
}

/// What lies on the desk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum QueueItem {
    /// A call that has to be approved.
    Approval(ApprovalRequest),
    /// A question of the agent's own.
    Question(QueuedQuestion),
}

/// A question of the agent's own, as it lies on the desk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedQuestion {
    /// The call that asks.
    pub tool_call_id: String,
    /// What is asked.
    #[serde(flatten)]
    pub question: Question,
}

impl ApprovalQueueClient {
    /// Asks for approval in both ways at once. An own way that answers at once never bothers the desk.
    pub(crate) async fn ask(
        &self,
        own: &dyn Approver,
        asker: &Requester<'_>,
        request: &ApprovalRequest,
    ) -> ApprovalAnswer {
        let own = own.ask(request).map(|answer| (answer != ApprovalAnswer::Nobody).then_some(answer));
        let waits = QueueItem::Approval(request.clone());
        let answer = self.race(Box::pin(own), asker, &waits, |answer| offered(answer, request)).await;
        answer.unwrap_or(ApprovalAnswer::Nobody)
    }

    /// Asks the agent's own question in both ways at once.
    pub(crate) async fn ask_question(
        &self,
        own: &dyn QuestionAnswerer,
        asker: &Requester<'_>,
        call: &str,
        question: &Question,
    ) -> Option<QuestionAnswer> {
        let waits = QueueItem::Question(QueuedQuestion { tool_call_id: call.to_owned(), question: question.clone() });
        self.race(own.answer(call, question), asker, &waits, said).await
    }

    async fn race<T>(
        &self,
        mut own: BoxFuture<'_, Option<T>>,
        asker: &Requester<'_>,
        waits: &QueueItem,
        read: impl Fn(QueuedAnswer) -> Option<T>,
    ) -> Option<T> {
        match (&mut own).now_or_never() {
            Some(None) => return self.alone(asker, waits).await.and_then(read),
            Some(answer) => return answer,
            None => {}
        }
        match select(own, pin!(self.lie(asker, waits, None))).await {
            Either::Left((None, queue)) => tokio::time::timeout(self.wait, queue).await.ok().flatten().and_then(read),
            Either::Left((answer, _)) => answer,
            Either::Right((answer, own)) => match answer.and_then(read) {
                None => own.await,
                answer => answer,
            },
        }
    }

    /// Nobody is there but, perhaps, somebody at the desk.
    async fn alone(&self, asker: &Requester<'_>, waits: &QueueItem) -> Option<QueuedAnswer> {
        if self.wait.is_zero() {
            return None;
        }
        let expires = self.clock.now().checked_add(self.wait).ok();
        tokio::time::timeout(self.wait, self.lie(asker, waits, expires)).await.ok().flatten()
    }

    /// Lies on the desk until it is answered. A desk that can't be used is as good as nobody.
    async fn lie(&self, asker: &Requester<'_>, waits: &QueueItem, expires: Option<Timestamp>) -> Option<QueuedAnswer> {
        let request: Value = serde_json::to_value(waits).ok()?;
        let ask = QueueEntry {
            id: format!("ask_{}", self.clock.id().simple()),
            run: asker.run.to_owned(),
            session: asker.session.to_owned(),
            asked: self.clock.now(),
            expires,
            request,
        };
        let waiting = self.approvals.put(&ask).ok()?;
        loop {
            match waiting.answer().ok()? {
                None => tokio::time::sleep(LOOK_EVERY).await,
                answer => return answer,
            }
        }
    }
}

/// A yes counts as far as it was offered, and no farther.
fn offered(answer: QueuedAnswer, request: &ApprovalRequest) -> Option<ApprovalAnswer> {
    match answer {
        QueuedAnswer::Denied { by, reason } => Some(ApprovalAnswer::Denied { by, reason }),
        QueuedAnswer::Granted { scope, by } if request.scopes.iter().any(|offer| offer.scope == scope) => {
            Some(ApprovalAnswer::Granted { scope, by })
        }
        QueuedAnswer::Granted { by, .. } => {
            let reason = Some("The answer reaches farther than anything that was offered.".into());
            Some(ApprovalAnswer::Denied { by, reason })
        }
        QueuedAnswer::Said { .. } => None,
    }
}

/// Words answer a question; neither a yes nor a no does.
fn said(answer: QueuedAnswer) -> Option<QuestionAnswer> {
    match answer {
        QueuedAnswer::Said { words, choice, by } => Some(QuestionAnswer { answer: words, choice, by }),
        QueuedAnswer::Granted { .. } | QueuedAnswer::Denied { .. } => None,
    }
}

/// Whoever answers questions, in their own way and at the desk.
pub(crate) struct QueuedAnswerer {
    pub(crate) own: Arc<dyn QuestionAnswerer>,
    pub(crate) queue: ApprovalQueueClient,
    pub(crate) run: String,
    pub(crate) session: String,
}

impl QuestionAnswerer for QueuedAnswerer {
    fn answer<'a>(&'a self, call: &'a str, question: &'a Question) -> BoxFuture<'a, Option<QuestionAnswer>> {
        Box::pin(async move {
            let asker = Requester { run: &self.run, session: &self.session };
            self.queue.ask_question(self.own.as_ref(), &asker, call, question).await
        })
    }
}
