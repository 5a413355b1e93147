//! What calls changed, so that it can be taken back.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_contract::{Happening, ToolError, schemars};
use toolgate_journal::{list_runs, read_events};

use super::{Query, on_disk};
use crate::client::Caller;
use crate::problem::Problem;
use crate::shared::Shared;

/// Of which run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// Only this run's; if missing, all that the caller may see.
    #[serde(default)]
    run: Option<String>,
}

pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Query(Which { run }): Query<Which>,
) -> Result<Json<Value>, Problem> {
    on_disk(move || {
        let runs = match (run, &caller) {
            (Some(run), _) => {
                shared.may_see(&caller, &run)?;
                vec![run]
            }
            (None, Caller::Session(client)) => vec![client.run.id.clone()],
            (None, Caller::Owner) => list_runs(shared.house.state().path())?,
        };
        let mut changes = Vec::new();
        for run in runs.iter().rev() {
            changes.extend(of_run(&shared, run)?);
        }
        Ok(Json(json!({ "changes": changes })))
    })
    .await
}

/// The changes of a run, oldest first. A run whose journal is only just being made has none.
fn of_run(shared: &Shared, run: &str) -> Result<Vec<Value>, Problem> {
    let events = match read_events(&shared.house.state().run_dir(run)?) {
        Err(toolgate_journal::JournalError::NoSuchRun { .. }) => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for recorded in events {
        let event = recorded.map_err(|error| ToolError::io("The record can't be read", &error))?.event;
        if let Happening::FilesChanging { changes } = event.happening {
            found.push(json!({ "run": run, "call": event.tool_call_id, "time": event.time, "changes": changes }));
        }
    }
    Ok(found)
}
