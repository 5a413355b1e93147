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
use toolgate_contract::{Answered, BoxFuture, Clock, Inquiry, schemars};
use toolgate_journal::{ApprovalDesk, Ask, DeskAnswer};

use super::{Answer, ApprovalRequest, Approver};
use crate::inquiry::Respondent;

/// How often somebody who waits looks for an answer.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The desk, and how a session uses it.
#[derive(Clone)]
pub struct Desk {
    /// Where asks lie.
    pub approvals: Arc<ApprovalDesk>,
    /// How long the desk alone is waited at, where a front end has nobody to ask. Zero: not at all.
    pub wait: Duration,
    /// Where times and ids come from.
    pub clock: Arc<dyn Clock>,
}

/// Whose ask it is.
pub(crate) struct Asker<'a> {
    pub(crate) run: &'a str,
    pub(crate) session: &'a str,
}

/// What lies on the desk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OnDesk {
    /// A call that has to be approved.
    Approval(ApprovalRequest),
    /// A question of the agent's own.
    Question(Question),
}

/// A question of the agent's own, as it lies on the desk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The call that asks.
    pub tool_call_id: String,
    /// What is asked.
    #[serde(flatten)]
    pub inquiry: Inquiry,
}

impl Desk {
    /// Asks for approval in both ways at once. An own way that answers at once never bothers the desk.
    pub(crate) async fn ask(&self, own: &dyn Approver, asker: &Asker<'_>, request: &ApprovalRequest) -> Answer {
        let own = own.ask(request).map(|answer| (answer != Answer::Nobody).then_some(answer));
        let waits = OnDesk::Approval(request.clone());
        let answer = self.race(Box::pin(own), asker, &waits, |answer| offered(answer, request)).await;
        answer.unwrap_or(Answer::Nobody)
    }

    /// Asks the agent's own question in both ways at once.
    pub(crate) async fn inquire(
        &self,
        own: &dyn Respondent,
        asker: &Asker<'_>,
        call: &str,
        inquiry: &Inquiry,
    ) -> Option<Answered> {
        let waits = OnDesk::Question(Question { tool_call_id: call.to_owned(), inquiry: inquiry.clone() });
        self.race(own.answer(call, inquiry), asker, &waits, said).await
    }

    async fn race<T>(
        &self,
        mut own: BoxFuture<'_, Option<T>>,
        asker: &Asker<'_>,
        waits: &OnDesk,
        read: impl Fn(DeskAnswer) -> Option<T>,
    ) -> Option<T> {
        match (&mut own).now_or_never() {
            Some(None) => return self.alone(asker, waits).await.and_then(read),
            Some(answer) => return answer,
            None => {}
        }
        match select(own, pin!(self.lie(asker, waits, None))).await {
            Either::Left((None, desk)) => tokio::time::timeout(self.wait, desk).await.ok().flatten().and_then(read),
            Either::Left((answer, _)) => answer,
            Either::Right((answer, own)) => match answer.and_then(read) {
                None => own.await,
                answer => answer,
            },
        }
    }

    /// Nobody is there but, perhaps, somebody at the desk.
    async fn alone(&self, asker: &Asker<'_>, waits: &OnDesk) -> Option<DeskAnswer> {
        if self.wait.is_zero() {
            return None;
        }
        let expires = self.clock.now().checked_add(self.wait).ok();
        tokio::time::timeout(self.wait, self.lie(asker, waits, expires)).await.ok().flatten()
    }

    /// Lies on the desk until it is answered. A desk that can't be used is as good as nobody.
    async fn lie(&self, asker: &Asker<'_>, waits: &OnDesk, expires: Option<Timestamp>) -> Option<DeskAnswer> {
        let request: Value = serde_json::to_value(waits).ok()?;
        let ask = Ask {
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
fn offered(answer: DeskAnswer, request: &ApprovalRequest) -> Option<Answer> {
    match answer {
        DeskAnswer::Denied { by, reason } => Some(Answer::Denied { by, reason }),
        DeskAnswer::Granted { scope, by } if request.scopes.iter().any(|offer| offer.scope == scope) => {
            Some(Answer::Granted { scope, by })
        }
        DeskAnswer::Granted { by, .. } => {
            let reason = Some("The answer reaches farther than anything that was offered.".into());
            Some(Answer::Denied { by, reason })
        }
        DeskAnswer::Said { .. } => None,
    }
}

/// Words answer a question; neither a yes nor a no does.
fn said(answer: DeskAnswer) -> Option<Answered> {
    match answer {
        DeskAnswer::Said { words, choice, by } => Some(Answered { answer: words, choice, by }),
        DeskAnswer::Granted { .. } | DeskAnswer::Denied { .. } => None,
    }
}

/// Whoever answers questions, in their own way and at the desk.
pub(crate) struct AtDesk {
    pub(crate) own: Arc<dyn Respondent>,
    pub(crate) desk: Desk,
    pub(crate) run: String,
    pub(crate) session: String,
}

impl Respondent for AtDesk {
    fn answer<'a>(&'a self, call: &'a str, inquiry: &'a Inquiry) -> BoxFuture<'a, Option<Answered>> {
        Box::pin(async move {
            let asker = Asker { run: &self.run, session: &self.session };
            self.desk.inquire(self.own.as_ref(), &asker, call, inquiry).await
        })
    }
}
