//! Quarantined changes: what commands changed and was not written to the workspace. The owner looks at them, and releases
//! what is fine. To release is a call of the tool `release`, in a gate of its own that has this tool: no client can call it.

use std::io::Read;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_changes::Release;
use toolgate_contract::{ApprovalScope, BoxFuture, Call, CancellationToken, LINK_MODE, Reply, schemars};
use toolgate_journal::{Quarantine, QuarantinedChange};
use toolgate_runtime::{ApprovalAnswer, ApprovalRequest, Approver};
use toolgate_workspace::{RunChoice, Workspace, WorkspaceOptions};

use super::{JsonBody, OwnerOnly, read_json, run_blocking};
use crate::problem::Problem;
use crate::server_state::ServerState;

/// The longest beginning of a quarantined file that is shown, in bytes.
const MAX_SHOWN: u64 = 64 * 1024;

/// Which change is released.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseBody {
    /// The call whose command made the change.
    call: String,
    /// Its path.
    path: String,
    /// Whether a file that is there by now is replaced.
    #[serde(default)]
    replace: bool,
}

pub(super) async fn list(State(state): State<Arc<ServerState>>, _owner: OwnerOnly) -> Result<Json<Value>, Problem> {
    run_blocking(move || {
        let store = state.workspace.state.quarantine()?;
        let mut found = Vec::new();
        for call in store.calls()? {
            for change in store.changes(&call)? {
                found.push(shown(&state, &store, &call, &change));
            }
        }
        Ok(Json(json!({ "quarantined": found })))
    })
    .await
}

/// A change with the beginning of its content, without secrets.
fn shown(state: &ServerState, store: &Quarantine, call: &str, change: &QuarantinedChange) -> Value {
    let content = content(store, call, change).map(|bytes| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        state.workspace.gate.redactor().text(&text).into_owned()
    });
    let QuarantinedChange { path, reason, mode, .. } = change;
    json!({ "call": call, "path": path, "reason": reason, "mode": mode, "content": content })
}

fn content(store: &Quarantine, call: &str, change: &QuarantinedChange) -> Option<Vec<u8>> {
    let quarantined = store.for_call(call).ok()?;
    match (&change.name, change.mode) {
        (Some(name), Some(LINK_MODE)) => quarantined.link(name).ok(),
        _ => {
            let mut bytes = Vec::new();
            quarantined.open(change).ok()??.take(MAX_SHOWN).read_to_end(&mut bytes).ok()?;
            Some(bytes)
        }
    }
}

pub(super) async fn release(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    JsonBody(body): JsonBody,
) -> Result<Json<Reply>, Problem> {
    let ReleaseBody { call, path, replace } = read_json(&body)?;
    let opening = Arc::clone(&state);
    let workspace = run_blocking(move || {
        let mut options = WorkspaceOptions::new(Arc::new(|_: &str| ()));
        options.tools.push(Release::tool(opening.workspace.state.quarantine()?));
        options.owner.clone_from(&opening.workspace.owner);
        options.clock = Arc::clone(&opening.workspace.clock);
        // It writes files that are at hand; no command runs for it.
        options.sandbox = None;
        Ok(Workspace::open(&opening.console()?.location, options)?)
    })
    .await?;
    let choice = RunChoice { run: None, session: "console".into(), front_end: "http" };
    let recorded = workspace.begin(&choice)?;
    let session = recorded.session.approved_by(Arc::new(OwnerApproves::new(&state)));
    let args = json!({ "call": call, "path": path, "replace": replace });
    let call = Call::new("release", args, workspace.clock.as_ref());
    let reply = workspace.gate.perform(call, &session, CancellationToken::new()).await;
    session.end().await;
    recorded.run.end()?;
    run_blocking(move || {
        workspace.finish();
        Ok(())
    })
    .await?;
    Ok(Json(reply))
}

/// The owner, who asked for this very call.
pub(super) struct OwnerApproves {
    by: String,
}

impl OwnerApproves {
    pub(super) fn new(state: &ServerState) -> Self {
        Self { by: format!("{} (http)", state.workspace.owner) }
    }
}

impl Approver for OwnerApproves {
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        let answer = ApprovalAnswer::Granted { scope: ApprovalScope::Call, by: self.by.clone() };
        Box::pin(std::future::ready(answer))
    }
}
