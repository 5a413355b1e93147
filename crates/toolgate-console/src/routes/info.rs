//! Health, metrics, the OpenAPI document, and the list of tools.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::{ActingSession, OwnerOnly};
use crate::metrics::{GaugeValues, MetricsFormat};
use crate::openapi;
use crate::server_state::ServerState;

/// Says that the server is up, and nothing else; needs no token.
pub(super) async fn health() -> Json<Value> {
    Json(json!({ "ok": true }))
}

/// Numbers for Prometheus, in the text format that the client accepts.
pub(super) async fn metrics(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    headers: HeaderMap,
) -> impl IntoResponse {
    let clients = state.clients.all();
    let now = state.workspace.clock.now();
    let waiting = state
        .workspace
        .approvals
        .as_ref()
        .and_then(|queue| queue.approvals.asks(now).ok())
        .map_or(0, |asks| asks.len());
    let present = GaugeValues { running: state.running.len(), sessions: clients.len(), waiting };
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = MetricsFormat::accepted(accept);
    ([(header::CONTENT_TYPE, format.media_type())], state.metrics.text(&present, format))
}

/// What this server offers, as OpenAPI 3.1.
pub(super) async fn openapi() -> Json<Value> {
    Json(openapi::document())
}

/// The tools that the session may use.
pub(super) async fn tools(State(state): State<Arc<ServerState>>, ActingSession(client): ActingSession) -> Json<Value> {
    let ceilings = client.session.ceilings();
    let tools = client.dialects.state().set().declarations(state.workspace.gate.offered(&ceilings));
    let own = client.session.client_tools.declarations();
    let tools: Vec<_> = tools.into_iter().chain(own).collect();
    Json(json!({ "tools": tools }))
}
