//! Search over runs and calls: tasks, sessions, tools, paths, commands and ids.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_contract::schemars;
use toolgate_journal::{CallFilter, RunFilter};

use super::{StrictQuery, run_blocking};
use crate::event_summary::{call_text, short};
use crate::http_session::Caller;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// How many results of each kind are listed at most.
const MAX_LIMIT: usize = 200;

/// What is looked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchQuery {
    /// The text, whatever its case.
    #[schemars(length(min = 1))]
    q: String,
    /// At most so many runs and so many calls; 50 if missing.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

pub(super) async fn search(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    StrictQuery(SearchQuery { q, limit }): StrictQuery<SearchQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = limit.unwrap_or(50);
    if !(1..=MAX_LIMIT).contains(&limit) || q.trim().is_empty() {
        return Err(Problem::invalid(format!("`q` has some text, and `limit` is between 1 and {MAX_LIMIT}.")));
    }
    let session = match &caller {
        Caller::Owner => None,
        Caller::Session(client) => Some(client.id.clone()),
    };
    run_blocking(move || {
        state.refresh()?;
        let (workspace, text) = (Some(state.workspace.directory.display().to_string()), q.trim().to_owned());
        let calls = CallFilter { text: text.clone(), session: session.clone(), workspace: workspace.clone(), limit };
        let runs = RunFilter { session, workspace, text: Some(text), before: None, limit };
        let calls: Vec<Value> = state
            .store
            .search_calls(&calls)?
            .into_iter()
            .map(|call| {
                let at_work = call.ok.is_none() && state.workspace.state.is_run_open(&call.run);
                json!({
                    "run": call.run, "at_work": at_work, "call": call.tool_call_id, "tool": call.tool, "time": call.started,
                    "text": call.args.as_ref().map(call_text), "ok": call.ok, "code": call.error_code,
                    "files_changed": call.files_changed.iter().take(20).collect::<Vec<_>>(),
                    "commands_run": call.commands_run.iter().take(5).map(|it| short(it)).collect::<Vec<_>>(),
                })
            })
            .collect();
        let runs: Vec<Value> = state.store.runs(&runs)?.iter().map(|run| state.with_facts(run)).collect();
        Ok(Json(json!({ "runs": runs, "calls": calls })))
    })
    .await
}

/// The checks of `toolgate doctor`.
pub(super) async fn doctor(
    State(state): State<Arc<ServerState>>,
    _owner: super::OwnerOnly,
) -> Result<Json<Value>, Problem> {
    run_blocking(move || {
        let checks = (state.console()?.doctor)().map_err(Problem::internal)?;
        Ok(Json(json!({ "checks": checks })))
    })
    .await
}
