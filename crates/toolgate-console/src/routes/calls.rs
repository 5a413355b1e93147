//! Calls: the body is a call, the response is its reply, and the gate does the rest.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Call, schemars};
use toolgate_dialects::strict_json;

use super::{ActingSession, JsonBody, PathId, StrictQuery};
use crate::http_session::HttpSession;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// The longest id that a caller may give a call.
const MAX_ID_LENGTH: usize = 200;

/// Whether the reply is waited for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallQuery {
    /// `false`: the call is accepted, and its events say how it ends.
    #[serde(default)]
    wait: Option<bool>,
}

/// A call that was accepted and isn't waited for.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AcceptedCall {
    /// The call; `DELETE /v1/calls/{id}` cancels it.
    tool_call_id: String,
    /// Where its events come.
    events: String,
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
    perform(&state, &client, call, is_waited_for).await
}

/// Undoes what a call, a turn or a run changed: a call of the tool `undo`, like any other.
pub(super) async fn undo(
    State(state): State<Arc<ServerState>>,
    ActingSession(client): ActingSession,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let call = Call::new("undo", strict_json::parse(&body)?, state.workspace.clock.as_ref());
    perform(&state, &client, call, true).await
}

pub(super) async fn cancel(ActingSession(client): ActingSession, PathId(id): PathId) -> Result<StatusCode, Problem> {
    match client.cancel(&id) {
        true => Ok(StatusCode::ACCEPTED),
        false => Err(Problem::not_found("such call running")),
    }
}

async fn perform(
    state: &Arc<ServerState>,
    client: &Arc<HttpSession>,
    call: Call,
    wait: bool,
) -> Result<Response, Problem> {
    let running = state.begin(client, call)?;
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
