//! Grants: approvals that reach beyond one call. A session sees those that were given in it, and may give up those that
//! end with it. What reaches every session is the owner's.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use toolgate_contract::{ApprovalScope, schemars};
use toolgate_journal::{Grant, GrantStore, Revocation};
use toolgate_runtime::GrantView;

use super::{PathId, run_blocking};
use crate::http_session::Caller;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// The grants that apply in this workspace.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GrantList {
    grants: Vec<GrantView>,
}

pub(super) async fn list(State(state): State<Arc<ServerState>>, caller: Caller) -> Result<Json<GrantList>, Problem> {
    run_blocking(move || {
        let grants = visible(&state, &caller)?.into_iter().map(GrantView::from).collect();
        Ok(Json(GrantList { grants }))
    })
    .await
}

pub(super) async fn revoke(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<StatusCode, Problem> {
    run_blocking(move || {
        let missing = || Problem::not_found("such grant");
        let grant = visible(&state, &caller)?.into_iter().find(|grant| grant.id == id).ok_or_else(missing)?;
        if matches!(caller, Caller::Session(_)) && grant.scope == ApprovalScope::Always {
            return Err(Problem::owners_only());
        }
        let by = match &caller {
            Caller::Owner => format!("{} (http)", state.workspace.owner),
            Caller::Session(client) => format!("session {} (http)", client.id),
        };
        let revocation = Revocation { by, at: state.workspace.clock.now() };
        let is_it = |known: &Grant| known.id == grant.id && known.workspace == grant.workspace;
        match store(&state)?.revoke(&revocation, is_it)?.is_empty() {
            true => Err(missing()),
            false => Ok(StatusCode::NO_CONTENT),
        }
    })
    .await
}

/// The grants that this caller may see: all for the owner, those given in it for a session.
fn visible(state: &ServerState, caller: &Caller) -> Result<Vec<Grant>, Problem> {
    let mut grants = store(state)?.grants(state.workspace.clock.now())?.grants;
    grants.retain(|grant| match caller {
        Caller::Owner => true,
        Caller::Session(client) => grant.run == client.run.id,
    });
    Ok(grants)
}

fn store(state: &ServerState) -> Result<&GrantStore, Problem> {
    state.workspace.grants.as_deref().ok_or_else(|| {
        let message = "There are no grants, because there is no signing key.";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_grants", message, "`toolgate doctor` says why.")
    })
}
