//! Health, metrics, the OpenAPI document, and the list of tools.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::{ActingSession, OwnerOnly};
use crate::metrics::GaugeValues;
use crate::openapi;
use crate::server_state::ServerState;

/// Says that the server is up, and nothing else; needs no token.
pub(super) async fn health() -> Json<Value> {
    Json(json!({ "ok": true }))
}

/// Numbers for Prometheus.
pub(super) async fn metrics(State(state): State<Arc<ServerState>>, _owner: OwnerOnly) -> impl IntoResponse {
    let clients = state.clients.all();
    let now = state.workspace.clock.now();
    let waiting = state
        .workspace
        .approvals
        .as_ref()
        .and_then(|queue| queue.approvals.asks(now).ok())
        .map_or(0, |asks| asks.len());
    let present = GaugeValues { running: state.running.len(), sessions: clients.len(), waiting };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], state.metrics.text(&present))
}

/// What this server offers, as OpenAPI 3.1.
pub(super) async fn openapi() -> Json<Value> {
    Json(openapi::document())
}

/// The tools that the session may use.
pub(super) async fn tools(State(state): State<Arc<ServerState>>, ActingSession(client): ActingSession) -> Json<Value> {
    let ceilings = client.session.ceilings();
    let tools: Vec<_> = state.workspace.gate.offered(&ceilings).collect();
    Json(json!({ "tools": tools }))
}
