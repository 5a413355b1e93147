//! Tasks that wait for a worker, and what became of them. Only for the owner: a session sees none but its own work.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_contract::schemars;

use super::{Id, Owner, Query, on_disk};
use crate::problem::Problem;
use crate::shared::Shared;

/// How many tasks are listed at most.
const MOST: usize = 1000;

/// Which tasks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// Those that are done or cancelled too.
    #[serde(default)]
    all: bool,
    /// At most so many, oldest first; 100 if missing.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    _owner: Owner,
    Query(Which { all, limit }): Query<Which>,
) -> Result<Json<Value>, Problem> {
    let limit = limit.unwrap_or(100);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` is between 1 and {MOST}.")));
    }
    on_disk(move || Ok(Json(json!({ "tasks": shared.house.inbox()?.tasks(all, limit)? })))).await
}

pub(super) async fn show(State(shared): State<Arc<Shared>>, _owner: Owner, Id(id): Id) -> Result<Json<Value>, Problem> {
    on_disk(move || {
        let task = shared.house.inbox()?.task(&id)?.ok_or_else(|| Problem::not_found("such task"))?;
        Ok(Json(json!(task)))
    })
    .await
}
