//! What needs no more than a look: health, metrics, the description, the tools.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::{Acting, Owner};
use crate::metrics::Present;
use crate::openapi;
use crate::shared::Shared;

/// Says that the server is there, and nothing else: anybody may ask.
pub(super) async fn health() -> Json<Value> {
    Json(json!({ "ok": true }))
}

/// Numbers for Prometheus.
pub(super) async fn metrics(State(shared): State<Arc<Shared>>, _owner: Owner) -> impl IntoResponse {
    let clients = shared.clients.all();
    let now = shared.house.clock().now();
    let waiting = shared.house.desk().and_then(|desk| desk.approvals.asks(now).ok()).map_or(0, |asks| asks.len());
    let present = Present { running: shared.running.len(), sessions: clients.len(), waiting };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], shared.metrics.text(&present))
}

/// What this server offers, as OpenAPI 3.1.
pub(super) async fn openapi() -> Json<Value> {
    Json(openapi::document())
}

/// The tools that the session may use.
pub(super) async fn tools(State(shared): State<Arc<Shared>>, Acting(client): Acting) -> Json<Value> {
    let ceilings = client.session.ceilings();
    let tools: Vec<_> = shared.house.gate().offered(&ceilings).collect();
    Json(json!({ "tools": tools }))
}
