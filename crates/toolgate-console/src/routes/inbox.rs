//! Tasks in the inbox and their answers, for the owner alone.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_contract::schemars;

use super::{OwnerOnly, PathId, StrictQuery, run_blocking};
use crate::problem::Problem;
use crate::server_state::ServerState;

/// How many tasks are listed at most.
const MAX_LIMIT: usize = 1000;

/// Which tasks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TasksQuery {
    /// Those that are done or cancelled too.
    #[serde(default)]
    all: bool,
    /// At most so many, oldest first; 100 if missing.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

pub(super) async fn list(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    StrictQuery(TasksQuery { all, limit }): StrictQuery<TasksQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = limit.unwrap_or(100);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` is between 1 and {MAX_LIMIT}.")));
    }
    run_blocking(move || Ok(Json(json!({ "tasks": state.workspace.stores.inbox()?.tasks(all, limit)? })))).await
}

pub(super) async fn show(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    PathId(id): PathId,
) -> Result<Json<Value>, Problem> {
    run_blocking(move || {
        let task = state.workspace.stores.inbox()?.task(&id)?.ok_or_else(|| Problem::not_found("such task"))?;
        Ok(Json(json!(task)))
    })
    .await
}
