//! Approvals: what waits, and answering it. A session sees the approvals of its own calls; whether it may answer them, the
//! owner decides when the session begins.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolgate_contract::{ApprovalScope, schemars};
use toolgate_journal::{QueueEntry, QueuedAnswer};
use toolgate_runtime::{ApprovalQueueClient, ApprovalRequest, QueueItem};

use super::{JsonBody, PathId, read_json, run_blocking};
use crate::authenticator::SignedIn;
use crate::diff_view::DiffView;
use crate::http_session::Caller;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// A call that waits for an approval.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalView {
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
    /// What the person has to decide.
    request: ApprovalRequest,
    /// The effects of the call in words.
    effects: Vec<String>,
    /// The preview as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<DiffView>,
    /// The hash of all that is shown here: an answer that names it answers this request and no other.
    hash: String,
}

/// All calls that wait for an approval.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalList {
    approvals: Vec<ApprovalView>,
}

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ApprovalAnswerBody {
    /// Yes.
    Approve {
        /// How far; this one call if missing. Only what the request offers.
        #[serde(default)]
        scope: Option<ApprovalScope>,
        /// The `hash` of the request that was shown. Another one is refused. A browser has to send it.
        #[serde(default)]
        hash: Option<String>,
    },
    /// No, and the whole run ends: its other calls are cancelled, and no more are made.
    Abort {
        /// Why; told to the model.
        #[serde(default)]
        reason: Option<String>,
        /// The `hash` of the request that was shown.
        #[serde(default)]
        hash: Option<String>,
    },
    /// No.
    Deny {
        /// Why; told to the model.
        #[serde(default)]
        reason: Option<String>,
        /// The `hash` of the request that was shown.
        #[serde(default)]
        hash: Option<String>,
    },
}

impl ApprovalAnswerBody {
    fn hash(&self) -> Option<&str> {
        match self {
            Self::Approve { hash, .. } | Self::Abort { hash, .. } | Self::Deny { hash, .. } => hash.as_deref(),
        }
    }
}

pub(super) async fn list(State(state): State<Arc<ServerState>>, caller: Caller) -> Result<Json<ApprovalList>, Problem> {
    run_blocking(move || {
        Ok(Json(ApprovalList { approvals: visible(&state, &caller)?.into_iter().filter_map(shown).collect() }))
    })
    .await
}

pub(super) async fn show(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Json<ApprovalView>, Problem> {
    run_blocking(move || state.approval(&caller, &id).map(Json)).await
}

pub(super) async fn answer(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    signed_in: Option<Extension<SignedIn>>,
    PathId(id): PathId,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, Problem> {
    let given: ApprovalAnswerBody = read_json(&body)?;
    run_blocking(move || {
        let approval = state.approval(&caller, &id)?;
        let by = answerer(&state, &caller)?;
        let is_approval = matches!(given, ApprovalAnswerBody::Approve { .. });
        let is_missing = given.hash().is_none() && is_approval && signed_in.is_some();
        if is_missing || given.hash().is_some_and(|hash| hash != approval.hash) {
            let message = "The answer isn't about the request that waits here.";
            let hint = "Load the request again, read it, and send its `hash` with the answer.";
            return Err(Problem::new(StatusCode::CONFLICT, "other_request", message, hint));
        }
        let answer = match given {
            ApprovalAnswerBody::Deny { reason, .. } => QueuedAnswer::Denied { by, reason },
            ApprovalAnswerBody::Abort { reason, .. } => QueuedAnswer::Aborted { by, reason },
            ApprovalAnswerBody::Approve { scope, .. } => {
                let scope = scope.unwrap_or(ApprovalScope::Call);
                if !approval.request.offers(scope) {
                    return Err(Problem::invalid("The request doesn't offer that scope."));
                }
                if matches!(caller, Caller::Session(_)) && scope == ApprovalScope::Always {
                    // It would reach the sessions of others.
                    return Err(Problem::owners_only());
                }
                QueuedAnswer::Granted { scope, by }
            }
        };
        submit_answer(&state, &id, &answer)
    })
    .await
}

/// Puts an answer into the approval queue; the first one counts.
pub(super) fn submit_answer(state: &ServerState, id: &str, answer: &QueuedAnswer) -> Result<StatusCode, Problem> {
    state.queue()?.approvals.answer(id, answer, state.workspace.clock.now())?;
    Ok(StatusCode::NO_CONTENT)
}

/// The entries of the approval queue that this caller may see.
pub(super) fn visible(state: &ServerState, caller: &Caller) -> Result<Vec<QueueEntry>, Problem> {
    let mut asks = state.queue()?.approvals.asks(state.workspace.clock.now())?;
    asks.retain(|ask| is_visible(caller, ask));
    Ok(asks)
}

/// Who answers, for the record; a problem if they may not.
pub(super) fn answerer(state: &ServerState, caller: &Caller) -> Result<String, Problem> {
    match caller {
        Caller::Owner => Ok(format!("{} (http)", state.workspace.owner)),
        Caller::Session(client) if client.may_answer => Ok(format!("session {} (http)", client.id)),
        Caller::Session(_) => {
            let message = "This session may see its approvals, but not answer them.";
            let hint = "The owner answers, or begins the session with `may_answer`.";
            Err(Problem::new(StatusCode::FORBIDDEN, "may_not_answer", message, hint))
        }
    }
}

fn is_visible(caller: &Caller, ask: &QueueEntry) -> bool {
    match caller {
        Caller::Owner => true,
        Caller::Session(client) => ask.session == client.id && ask.run == client.run.id,
    }
}

/// An entry of the queue, if it is an approval.
fn shown(ask: QueueEntry) -> Option<ApprovalView> {
    let digest = serde_json::to_vec(&ask).map(Sha256::digest).ok()?;
    let hash = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let QueueEntry { id, run, session, asked, expires, request } = ask;
    match serde_json::from_value(request).ok()? {
        QueueItem::Approval(request) => {
            let effects = request.effects.iter().map(ToString::to_string).collect();
            let diff = request.preview.as_deref().map(DiffView::of);
            Some(ApprovalView { id, run, session, asked, expires, request, effects, diff, hash })
        }
        QueueItem::Question(_) => None,
    }
}

impl ServerState {
    pub(super) fn queue(&self) -> Result<&ApprovalQueueClient, Problem> {
        self.workspace.approvals.as_ref().ok_or_else(|| {
            let message = "There is no approval queue, because there is no signing key.";
            let hint = "`toolgate doctor` says why.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_desk", message, hint)
        })
    }

    fn approval(&self, caller: &Caller, id: &str) -> Result<ApprovalView, Problem> {
        shown(self.waiting(caller, id)?).ok_or_else(|| Problem::not_found("such approval waiting"))
    }

    pub(super) fn waiting(&self, caller: &Caller, id: &str) -> Result<QueueEntry, Problem> {
        let ask = self.queue()?.approvals.ask(id, self.workspace.clock.now())?;
        match is_visible(caller, &ask) {
            true => Ok(ask),
            false => Err(Problem::not_found("such approval waiting")),
        }
    }
}
