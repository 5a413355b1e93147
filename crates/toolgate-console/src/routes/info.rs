//! What needs no more than a look: health, metrics, the description, the tools.

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

/// Says that the server is there, and nothing else: anybody may ask.
pub(super) async fn health() -> Json<Value> {
    Json(json!({ "ok": true }))
}

/// Numbers for Prometheus.
pub(super) async fn metrics(State(shared): State<Arc<ServerState>>, _owner: OwnerOnly) -> impl IntoResponse {
    let clients = shared.clients.all();
    let now = shared.backend.clock().now();
    let waiting = shared.backend.queue().and_then(|queue| queue.approvals.asks(now).ok()).map_or(0, |asks| asks.len());
    let present = GaugeValues { running: shared.running.len(), sessions: clients.len(), waiting };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], shared.metrics.text(&present))
}

/// What this server offers, as OpenAPI 3.1.
pub(super) async fn openapi() -> Json<Value> {
    Json(openapi::document())
}

/// The tools that the session may use.
pub(super) async fn tools(State(shared): State<Arc<ServerState>>, ActingSession(client): ActingSession) -> Json<Value> {
    let ceilings = client.session.ceilings();
    let tools: Vec<_> = shared.backend.gate().offered(&ceilings).collect();
    Json(json!({ "tools": tools }))
}
