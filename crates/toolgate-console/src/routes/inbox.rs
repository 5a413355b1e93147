//! The inbox: the owner adds tasks for workers, and reads the answers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_contract::schemars;
use toolgate_journal::{NewTask, ReplyAddress};

use super::{JsonBody, OwnerOnly, PathId, StrictQuery, read_json, run_blocking};
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
    /// The newest first, and those that are done or cancelled too; otherwise the oldest first.
    #[serde(default)]
    newest: bool,
    /// At most so many; 100 if missing.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

/// A task for a worker.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTaskBody {
    /// What is to be done.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    task: String,
    /// Where the answer goes: `terminal` (the worker's; the default), an http URL that it is posted to, or
    /// `telegram:CHAT`. `GET /v1/inbox/{id}` has it in any case.
    #[serde(default)]
    #[schemars(regex(pattern = "^(terminal|https?://.*|telegram:-?[0-9]{1,15})$"))]
    reply_to: Option<String>,
}

pub(super) async fn add(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let NewTaskBody { task, reply_to } = read_json(&body)?;
    if task.trim().is_empty() {
        return Err(Problem::invalid("The task is empty. Say what should be done."));
    }
    let reply_to = reply_to.as_deref().unwrap_or("terminal").parse::<ReplyAddress>();
    let reply_to = reply_to.map_err(|fault| Problem::invalid(fault.to_string()))?;
    let id = format!("task_{}", state.workspace.clock.id().simple());
    run_blocking(move || {
        let inbox = state.workspace.stores.inbox()?;
        inbox.add(&NewTask { id: id.clone(), task, reply_to })?;
        let added = inbox.task(&id)?.ok_or_else(|| Problem::internal("The task that was added isn't there."))?;
        let location = [(header::LOCATION, format!("/v1/inbox/{id}"))];
        Ok((StatusCode::CREATED, location, Json(json!(added))).into_response())
    })
    .await
}

pub(super) async fn list(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    StrictQuery(TasksQuery { all, newest, limit }): StrictQuery<TasksQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = limit.unwrap_or(100);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` is between 1 and {MAX_LIMIT}.")));
    }
    run_blocking(move || {
        let inbox = state.workspace.stores.inbox()?;
        let tasks = if newest { inbox.newest_tasks(limit)? } else { inbox.tasks(all, limit)? };
        Ok(Json(json!({ "tasks": tasks })))
    })
    .await
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
