//! A run as rows of a tree, in windows; and one call, with everything that is on record about it.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_contract::{Change, Durability, Effect, Event, EventPayload, ToolError, schemars};
use toolgate_journal::{BlobStore, read_events};
use toolgate_workspace::ChangeDiff;

use super::{PathId, StrictQuery, run_blocking};
use crate::diff_view::DiffView;
use crate::event_summary::summarize;
use crate::http_session::Caller;
use crate::problem::Problem;
use crate::run_outline::{OutlineFilter, OutlineRequest, OutlineWindow, RunOutline};
use crate::server_state::ServerState;

/// How many rows a window has at most.
const MAX_LIMIT: usize = 1000;

/// How many runs' rows are kept in memory.
const KEPT_OUTLINES: usize = 8;

/// How many changed files of a call are shown with their diffs.
const MAX_DIFFS: usize = 100;

/// Which rows of a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutlineQuery {
    /// The number of the first row, from 0.
    #[serde(default)]
    offset: Option<usize>,
    /// At most so many; 200 if missing.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Only such calls.
    #[serde(default)]
    filter: Option<OutlineFilter>,
    /// Only rows that contain this text.
    #[serde(default)]
    q: Option<String>,
    /// Ids of rows whose children are left out, separated by commas.
    #[serde(default)]
    closed: Option<String>,
    /// Only calls, in the order in which they began.
    #[serde(default)]
    flat: bool,
}

/// The rows of the runs that were shown last.
#[derive(Default)]
pub(crate) struct OutlineCache(Mutex<VecDeque<KeptOutline>>);

/// A run and its rows.
type KeptOutline = (String, Arc<Mutex<RunOutline>>);

impl OutlineCache {
    fn of(&self, state: &ServerState, run: &str) -> Result<Arc<Mutex<RunOutline>>, Problem> {
        let mut kept = self.0.lock();
        if let Some(position) = kept.iter().position(|(id, _)| id == run) {
            let found = kept.remove(position).expect("it was found there");
            kept.push_front(found);
        } else {
            let outline = RunOutline::open(&state.workspace.state.run_dir(run)?)?;
            kept.push_front((run.to_owned(), Arc::new(Mutex::new(outline))));
            kept.truncate(KEPT_OUTLINES);
        }
        Ok(Arc::clone(&kept[0].1))
    }
}

