//! Running processes: what their screens show, typing into them, and stopping them. The owner sees those of all sessions
//! of this server and those of other programs in the workspace, a session its own. That a person typed is recorded, what they typed isn't.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{ErrorCode, ProcessHandle, TerminalSize, ToolError, schemars};
use toolgate_runtime::{ProcessView, SessionProcess};

use super::{JsonBody, OwnerOnly, PathId, read_json};
use crate::http_session::Caller;
use crate::other_processes::{OtherProcesses, ProcessControl};
use crate::problem::Problem;
use crate::server_state::ServerState;

/// All running processes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProcessList {
    processes: Vec<ProcessView>,
}

/// What is typed into a process.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessInputBody {
    /// The text, with control characters as they are.
    text: String,
}

/// How a process is ended.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessStopBody {
    /// Whether it is only interrupted, as by Ctrl-C; otherwise it is killed with everything that it started.
    #[serde(default)]
    interrupt: bool,
}

/// The size of a process' terminal.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessSizeBody {
    #[schemars(range(min = 1, max = 500))]
    rows: u16,
    #[schemars(range(min = 1, max = 500))]
    columns: u16,
}

pub(super) async fn list(State(state): State<Arc<ServerState>>, caller: Caller) -> Json<ProcessList> {
    let mut processes: Vec<ProcessView> = visible(&state, &caller).iter().map(|own| ProcessView::of(own)).collect();
    if let Some(others) = others(&state, &caller) {
        processes.extend(others.list().await.into_iter().map(|process| ProcessView { elsewhere: true, ..process }));
    }
    Json(ProcessList { processes })
}

pub(super) async fn show(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Json<ProcessView>, Problem> {
    if let Some(process) = find(&state, &caller, &id) {
        return Ok(Json(ProcessView::with_screen(&process)));
    }
    let found = match others(&state, &caller) {
        Some(others) => others.show(&id).await,
        None => None,
    };
    found.map(|process| Json(ProcessView { elsewhere: true, ..process })).ok_or_else(no_such_process)
}

pub(super) async fn write(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    PathId(id): PathId,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, Problem> {
    let ProcessInputBody { text } = read_json(&body)?;
    act(&state, &id, ProcessControl::Type(text)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn resize(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    PathId(id): PathId,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, Problem> {
    let ProcessSizeBody { rows, columns } = read_json(&body)?;
    if !(1..=500).contains(&rows) || !(1..=500).contains(&columns) {
        return Err(Problem::invalid("A terminal has 1 to 500 rows and columns."));
    }
    act(&state, &id, ProcessControl::Resize(TerminalSize { rows, columns })).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn stop(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    PathId(id): PathId,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, Problem> {
    let ProcessStopBody { interrupt } = read_json(&body)?;
    act(&state, &id, if interrupt { ProcessControl::Interrupt } else { ProcessControl::Kill }).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Does this with a process of this server, or of another program.
async fn act(state: &ServerState, id: &str, action: ProcessControl) -> Result<(), Problem> {
    let by = format!("{} (http)", state.workspace.owner);
    if let Some(process) = find(state, &Caller::Owner, id) {
        // That somebody attached is recorded once.
        if state.attached.lock().insert(id.to_owned()) {
            drop(process.follow(&by));
        }
        return Ok(action.apply(&process).await?);
    }
    match others(state, &Caller::Owner) {
        Some(others) if others.act(id, action, &by).await? => Ok(()),
        _ => Err(no_such_process()),
    }
}

/// The processes of other programs, which are the owner's to see.
fn others<'a>(state: &'a ServerState, caller: &Caller) -> Option<&'a Arc<dyn OtherProcesses>> {
    let console = state.console.as_ref().filter(|_| matches!(caller, Caller::Owner))?;
    console.others.as_ref()
}

fn visible(state: &ServerState, caller: &Caller) -> Vec<Arc<SessionProcess>> {
    match caller {
        Caller::Owner => state.workspace.gate.registries().running(),
        Caller::Session(client) => {
            client.session.processes.all().into_iter().filter(|process| !process.has_ended()).collect()
        }
    }
}

fn find(state: &ServerState, caller: &Caller, id: &str) -> Option<Arc<SessionProcess>> {
    visible(state, caller).into_iter().find(|process| process.facts().id == id)
}

fn no_such_process() -> Problem {
    ToolError::new(ErrorCode::NotFound, "No such process is running.").into()
}
