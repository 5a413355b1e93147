//! Calls: the body is a call (C-2), the answer is its reply (C-3), and the path between is the gate's.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Call, schemars, strict_json};

use super::{ActingSession, JsonBody, PathId, StrictQuery};
use crate::http_session::HttpSession;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// The longest id that a caller may give a call.
const LONGEST_ID: usize = 200;

/// Whether the reply is waited for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallQuery {
    /// `false`: the call is taken up, and its events tell how it ends.
    #[serde(default)]
    wait: Option<bool>,
}

/// A call that was taken up and isn't waited for.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AcceptedCall {
    /// The call; `DELETE /v1/calls/{id}` cancels it.
    tool_call_id: String,
    /// Where its events come.
    events: String,
}

pub(super) async fn make(
    State(shared): State<Arc<ServerState>>,
    ActingSession(client): ActingSession,
    StrictQuery(CallQuery { wait }): StrictQuery<CallQuery>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let call = Call::from_json(&body, shared.backend.clock())?;
    if call.tool_call_id.is_empty() || call.tool_call_id.chars().count() > LONGEST_ID {
        return Err(Problem::invalid(format!("`tool_call_id` has 1 to {LONGEST_ID} characters.")));
    }
    let is_waited_for = wait.unwrap_or_else(|| !prefers_async(&headers));
    perform(&shared, &client, call, is_waited_for).await
}

/// Takes back what a call, a turn or a run changed: a call of the tool `undo`, like any other.
pub(super) async fn undo(
    State(shared): State<Arc<ServerState>>,
    ActingSession(client): ActingSession,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let call = Call::new("undo", strict_json::parse(&body)?, shared.backend.clock());
    perform(&shared, &client, call, true).await
}

pub(super) async fn cancel(ActingSession(client): ActingSession, PathId(id): PathId) -> Result<StatusCode, Problem> {
    match client.cancel(&id) {
        true => Ok(StatusCode::ACCEPTED),
        false => Err(Problem::not_found("such call running")),
    }
}

async fn perform(
    shared: &Arc<ServerState>,
    client: &Arc<HttpSession>,
    call: Call,
    wait: bool,
) -> Result<Response, Problem> {
    let running = shared.begin(client, call)?;
    if wait {
        return Ok(Json(running.reply().await?).into_response());
    }
    let events = format!("/v1/runs/{}/events", client.run.id);
    Ok((StatusCode::ACCEPTED, Json(AcceptedCall { tool_call_id: running.id, events })).into_response())
}

/// `Prefer: respond-async` (RFC 7240).
fn prefers_async(headers: &HeaderMap) -> bool {
    let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    preferences.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case("respond-async"))
}
