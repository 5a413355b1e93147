//! Approvals: what waits, and answering it. A session sees what its own calls ask; whether it may answer that itself,
//! the owner said when the session began.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Scope, schemars};
use toolgate_journal::{Ask, DeskAnswer};
use toolgate_runtime::{ApprovalRequest, Desk, OnDesk};

use super::{Body, Id, on_disk, read_json};
use crate::client::Caller;
use crate::problem::Problem;
use crate::shared::Shared;

/// A call that waits for an approval.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Approval {
    /// The id to answer under.
    id: String,
    /// The run of the call.
    run: String,
    /// The session of the call.
    session: String,
    /// Since when it waits.
    #[schemars(with = "String")]
    asked: Timestamp,
    /// Until when it waits, if there is an end to it.
    #[schemars(with = "Option<String>")]
    expires: Option<Timestamp>,
    /// What the person is to decide about, whole.
    request: ApprovalRequest,
}

/// All that wait.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Approvals {
    approvals: Vec<Approval>,
}

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Given {
    /// Yes.
    Approve {
        /// How far; this one call if missing. Only what the request offers.
        #[serde(default)]
        scope: Option<Scope>,
    },
    /// No.
    Deny {
        /// Why; told to the model.
        #[serde(default)]
        reason: Option<String>,
    },
}

pub(super) async fn list(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<Json<Approvals>, Problem> {
    on_disk(move || {
        Ok(Json(Approvals { approvals: visible(&shared, &caller)?.into_iter().filter_map(shown).collect() }))
    })
    .await
}

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Id(id): Id,
) -> Result<Json<Approval>, Problem> {
    on_disk(move || shared.approval(&caller, &id).map(Json)).await
}

pub(super) async fn answer(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body,
) -> Result<StatusCode, Problem> {
    let given: Given = read_json(&body)?;
    on_disk(move || {
        let approval = shared.approval(&caller, &id)?;
        let by = answerer(&shared, &caller)?;
        let answer = match given {
            Given::Deny { reason } => DeskAnswer::Denied { by, reason },
            Given::Approve { scope } => {
                let scope = scope.unwrap_or(Scope::Call);
                if !approval.request.scopes.iter().any(|offer| offer.scope == scope) {
                    return Err(Problem::invalid("That scope isn't among those that the request offers."));
                }
                DeskAnswer::Granted { scope, by }
            }
        };
        give(&shared, &id, &answer)
    })
    .await
}

/// Lays an answer on the desk; the first one counts.
pub(super) fn give(shared: &Shared, id: &str, answer: &DeskAnswer) -> Result<StatusCode, Problem> {
    shared.desk()?.approvals.answer(id, answer, shared.house.clock().now())?;
    Ok(StatusCode::NO_CONTENT)
}

/// What waits on the desk, as far as this caller may see it.
pub(super) fn visible(shared: &Shared, caller: &Caller) -> Result<Vec<Ask>, Problem> {
    let mut asks = shared.desk()?.approvals.asks(shared.house.clock().now())?;
    asks.retain(|ask| is_visible(caller, ask));
    Ok(asks)
}

/// Who answers, for the record; or that they may not.
pub(super) fn answerer(shared: &Shared, caller: &Caller) -> Result<String, Problem> {
    match caller {
        Caller::Owner => Ok(format!("{} (http)", shared.house.owner())),
        Caller::Session(client) if client.may_answer => Ok(format!("session {} (http)", client.id)),
        Caller::Session(_) => {
            let message = "This session may see what its calls ask, but not answer it.";
            let hint = "The owner answers, or begins the session with `may_answer`.";
            Err(Problem::new(StatusCode::FORBIDDEN, "may_not_answer", message, hint))
        }
    }
}

fn is_visible(caller: &Caller, ask: &Ask) -> bool {
    match caller {
        Caller::Owner => true,
        Caller::Session(client) => ask.session == client.id && ask.run == client.run.id,
    }
}

/// An ask, if it is about an approval.
fn shown(ask: Ask) -> Option<Approval> {
    let Ask { id, run, session, asked, expires, request } = ask;
    match serde_json::from_value(request).ok()? {
        OnDesk::Approval(request) => Some(Approval { id, run, session, asked, expires, request }),
        OnDesk::Question(_) => None,
    }
}

impl Shared {
    pub(super) fn desk(&self) -> Result<&Desk, Problem> {
        self.house.desk().ok_or_else(|| {
            let message = "Nothing can wait for approval here, because there is no seal's key.";
            let hint = "`toolgate doctor` says why.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_desk", message, hint)
        })
    }

    fn approval(&self, caller: &Caller, id: &str) -> Result<Approval, Problem> {
        shown(self.waiting(caller, id)?).ok_or_else(|| Problem::not_found("such approval waiting"))
    }

    pub(super) fn waiting(&self, caller: &Caller, id: &str) -> Result<Ask, Problem> {
        let ask = self.desk()?.approvals.ask(id, self.house.clock().now())?;
        match is_visible(caller, &ask) {
            true => Ok(ask),
            false => Err(Problem::not_found("such approval waiting")),
        }
    }
}
