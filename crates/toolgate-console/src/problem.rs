//! How a request fails: one shape, `{"error": {code, message, hint}}`, with a fitting status. A call that reached the gate
//! is no problem: it is answered with its reply, whose `ok` says how it ended.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use toolgate_contract::{ErrorClass, ErrorCode, ToolError};
use toolgate_journal::JournalError;
use toolgate_runtime::CallRegistryError;
use toolgate_workspace::WorkspaceError;

/// Why a request failed.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    message: String,
    hint: String,
    /// Seconds after which a retry makes sense.
    retry_after: Option<u64>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>, hint: &str) -> Self {
        Self { status, code, message: message.into(), hint: hint.into(), retry_after: None }
    }

    /// The server is at a limit.
    pub(crate) fn busy(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let hint = "Wait a moment and try again; `Retry-After` says how long.";
        Self { retry_after: Some(1), ..Self::new(status, code, message, hint) }
    }

    /// Not there, or not visible to this caller.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("There is no {what} here."),
            "`/openapi.json` lists the routes; ids come from earlier replies of the same session.",
        )
    }

    /// The request itself is wrong.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        let hint = "Correct the request; `/openapi.json` describes it.";
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message, hint)
    }

    /// A call's id was used before.
    pub(crate) fn duplicate_call(message: impl Into<String>) -> Self {
        let hint = "Ids are unique; leave it out to get a new one.";
        Self::new(StatusCode::CONFLICT, "duplicate_call", message, hint)
    }

    /// Only the owner can do this.
    pub(crate) fn owners_only() -> Self {
        let (message, hint) =
            ("A session's token isn't enough for this.", "Use the owner's token; `toolgate serve` says where it is.");
        Self::new(StatusCode::FORBIDDEN, "owner_only", message, hint)
    }

    /// A fault of the server's.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        ToolError::internal(message).into()
    }
}

impl From<ToolError> for Problem {
    fn from(error: ToolError) -> Self {
        let status = match (error.code, error.code.class()) {
            (ErrorCode::NotFound | ErrorCode::UnknownTool, _) => StatusCode::NOT_FOUND,
            (ErrorCode::LimitReached, _) => StatusCode::TOO_MANY_REQUESTS,
            (_, ErrorClass::Validation) => StatusCode::BAD_REQUEST,
            (_, ErrorClass::Policy) => StatusCode::FORBIDDEN,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.code.as_str(), error.message, error.hint.as_deref().unwrap_or(error.code.next_step()))
    }
}

impl From<CallRegistryError> for Problem {
    fn from(error: CallRegistryError) -> Self {
        match error {
            CallRegistryError::Duplicate => Self::duplicate_call(error.to_string()),
            CallRegistryError::Full { .. } => {
                Self::busy(StatusCode::TOO_MANY_REQUESTS, "too_many_calls", error.to_string())
            }
        }
    }
}

impl From<WorkspaceError> for Problem {
    fn from(error: WorkspaceError) -> Self {
        ToolError::from(error).into()
    }
}

impl From<JournalError> for Problem {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::NoSuchRun { .. } => Self::not_found("such run"),
            JournalError::BadId { of, .. } => Self::not_found(&format!("such {of}")),
            JournalError::NoSuchAsk { .. } => Self::not_found("such approval waiting"),
            JournalError::Answered { .. } => Self::new(
                StatusCode::CONFLICT,
                "already_answered",
                error.to_string(),
                "Nothing is left to do; `GET /v1/approvals` shows what still waits.",
            ),
            other => ToolError::from(other).into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message, "hint": self.hint } });
        let mut response = (self.status, Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
