//! The desk beside a session's own way of asking: an ask lies there as long as it waits, so that another terminal or
//! HTTP can answer it too. The first answer wins, and the other way is withdrawn.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use jiff::Timestamp;
use toolgate_contract::{BoxFuture, Clock};
use toolgate_journal::{ApprovalDesk, Ask, DeskAnswer};

use super::{Answer, ApprovalRequest, Approver};

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

impl Desk {
    /// Asks in both ways at once. An own way that answers at once never bothers the desk.
    pub(crate) async fn ask(&self, own: &dyn Approver, asker: &Asker<'_>, request: &ApprovalRequest) -> Answer {
        let mut own = own.ask(request);
        match (&mut own).now_or_never() {
            Some(Answer::Nobody) => return self.alone(asker, request).await,
            Some(answer) => return answer,
            None => {}
        }
        match select(own, self.lie(asker, request, None)).await {
            Either::Left((Answer::Nobody, desk)) => {
                tokio::time::timeout(self.wait, desk).await.unwrap_or(Answer::Nobody)
            }
            Either::Right((Answer::Nobody, own)) => own.await,
            Either::Left((answer, _)) | Either::Right((answer, _)) => answer,
        }
    }

    /// Nobody is there but, perhaps, somebody at the desk.
    async fn alone(&self, asker: &Asker<'_>, request: &ApprovalRequest) -> Answer {
        if self.wait.is_zero() {
            return Answer::Nobody;
        }
        let expires = self.clock.now().checked_add(self.wait).ok();
        let answered = tokio::time::timeout(self.wait, self.lie(asker, request, expires)).await;
        answered.unwrap_or(Answer::Nobody)
    }

    /// Lies on the desk until it is answered. A desk that can't be used is as good as nobody.
    fn lie<'a>(
        &'a self,
        asker: &'a Asker<'_>,
        request: &'a ApprovalRequest,
        expires: Option<Timestamp>,
    ) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Ok(json) = serde_json::to_value(request) else { return Answer::Nobody };
            let ask = Ask {
                id: format!("ask_{}", self.clock.id().simple()),
                run: asker.run.to_owned(),
                session: asker.session.to_owned(),
                asked: self.clock.now(),
                expires,
                request: json,
            };
            let Ok(waiting) = self.approvals.put(&ask) else { return Answer::Nobody };
            loop {
                match waiting.answer() {
                    Ok(None) => tokio::time::sleep(LOOK_EVERY).await,
                    Ok(Some(answer)) => return offered(answer, request),
                    Err(_) => return Answer::Nobody,
                }
            }
        })
    }
}

/// A yes counts as far as it was offered, and no farther.
fn offered(answer: DeskAnswer, request: &ApprovalRequest) -> Answer {
    match answer {
        DeskAnswer::Denied { by, reason } => Answer::Denied { by, reason },
        DeskAnswer::Granted { scope, by } if request.scopes.iter().any(|offer| offer.scope == scope) => {
            Answer::Granted { scope, by }
        }
        DeskAnswer::Granted { by, .. } => {
            Answer::Denied { by, reason: Some("The answer reaches farther than anything that was offered.".into()) }
        }
    }
}
