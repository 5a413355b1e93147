//! Signing a browser in and out. A one-time link's token is exchanged for a cookie that scripts can't read; see
//! `authenticator.rs` for what the cookie is good for.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::schemars;

use super::{JsonBody, OwnerOnly, read_json, run_blocking};
use crate::authenticator::console_token;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// A one-time link, to be exchanged for a cookie.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignInBody {
    /// What the link has after `#once=`.
    once: String,
}

/// Who is signed in where.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SignedInView {
    /// The owner's name, as answers are recorded.
    owner: String,
    /// The workspace's directory.
    workspace: String,
    /// The preset of its policy.
    preset: String,
    /// The program's version.
    version: &'static str,
    /// The server's own run.
    run: String,
    /// When the browser is signed out; none for a token.
    #[schemars(with = "Option<String>")]
    expires: Option<Timestamp>,
    /// What everybody who uses the workspace has to know of its policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
}

pub(super) async fn sign_in(
    State(state): State<Arc<ServerState>>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let SignInBody { once } = read_json(&body)?;
    run_blocking(move || {
        let console = state.console()?;
        let now = state.workspace.clock.now();
        let redeemed = console.access.redeem(&once, &console.workspace(), now);
        let redeemed = redeemed.map_err(|error| Problem::internal(format!("The session can't be stored: {error}.")))?;
        let (token, expires) = redeemed.ok_or_else(|| {
            let hint = "`toolgate console` prints a new one.";
            let message = "The link was used already, has expired, or isn't one of this workspace.";
            Problem::new(StatusCode::FORBIDDEN, "link_not_valid", message, hint)
        })?;
        let seconds = expires.as_second() - now.as_second();
        let cookie = console.cookie(Some(&token), seconds);
        Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
    })
    .await
}

pub(super) async fn show(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    headers: HeaderMap,
) -> Result<Json<SignedInView>, Problem> {
    run_blocking(move || {
        let (workspace, now) = (&state.workspace, state.workspace.clock.now());
        let ticket = state
            .console
            .as_ref()
            .and_then(|console| console.access.session(console_token(&headers, console)?, &console.workspace(), now));
        Ok(Json(SignedInView {
            owner: workspace.owner.clone(),
            workspace: workspace.directory.display().to_string(),
            preset: workspace.gate.policy().preset().to_string(),
            version: env!("CARGO_PKG_VERSION"),
            run: state.owner.run.id.clone(),
            expires: ticket.map(|ticket| ticket.expires),
            warning: workspace.warning(),
        }))
    })
    .await
}

pub(super) async fn sign_out(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let console = state.console()?;
    if let Some(token) = console_token(&headers, console) {
        console.access.end_session(token);
    }
    let forget = console.cookie(None, 0);
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, forget)]).into_response())
}