pub(super) async fn show(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    PathId(run): PathId,
    StrictQuery(query): StrictQuery<OutlineQuery>,
) -> Result<Json<OutlineWindow>, Problem> {
    let limit = query.limit.unwrap_or(200);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` is between 1 and {MAX_LIMIT}.")));
    }
    run_blocking(move || {
        state.may_see(&caller, &run)?;
        let outline = state.outlines.of(&state, &run)?;
        let mut outline = outline.lock();
        outline.refresh()?;
        let closed: Vec<&str> = query.closed.as_deref().unwrap_or_default().split(',').collect();
        let request = OutlineRequest {
            offset: query.offset.unwrap_or_default(),
            limit,
            filter: query.filter,
            text: query.q.as_deref().filter(|text| !text.is_empty()),
            closed: &closed,
            flat: query.flat,
            is_open: state.workspace.state.is_run_open(&run),
        };
        let mut window = outline.window(&request);
        window.cost = state.workspace.gate.settings().model.cost_of(&outline.usage);
        Ok(Json(window))
    })
    .await
}

/// Everything that is on record about one call.
pub(super) async fn show_call(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    Path((run, call)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    run_blocking(move || {
        state.may_see(&caller, &run)?;
        call_detail(&state, &run, &call).map(Json)
    })
    .await
}

fn call_detail(state: &ServerState, run: &str, call: &str) -> Result<Value, Problem> {
    let unreadable = |error: std::io::Error| ToolError::io("The record can't be read", &error);
    let events = read_events(&state.workspace.state.run_dir(run)?)?.of_call(call).map_err(unreadable)?;
    if events.is_empty() {
        return Err(Problem::not_found("such call"));
    }
    let mut detail = json!({ "run": run, "tool_call_id": call, "events": [], "messages": [], "changes": [] });
    detail["at_work"] = json!(state.workspace.state.is_run_open(run));
    let mut changes: Vec<Change> = Vec::new();
    for recorded in events {
        push(&mut detail, "events", summarize(&recorded.event, Some(recorded.seq)));
        add(&mut detail, &mut changes, call, recorded.event);
    }
    detail["changes"] = changes_with_diffs(state, &changes)?;
    let quarantine = state.workspace.state.quarantine()?;
    if quarantine.calls()?.iter().any(|known| known == call) {
        detail["quarantined"] = json!(quarantine.changes(call)?);
    }
    Ok(detail)
}

/// Adds what an event says of the call.
fn add(detail: &mut Value, changes: &mut Vec<Change>, call: &str, event: Event) {
    match event.payload {
        EventPayload::CallStarted { tool, version, args, effects, verdict, approval, risk, justification, hooked } => {
            detail["tool"] = json!(tool);
            if let Some(hooked) = hooked {
                detail["hooked"] = json!(hooked);
            }
            detail["version"] = json!(version);
            detail["args"] = args;
            detail["effects"] = in_words(&effects);
            detail["verdict"] = json!(verdict);
            detail["approval_scope"] = json!(approval);
            detail["risk"] = json!(risk);
            detail["justification"] = json!(justification);
            detail["started"] = json!(event.time);
            detail["turn"] = json!(event.turn);
            detail["agent"] = json!(event.trace_id);
        }
        EventPayload::CallWidened { denials, effects, verdict, .. } => {
            detail["widened"] = json!({ "denials": denials, "effects": in_words(&effects), "verdict": verdict });
        }
        EventPayload::ApprovalRequired { tool, reason, effects } => {
            if detail["tool"].is_null() {
                detail["tool"] = json!(tool);
                detail["effects"] = in_words(&effects);
            }
            detail["asked"] = json!({ "reason": reason, "time": event.time });
        }
        EventPayload::ApprovalGranted { scope, by } => {
            detail["answered"] = json!({ "answer": "granted", "scope": scope, "by": by, "time": event.time });
        }
        EventPayload::ApprovalDenied { by, reason } => {
            detail["answered"] = json!({ "answer": "denied", "by": by, "reason": reason, "time": event.time });
        }
        EventPayload::FilesChanging { changes: more, .. } => changes.extend(more),
        EventPayload::Display(message) => push(detail, "messages", json!(message)),
        EventPayload::CallCompleted(ending) => {
            detail["denials"] = json!(ending.denials);
            detail["reply"] = json!(ending.into_reply(call.to_owned(), None));
        }
        EventPayload::CallFailed { error, ending, .. } => {
            detail["denials"] = json!(ending.denials);
            detail["reply"] = json!(ending.into_reply(call.to_owned(), Some(error)));
        }
        _ => {}
    }
}

fn push(detail: &mut Value, name: &str, value: Value) {
    if let Some(list) = detail[name].as_array_mut() {
        list.push(value);
    }
}

fn in_words(effects: &[Effect]) -> Value {
    json!(effects.iter().map(ToString::to_string).collect::<Vec<_>>())
}

/// Changes with their diffs, without secrets; build output is folded.
pub(super) fn changes_with_diffs(state: &ServerState, changes: &[Change]) -> Result<Value, Problem> {
    let contents = state.workspace.state.contents(Durability::Os)?;
    let shown = state.workspace.gate.changes().fold(changes);
    let mut listed = Vec::new();
    for (index, change) in shown.listed.iter().enumerate() {
        let diff = if index < MAX_DIFFS { Some(diff_of(state, &contents, change)?) } else { None };
        let what = match (&change.before, &change.after) {
            (None, _) => "created",
            (_, None) => "deleted",
            _ => "changed",
        };
        listed.push(json!({ "path": change.path, "what": what, "diff": diff }));
    }
    listed.extend(shown.folded.iter().map(|folded| json!({ "path": folded.path, "what": "folded", "folded": folded })));
    Ok(json!(listed))
}

fn diff_of(state: &ServerState, contents: &BlobStore, change: &Change) -> Result<Value, Problem> {
    Ok(match ChangeDiff::of(change, contents)? {
        ChangeDiff::Shown(diff) => json!(DiffView::of(&state.workspace.gate.redactor().text(&diff.text))),
        ChangeDiff::OldEvicted => json!({ "note": "Its old content was evicted; it can't be undone." }),
        ChangeDiff::NewMissing => json!({ "note": "Its new content isn't stored; it can be undone." }),
    })
}
