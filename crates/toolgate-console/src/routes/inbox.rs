//! Tasks that wait for a worker, and what became of them. Only for the owner: a session sees none but its own work.

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
const MOST: usize = 1000;

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
    State(shared): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    StrictQuery(TasksQuery { all, limit }): StrictQuery<TasksQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = limit.unwrap_or(100);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` is between 1 and {MOST}.")));
    }
    run_blocking(move || Ok(Json(json!({ "tasks": shared.backend.inbox()?.tasks(all, limit)? })))).await
}

pub(super) async fn show(
    State(shared): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    PathId(id): PathId,
) -> Result<Json<Value>, Problem> {
    run_blocking(move || {
        let task = shared.backend.inbox()?.task(&id)?.ok_or_else(|| Problem::not_found("such task"))?;
        Ok(Json(json!(task)))
    })
    .await
}
