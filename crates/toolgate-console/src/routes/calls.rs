//! Calls: the body is a call, the response is its reply, and the gate does the rest.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_contract::{Call, EventPayload, Reply, ToolError, schemars};
use toolgate_dialects::strict_json;
use toolgate_journal::read_events;
use toolgate_workspace::{CallCheck, DialectReply};

use super::quarantine::OwnerApproves;
use super::{ActingSession, JsonBody, PathId, StrictQuery, run_blocking};
use crate::http_session::{Caller, HttpSession};
use crate::problem::Problem;
use crate::server_state::{ServerState, SpawnedCall};
use crate::shown_results::ShownView;

/// The longest id that a caller may give a call.
const MAX_ID_LENGTH: usize = 200;

/// Whether the reply is waited for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallQuery {
    /// `false`: the call is accepted, and `GET /v1/calls/{id}` says how it ends.
    #[serde(default)]
    wait: Option<bool>,
}

/// The answer to a call: its reply, and in a dialect what the model is shown.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum CallAnswer {
    /// In a session with a dialect.
    Shown {
        /// What the model is shown.
        #[serde(flatten)]
        shown: ShownView,
        /// The native reply.
        reply: Reply,
    },
    /// In every other session.
    Native(Reply),
}

/// A call that was accepted and isn't waited for.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AcceptedCall {
    /// The call; `GET /v1/calls/{id}` shows it, and `DELETE` cancels it.
    tool_call_id: String,
    /// Where its events come.
    events: String,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CallProgress {
    /// It runs, or waits for an approval.
    Running,
    /// It has its reply.
    Ended,
}

/// A call of the session, whether it was waited for or not.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallView {
    /// The call.
    tool_call_id: String,
    /// How far it is.
    state: CallProgress,
    /// Where its events come.
    events: String,
    /// Its reply, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<Reply>,
    /// What a dialect shows of it. Only the session's latest calls have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<ShownView>,
}

pub(super) async fn create(
    State(state): State<Arc<ServerState>>,
    ActingSession(client): ActingSession,
    StrictQuery(CallQuery { wait }): StrictQuery<CallQuery>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let call = strict_json::parse_call(&body, state.workspace.clock.as_ref())?;
    if call.tool_call_id.is_empty() || call.tool_call_id.chars().count() > MAX_ID_LENGTH {
        return Err(Problem::invalid(format!("`tool_call_id` has 1 to {MAX_ID_LENGTH} characters.")));
    }
    let is_waited_for = wait.unwrap_or_else(|| !prefers_async(&headers));
    let spawned = begin(&state, &client, call, is_waited_for)?;
    answer(&client, spawned, is_waited_for).await
}

/// Shows a call that the session made, from the record of its run.
pub(super) async fn show(ActingSession(client): ActingSession, PathId(id): PathId) -> Result<Json<CallView>, Problem> {
    // Asked first: a call that isn't running any more has its end on record.
    let is_running = client.calls.contains(&id);
    run_blocking(move || {
        let found = match is_running {
            true => Some(None),
            false => recorded(&client, &id)?,
        };
        let reply = found.ok_or_else(|| Problem::not_found("such call"))?;
        let state = if reply.is_some() { CallProgress::Ended } else { CallProgress::Running };
        let shown = client.shown.of(&id);
        Ok(Json(CallView { tool_call_id: id, state, events: events_of(&client), reply, shown }))
    })
    .await
}

/// What is on record of a call: its reply, if it has ended; none if it isn't on record.
fn recorded(client: &HttpSession, id: &str) -> Result<Option<Option<Reply>>, Problem> {
    let unreadable = |error: std::io::Error| ToolError::io("The record can't be read", &error);
    let events = read_events(client.run.path())?.of_call(id).map_err(unreadable)?;
    let mut found = None;
    for event in events {
        match event.event.payload {
            EventPayload::CallStarted { .. } => found = Some(None),
            EventPayload::CallCompleted(ending) => found = Some(Some(ending.into_reply(id.to_owned(), None))),
            EventPayload::CallFailed { error, ending, .. } => {
                found = Some(Some(ending.into_reply(id.to_owned(), Some(error))));
            }
            _ => {}
        }
    }
    Ok(found)
}

fn events_of(client: &HttpSession) -> String {
    format!("/v1/runs/{}/events", client.run.id)
}

/// What would become of a call of the session, without making it.
pub(super) async fn check(
    State(state): State<Arc<ServerState>>,
    ActingSession(client): ActingSession,
    JsonBody(body): JsonBody,
) -> Result<Json<CallCheck>, Problem> {
    let call = strict_json::parse_call(&body, state.workspace.clock.as_ref())?;
    run_blocking(move || Ok(Json(client.dialects.check(call, &state.workspace.gate, &client.session)))).await
}

/// Undoes what a call, a turn or a run changed: a call of the tool `undo`, like any other.
pub(super) async fn undo(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    ActingSession(client): ActingSession,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let mut args = strict_json::parse(&body)?;
    let approve = args.as_object_mut().and_then(|args| args.shift_remove("approve"));
    let call = Call::new("undo", args, state.workspace.clock.as_ref());
    let spawned = match (approve, &caller) {
        (None | Some(Value::Bool(false)), _) => state.begin(&client, call, true)?,
        (Some(Value::Bool(true)), Caller::Owner) => {
            let approved = client.session.clone().approved_by(Arc::new(OwnerApproves::new(&state)));
            state.begin_in(&client, approved, call, true)?
        }
        (Some(Value::Bool(true)), Caller::Session(_)) => return Err(Problem::owners_only()),
        (Some(_), _) => return Err(Problem::invalid("`approve` is true or false.")),
    };
    answer(&client, spawned, true).await
}

pub(super) async fn cancel(ActingSession(client): ActingSession, PathId(id): PathId) -> Result<StatusCode, Problem> {
    match client.calls.cancel(&id) {
        true => Ok(StatusCode::ACCEPTED),
        false => Err(Problem::not_found("such call running")),
    }
}

/// Begins a call, in the session's dialects.
fn begin(state: &Arc<ServerState>, client: &Arc<HttpSession>, call: Call, wait: bool) -> Result<SpawnedCall, Problem> {
    if !wait && client.run.journal.has_call(&call.tool_call_id)? {
        // Whoever waits reads this in the reply. Here the id would lead to the earlier call.
        return Err(Problem::duplicate_call("A call of this run has that `tool_call_id` already."));
    }
    state.begin(client, call, false)
}

/// Answers a call: with its reply, or with where to find it.
async fn answer(client: &HttpSession, running: SpawnedCall, wait: bool) -> Result<Response, Problem> {
    if wait {
        let DialectReply { reply, shown } = running.reply().await?;
        let answer = match shown {
            None => CallAnswer::Native(reply),
            Some(shown) => CallAnswer::Shown { shown: shown.into(), reply },
        };
        return Ok(Json(answer).into_response());
    }
    let location = format!("/v1/calls/{}", utf8_percent_encode(&running.id, PATH_SEGMENT));
    let accepted = AcceptedCall { tool_call_id: running.id, events: events_of(client) };
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(accepted)).into_response())
}

/// Everything but letters, digits and what a segment of a path may hold as it is (RFC 3986, `unreserved`).
const PATH_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `Prefer: respond-async` (RFC 7240).
fn prefers_async(headers: &HeaderMap) -> bool {
    let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    preferences.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case("respond-async"))
}
