//! The routes, one file each. This list is the table of contents; `/openapi.json` describes the same.

mod approvals;
mod artifacts;
mod calls;
mod changes;
mod client_tools;
mod console_session;
mod events;
mod grants;
mod inbox;
mod info;
mod live;
mod outline;
mod policy;
mod processes;
mod quarantine;
mod questions;
mod runs;
mod search;
mod sessions;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};
use toolgate_contract::counted;

use crate::authenticator;
use crate::http_session::{Caller, HttpSession};
use crate::page;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// The types of requests and responses, for the OpenAPI document.
pub(crate) mod schemas {
    pub(crate) use super::approvals::{ApprovalAnswerBody, ApprovalList, ApprovalView};
    pub(crate) use super::artifacts::ArtifactQuery;
    pub(crate) use super::calls::{AcceptedCall, CallAnswer, CallQuery, CallView};
    pub(crate) use super::changes::ChangesQuery;
    pub(crate) use super::client_tools::{ClientCallList, ClientResultBody, NewToolBody, RegisteredToolView};
    pub(crate) use super::console_session::{SignInBody, SignedInView};
    pub(crate) use super::events::EventsQuery;
    pub(crate) use super::grants::GrantList;
    pub(crate) use super::inbox::{NewTaskBody, TasksQuery};
    pub(crate) use super::outline::OutlineQuery;
    pub(crate) use super::policy::{PolicyCheckBody, PolicyReplayBody};
    pub(crate) use super::processes::{ProcessInputBody, ProcessList, ProcessSizeBody, ProcessStopBody};
    pub(crate) use super::quarantine::ReleaseBody;
    pub(crate) use super::questions::{QuestionAnswerBody, QuestionList};
    pub(crate) use super::runs::RunsQuery;
    pub(crate) use super::search::SearchQuery;
    pub(crate) use super::sessions::{NewSession, SessionList, SessionView};
}

pub(crate) use self::outline::OutlineCache;
pub(crate) use self::runs::RefreshedRuns;

/// Every route.
pub(crate) fn all() -> Router<Arc<ServerState>> {
    Router::new()
        .route("/", get(page::document))
        .route("/page/{hash}/{*name}", get(page::file))
        .route("/health", get(info::health))
        .route("/metrics", get(info::metrics))
        .route("/openapi.json", get(info::openapi))
        .route("/v1/tools", get(info::tools).post(client_tools::register))
        .route("/v1/tools/{id}", delete(client_tools::remove))
        .route("/v1/client-calls", get(client_tools::waiting))
        .route("/v1/client-calls/{id}", post(client_tools::answer))
        .route(
            "/v1/console/session",
            get(console_session::show).post(console_session::sign_in).delete(console_session::sign_out),
        )
        .route("/v1/live", get(live::follow))
        .route("/v1/search", get(search::search))
        .route("/v1/doctor", get(search::doctor))
        .route("/v1/sessions", get(sessions::list).post(sessions::begin))
        .route("/v1/sessions/{id}", delete(sessions::end))
        .route("/v1/calls", post(calls::create))
        .route("/v1/calls/{id}", get(calls::show).delete(calls::cancel))
        .route("/v1/check", post(calls::check))
        .route("/v1/undo", post(calls::undo))
        .route("/v1/runs", get(runs::list))
        .route("/v1/runs/{id}", get(runs::show))
        .route("/v1/runs/{id}/tree", get(runs::show_tree))
        .route("/v1/runs/{id}/outline", get(outline::show))
        .route("/v1/runs/{id}/calls/{call}", get(outline::show_call))
        .route("/v1/runs/{id}/events", get(events::show))
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/approvals/{id}", get(approvals::show).post(approvals::answer))
        .route("/v1/grants", get(grants::list))
        .route("/v1/grants/{id}", delete(grants::revoke))
        .route("/v1/questions", get(questions::list))
        .route("/v1/questions/{id}", post(questions::answer))
        .route("/v1/artifacts/{id}", get(artifacts::show))
        .route("/v1/changes", get(changes::list))
        .route("/v1/quarantine", get(quarantine::list))
        .route("/v1/quarantine/release", post(quarantine::release))
        .route("/v1/processes", get(processes::list))
        .route("/v1/processes/{id}", get(processes::show))
        .route("/v1/processes/{id}/input", post(processes::write))
        .route("/v1/processes/{id}/size", post(processes::resize))
        .route("/v1/processes/{id}/stop", post(processes::stop))
        .route("/v1/policy", get(policy::show))
        .route("/v1/policy/check", post(policy::check))
        .route("/v1/policy/replay", post(policy::replay))
        .route("/v1/inbox", get(inbox::list).post(inbox::add))
        .route("/v1/inbox/{id}", get(inbox::show))
}

