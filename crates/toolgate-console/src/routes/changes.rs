//! What calls changed, so that it can be undone.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_contract::{EventPayload, ToolError, schemars};
use toolgate_journal::{list_runs, read_events};

use super::outline::changes_with_diffs;
use super::{StrictQuery, run_blocking};
use crate::event_summary::call_text;
use crate::http_session::Caller;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// Of which run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangesQuery {
    /// Only this run's; if missing, all that the caller may see.
    #[serde(default)]
    run: Option<String>,
    /// Only this call's.
    #[serde(default)]
    call: Option<String>,
    /// Whether each change comes with its diff.
    #[serde(default)]
    diff: bool,
    /// Whether build output (`target/`, `node_modules/`, caches) is listed path by path; otherwise `folded` has each
    /// directory of it with its counts.
    #[serde(default)]
    all: bool,
}

pub(super) async fn list(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    StrictQuery(query): StrictQuery<ChangesQuery>,
) -> Result<Json<Value>, Problem> {
    run_blocking(move || {
        let runs = match (query.run.clone(), &caller) {
            (Some(run), _) => {
                state.may_see(&caller, &run)?;
                vec![run]
            }
            (None, Caller::Session(client)) => vec![client.run.id.clone()],
            (None, Caller::Owner) => list_runs(state.workspace.state.path())?,
        };
        let mut changes = Vec::new();
        for run in runs.iter().rev() {
            changes.extend(of_run(&state, run, &query)?);
        }
        Ok(Json(json!({ "changes": changes })))
    })
    .await
}

/// The changes of a run, oldest first, each with the tool that made it and what the call is about. A run whose journal is only just being made has none.
fn of_run(state: &ServerState, run: &str, query: &ChangesQuery) -> Result<Vec<Value>, Problem> {
    let events = match read_events(&state.workspace.state.run_dir(run)?) {
        Err(toolgate_journal::JournalError::NoSuchRun { .. }) => return Ok(Vec::new()),
        other => other?,
    };
    let (mut found, mut about) = (Vec::new(), HashMap::new());
    for recorded in events {
        let event = recorded.map_err(|error| ToolError::io("The record can't be read", &error))?.event;
        if query.call.is_some() && query.call != event.tool_call_id {
            continue;
        }
        if let (EventPayload::CallStarted { tool, args, .. }, Some(call)) = (&event.payload, &event.tool_call_id) {
            about.insert(call.clone(), (tool.clone(), call_text(args)));
        }
        if let EventPayload::FilesChanging { changes, .. } = event.payload {
            let mut entry =
                json!({ "run": run, "call": event.tool_call_id, "time": event.time, "count": changes.len() });
            if let Some((tool, text)) = event.tool_call_id.as_ref().and_then(|call| about.get(call)) {
                (entry["tool"], entry["text"]) = (json!(tool), json!(text));
            }
            entry["turn"] = json!(event.turn);
            entry["agent"] = json!(event.trace_id);
            match query.all {
                _ if query.diff => entry["changes"] = changes_with_diffs(state, &changes)?,
                true => entry["changes"] = json!(changes),
                false => {
                    let shown = state.workspace.gate.changes().fold(&changes);
                    (entry["changes"], entry["folded"]) = (json!(shown.listed), json!(shown.folded));
                }
            }
            found.push(entry);
        }
    }
    Ok(found)
}
