//! Runs: what happened, from the store and from the files.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_contract::schemars;
use toolgate_journal::{RunFilter, RunRow, catch_up, read_tree, run_directories};

use super::{PathId, StrictQuery, run_blocking};
use crate::http_session::Caller;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// How many runs are listed at most.
const MAX_LIMIT: usize = 1000;

/// Which runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsQuery {
    /// Only those of this session.
    #[serde(default)]
    session: Option<String>,
    /// Only those whose id, session or task contains this.
    #[serde(default)]
    q: Option<String>,
    /// Only those that began before this time, such as the last of the page before.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    before: Option<Timestamp>,
    /// At most so many, newest first; 100 if missing.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

pub(super) async fn list(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    StrictQuery(which): StrictQuery<RunsQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = which.limit.unwrap_or(100);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` is between 1 and {MAX_LIMIT}.")));
    }
    let session = match (&caller, which.session) {
        (Caller::Owner, session) => session,
        (Caller::Session(client), None) => Some(client.id.clone()),
        (Caller::Session(client), Some(session)) if session == client.id => Some(session),
        (Caller::Session(_), Some(_)) => return Ok(Json(json!({ "runs": [] }))),
    };
    let (text, before) = (which.q.filter(|text| !text.trim().is_empty()), which.before);
    run_blocking(move || {
        state.refresh()?;
        // A shared store knows runs of other workspaces, whose sessions may have the same names.
        let workspace = state.workspace.state.path().parent().map(|directory| directory.display().to_string());
        let runs = state.store.runs(&RunFilter { session, workspace, text, before, limit })?;
        let runs: Vec<Value> = runs.iter().map(|run| state.with_facts(run)).collect();
        Ok(Json(json!({ "runs": runs })))
    })
    .await
}

pub(super) async fn show(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    PathId(run): PathId,
) -> Result<Json<Value>, Problem> {
    run_blocking(move || {
        state.may_see(&caller, &run)?;
        state.workspace.finish();
        catch_up(state.workspace.state.path(), &run, state.store.as_ref())?;
        let row = state.store.run(&run)?.ok_or_else(|| Problem::not_found("such run"))?;
        Ok(Json(json!({ "run": state.with_facts(&row), "calls": state.store.calls(&run)? })))
    })
    .await
}

/// The run as a tree: turns, calls, decisions, messages.
pub(super) async fn show_tree(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    PathId(run): PathId,
) -> Result<Json<Value>, Problem> {
    run_blocking(move || {
        state.may_see(&caller, &run)?;
        Ok(Json(json!(read_tree(&state.workspace.state.run_dir(&run)?)?)))
    })
    .await
}

/// What the store was last filled with from the journals.
#[derive(Default)]
pub(crate) struct RefreshedRuns {
    began: Option<Instant>,
    /// Runs that have ended and are in the store: of a thousand runs few are at work.
    settled: HashSet<String>,
}

impl ServerState {
    /// A run with what it has cost so far, none where the prices of its models aren't known; and whether a program works in
    /// it, or the one that did has died before the run ended.
    pub(super) fn with_facts(&self, run: &RunRow) -> Value {
        let mut value = json!(run);
        value["cost"] = json!(self.workspace.gate.settings().model.cost_of(&run.usage));
        value["at_work"] = json!(run.ended.is_none() && self.workspace.state.is_run_open(&run.id));
        value
    }

    /// Brings into the store what other processes recorded. A run that has ended changes no more. Many pages ask at the same
    /// moment: those that wait for one of them take what the next one finds, which began after they asked.
    pub(super) fn refresh(&self) -> Result<(), Problem> {
        let asked = Instant::now();
        let mut refreshed = self.refreshed.lock();
        if refreshed.began.is_some_and(|began| began >= asked) {
            return Ok(());
        }
        let began = Instant::now();
        self.workspace.finish();
        let state = self.workspace.state.path();
        for run in run_directories(state)? {
            if refreshed.settled.contains(&run) {
                continue;
            }
            match self.store.run(&run)? {
                Some(row) if row.ended.is_some() => {
                    refreshed.settled.insert(run);
                }
                _ => {
                    catch_up(state, &run, self.store.as_ref())?;
                }
            }
        }
        refreshed.began = Some(began);
        Ok(())
    }
}
