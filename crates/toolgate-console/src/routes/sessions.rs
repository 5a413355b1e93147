//! Sessions: the owner begins and ends them. Each has a run, grants, a set of tools and a token of its own.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::schemars;

use super::{JsonBody, OwnerOnly, PathId, read_json};
use crate::http_session::HttpSession;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// What the owner wants of a new session. An empty object will do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// Its id; made if missing. One that was used before brings back what was granted for it.
    #[serde(default)]
    pub(crate) id: Option<String>,
    /// The only tools it may use; all that policy offers if missing.
    #[serde(default)]
    pub(crate) tools: Option<Vec<String>>,
    /// Seconds that its calls wait for an approval before they are refused; as configured if missing.
    #[serde(default)]
    #[schemars(range(max = 86_400))]
    pub(crate) wait_seconds: Option<u64>,
    /// Whether it may answer its own calls' approvals.
    #[serde(default)]
    pub(crate) may_answer: bool,
    /// The dialects that its calls are read in and answered in, such as `claude` or `codex,native`; the native tools if missing.
    #[serde(default)]
    pub(crate) dialect: Option<String>,
}

/// The longest that a call may wait for an approval: a day.
const MAX_WAIT_SECONDS: u64 = 86_400;

/// A session as it is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionView {
    /// Its id.
    id: String,
    /// Its run.
    run: String,
    /// Since when.
    #[schemars(with = "String")]
    since: jiff::Timestamp,
    /// Whether it may answer its own calls' approvals.
    may_answer: bool,
    /// The dialects that its calls are read in; none for the native tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    dialect: Option<String>,
    /// How many of its calls run.
    running: usize,
    /// What everybody who uses the workspace has to know of its policy: that nobody is asked with the preset `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
    /// Its token, told once when it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

/// All sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionList {
    sessions: Vec<SessionView>,
}

pub(super) async fn begin(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<SessionView>), Problem> {
    let wanted: NewSession = read_json(&body)?;
    if wanted.wait_seconds.is_some_and(|seconds| seconds > MAX_WAIT_SECONDS) {
        return Err(Problem::invalid(format!("`wait_seconds` is at most {MAX_WAIT_SECONDS}.")));
    }
    let (client, token) = state.admit(wanted)?;
    let view = SessionView { token: Some(token.expose().to_owned()), ..shown(&state, &client) };
    Ok((StatusCode::CREATED, Json(view)))
}

pub(super) async fn list(State(state): State<Arc<ServerState>>, _owner: OwnerOnly) -> Json<SessionList> {
    Json(SessionList { sessions: state.clients.all().iter().map(|client| shown(&state, client)).collect() })
}

/// Cancels what the session does, and ends its run once that is on record.
pub(super) async fn end(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    PathId(id): PathId,
) -> Result<StatusCode, Problem> {
    let client = state.clients.remove_session(&id).ok_or_else(|| Problem::not_found("such session"))?;
    client.stop.cancel();
    client.calls.idle().await;
    client.session.end().await;
    client.run.end()?;
    Ok(StatusCode::NO_CONTENT)
}

fn shown(state: &ServerState, client: &HttpSession) -> SessionView {
    SessionView {
        id: client.id.clone(),
        run: client.run.id.clone(),
        since: client.since,
        may_answer: client.may_answer,
        dialect: client.dialects.names(),
        running: client.calls.len(),
        warning: state.workspace.warning(),
        token: None,
    }
}