/// Adds authentication before everything, unknown routes included.
pub(crate) fn with_authentication(router: Router<Arc<ServerState>>, state: &Arc<ServerState>) -> Router {
    router
        .fallback(|| async { Problem::not_found("such route") })
        .method_not_allowed_fallback(|| async {
            let hint = "`/openapi.json` lists the methods of each route.";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "This route has no such method.", hint)
        })
        .layer(from_fn_with_state(Arc::clone(state), authenticator::authenticate))
        .with_state(Arc::clone(state))
}

/// Who sent the request, as authentication has set it.
impl FromRequestParts<Arc<ServerState>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _shared: &Arc<ServerState>) -> Result<Self, Problem> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| Problem::internal("A request reached a route unauthenticated."))
    }
}

/// Only the owner.
pub(crate) struct OwnerOnly;

impl FromRequestParts<Arc<ServerState>> for OwnerOnly {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ServerState>) -> Result<Self, Problem> {
        match Caller::from_request_parts(parts, state).await? {
            Caller::Owner => Ok(Self),
            Caller::Session(_) => Err(Problem::owners_only()),
        }
    }
}

/// The session in which a request acts: the token's own, or for the owner the one of `X-Toolgate-Session`.
pub(crate) struct ActingSession(pub(crate) Arc<HttpSession>);

impl FromRequestParts<Arc<ServerState>> for ActingSession {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ServerState>) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let named = parts.headers.get("x-toolgate-session").map(|value| value.to_str().unwrap_or_default());
        state.acting(&caller, named).map(Self)
    }
}

/// A body of JSON, not yet read: of a bounded size, and sent within a bounded time.
pub(crate) struct JsonBody(pub(crate) Bytes);

impl FromRequest<Arc<ServerState>> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &Arc<ServerState>) -> Result<Self, Problem> {
        let kind =
            request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let hint = "Send JSON, with `Content-Type: application/json`.";
            let message = "The content type is not supported.";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message, hint));
        }
        let max = state.limits.body_bytes;
        let too_large = || {
            let hint = "Send less in one request.";
            let message = format!("The body is larger than {}.", counted(max, "byte"));
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message, hint)
        };
        let length = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: u64| length > max as u64) {
            return Err(too_large());
        }
        let read = axum::body::to_bytes(request.into_body(), max);
        match tokio::time::timeout(state.limits.body_time, read).await {
            Ok(Ok(bytes)) => Ok(Self(bytes)),
            Ok(Err(_)) => Err(too_large()),
            Err(_) => {
                let hint = "Send the body right after the headers.";
                let message = "The body took too long.";
                Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message, hint))
            }
        }
    }
}

/// Reads a body strictly: an object, with no unknown fields and no field twice.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let value = toolgate_dialects::strict_json::parse(bytes)?;
    if !value.is_object() {
        return Err(Problem::invalid("The body is not an object."));
    }
    serde_json::from_value(value).map_err(|fault| Problem::invalid(format!("The body is not well formed: {fault}.")))
}

/// A query, read strictly; errors are problems.
pub(crate) struct StrictQuery<T>(pub(crate) T);

impl<T: serde::de::DeserializeOwned> FromRequestParts<Arc<ServerState>> for StrictQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _shared: &Arc<ServerState>) -> Result<Self, Problem> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(query)) => Ok(Self(query)),
            Err(fault) => Err(Problem::invalid(format!("The query is not well formed: {}.", fault.body_text()))),
        }
    }
}

/// The `{id}` in the path; errors are problems.
pub(crate) struct PathId(pub(crate) String);

impl FromRequestParts<Arc<ServerState>> for PathId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ServerState>) -> Result<Self, Problem> {
        match axum::extract::Path::<String>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(id)) => Ok(Self(id)),
            Err(_) => Err(Problem::not_found("such thing")),
        }
    }
}

/// Runs blocking work off the threads that serve.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|fault| Err(Problem::internal(fault.to_string())))
}
