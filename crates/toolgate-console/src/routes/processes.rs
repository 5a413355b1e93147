//! Running processes: what their screens show, typing into them, and stopping them. The owner sees those of all sessions
//! of this server, a session its own. That a person typed is recorded, what they typed isn't.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{ErrorCode, ProcessHandle, Signal, TerminalSize, ToolError, schemars};
use toolgate_runtime::{ScreenCells, SessionProcess};

use super::{JsonBody, OwnerOnly, PathId, read_json};
use crate::http_session::Caller;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// A running process.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProcessView {
    /// Its handle.
    id: String,
    /// The session that started it.
    session: String,
    /// The command line.
    command: String,
    /// The directory that it was started in.
    workdir: String,
    /// When it was started.
    #[schemars(with = "String")]
    started: Timestamp,
    /// Whether it has a terminal.
    terminal: bool,
    /// Whether it goes on without its call.
    detached: bool,
    /// What its terminal shows; only where one process is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    screen: Option<ScreenCells>,
    /// The end of its output, of a process without a terminal; only where one process is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
}

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
    Json(ProcessList { processes: visible(&state, &caller).iter().map(|process| view(process)).collect() })
}

pub(super) async fn show(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Json<ProcessView>, Problem> {
    let process = find(&state, &caller, &id)?;
    let screen = process.cells();
    let output = screen.is_none().then(|| String::from_utf8_lossy(&process.last_lines()).into_owned());
    Ok(Json(ProcessView { screen, output, ..view(&process) }))
}

pub(super) async fn write(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    PathId(id): PathId,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, Problem> {
    let ProcessInputBody { text } = read_json(&body)?;
    let process = attached(&state, &id)?;
    process.write(text.as_bytes()).await?;
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
    attached(&state, &id)?.resize(TerminalSize { rows, columns })?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn stop(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    PathId(id): PathId,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, Problem> {
    let ProcessStopBody { interrupt } = read_json(&body)?;
    let process = attached(&state, &id)?;
    match interrupt {
        true => process.signal(Signal::Int)?,
        false => process.kill(),
    }
    Ok(StatusCode::ACCEPTED)
}

/// The process, recorded once as attached to by the owner.
fn attached(state: &ServerState, id: &str) -> Result<Arc<SessionProcess>, Problem> {
    let process = find(state, &Caller::Owner, id)?;
    if state.attached.lock().insert(id.to_owned()) {
        drop(process.follow(&format!("{} (http)", state.workspace.owner)));
    }
    Ok(process)
}

fn visible(state: &ServerState, caller: &Caller) -> Vec<Arc<SessionProcess>> {
    match caller {
        Caller::Owner => state.workspace.gate.registries().running(),
        Caller::Session(client) => {
            client.session.processes.all().into_iter().filter(|process| !process.has_ended()).collect()
        }
    }
}

fn find(state: &ServerState, caller: &Caller, id: &str) -> Result<Arc<SessionProcess>, Problem> {
    let found = visible(state, caller).into_iter().find(|process| process.facts().id == id);
    found.ok_or_else(|| ToolError::new(ErrorCode::NotFound, "No such process is running.").into())
}

fn view(process: &SessionProcess) -> ProcessView {
    let facts = process.facts();
    ProcessView {
        id: facts.id.clone(),
        session: process.session.clone(),
        command: facts.command.clone(),
        workdir: facts.workdir.clone(),
        started: facts.started,
        terminal: facts.terminal,
        detached: process.is_detached(),
        screen: None,
        output: None,
    }
}
