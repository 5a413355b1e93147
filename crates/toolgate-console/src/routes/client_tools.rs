//! Tools of a client's own: it registers them in its session, hears of their calls as events, and posts the results.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_contract::{Event, EventPayload, Risk, schemars};
use toolgate_runtime::{CallAnnouncer, ClientToolCall, ClientToolDefinition};

use super::{ActingSession, JsonBody, PathId, read_json};
use crate::http_session::HttpSession;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// Characters of a description.
const LONGEST_DESCRIPTION: usize = 4000;

/// A tool of the client's own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewToolBody {
    /// Its name; `client__` is put before it.
    name: String,
    /// What it does and when to use it, for the model.
    description: String,
    /// The JSON Schema of its arguments, an object.
    args_schema: Value,
    /// How much harm it can do; medium if missing.
    #[serde(default)]
    risk: Option<Risk>,
}

/// A tool that was registered.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RegisteredToolView {
    /// The name that it is called by.
    name: String,
}

/// Calls that wait for the client.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ClientCallList {
    calls: Vec<ClientCallView>,
}

/// A call that waits for the client.
#[derive(Debug, Serialize, JsonSchema)]
struct ClientCallView {
    /// The id to post the result under.
    tool_call_id: String,
    /// The tool, as the client named it.
    tool: String,
    /// Its validated arguments.
    args: Value,
}

/// What came of a call: exactly one of the two.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientResultBody {
    /// The result, for the model.
    #[serde(default)]
    result: Option<Value>,
    /// Why it failed, for the model.
    #[serde(default)]
    error: Option<String>,
}

pub(super) async fn register(
    State(state): State<Arc<ServerState>>,
    ActingSession(client): ActingSession,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<RegisteredToolView>), Problem> {
    let NewToolBody { name, description, args_schema, risk } = read_json(&body)?;
    if description.chars().count() > LONGEST_DESCRIPTION {
        return Err(Problem::invalid(format!("`description` has at most {LONGEST_DESCRIPTION} characters.")));
    }
    if state.workspace.gate.has_tool(&format!("client__{name}")) {
        return Err(Problem::invalid(format!("There is a tool `client__{name}` for every session already.")));
    }
    let definition = ClientToolDefinition { name, description, args_schema, risk: risk.unwrap_or(Risk::Medium) };
    let name = client.session.client_tools.register(definition, announcer(&state, &client))?;
    Ok((StatusCode::CREATED, Json(RegisteredToolView { name })))
}

pub(super) async fn remove(ActingSession(client): ActingSession, PathId(name): PathId) -> Result<StatusCode, Problem> {
    match client.session.client_tools.remove(&name) {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found("such tool of the client")),
    }
}

pub(super) async fn waiting(ActingSession(client): ActingSession) -> Json<ClientCallList> {
    let view = |ClientToolCall { tool_call_id, tool, args }| ClientCallView { tool_call_id, tool, args };
    Json(ClientCallList { calls: client.session.client_tools.waiting().into_iter().map(view).collect() })
}

pub(super) async fn answer(
    ActingSession(client): ActingSession,
    PathId(id): PathId,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, Problem> {
    let result = match read_json(&body)? {
        ClientResultBody { result: Some(result), error: None } => Ok(result),
        ClientResultBody { result: None, error: Some(why) } => Err(why),
        _ => return Err(Problem::invalid("The body has either `result` or `error`.")),
    };
    match client.session.client_tools.answer(&id, result) {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found("such call waiting")),
    }
}

/// Tells the client of a call by an event of its run, with what is secret replaced. `GET /v1/client-calls` has the arguments as they are.
fn announcer(state: &Arc<ServerState>, client: &Arc<HttpSession>) -> CallAnnouncer {
    let (workspace, session) = (Arc::clone(&state.workspace), Arc::downgrade(client));
    Arc::new(move |call| {
        let Some(client) = session.upgrade() else { return };
        let mut args = call.args.clone();
        workspace.gate.redactor().json(&mut args);
        let event = Event {
            time: workspace.clock.now(),
            run: client.run.id.clone(),
            turn: client.session.turn,
            trace_id: None,
            tool_call_id: Some(call.tool_call_id.clone()),
            payload: EventPayload::ClientCallRequested { tool: call.tool.clone(), args },
        };
        // Who can't be told by an event still finds the call among those that wait.
        let _ = client.session.record(&[event]);
    })
}
