//! Stored output, whole or in part (`Range`). Artifacts belong to a run; those of other sessions are not found. Text is
//! stored without secrets. Binary data is stored as it came, so it is searched for secrets before it is sent: a part that
//! was replaced would damage it, so it is refused.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;
use toolgate_contract::{ArtifactRef, Artifacts, ToolError, schemars};

use super::{ActingSession, PathId, StrictQuery, run_blocking};
use crate::http_session::Caller;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// Which artifact.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArtifactQuery {
    /// The run that it belongs to; the session's present one if missing.
    #[serde(default)]
    run: Option<String>,
}

pub(super) async fn show(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    ActingSession(client): ActingSession,
    PathId(id): PathId,
    StrictQuery(ArtifactQuery { run }): StrictQuery<ArtifactQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let opened = run_blocking(move || {
        let (artifact, mut file) = match run {
            None => client.session.artifacts.open(&id)?,
            Some(run) => {
                state.may_see(&caller, &run)?;
                state.workspace.state.artifacts(&run)?.open(&id)?
            }
        };
        let redactor = state.workspace.gate.redactor();
        let verdict = state.artifact_verdicts.contains_secret(&artifact, &mut file, redactor);
        match verdict.map_err(|error| unreadable(&error))? {
            true => Err(secret_inside(&artifact)),
            false => Ok((artifact, file)),
        }
    });
    let (artifact, file) = opened.await?;
    let tag = format!("\"{}\"", artifact.sha256);
    if headers.get(header::IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == tag.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let asked = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let part = asked.map_or(RequestedRange::Whole, |asked| RequestedRange::read(asked, artifact.bytes));
    send(&artifact, file, part, &tag)
}

fn secret_inside(artifact: &ArtifactRef) -> Problem {
    let message = format!("The artifact `{}` ({}) contains a secret, so it isn't sent.", artifact.id, artifact.mime);
    let hint =
        "Replacing the secret would damage it. A person can open the file in the workspace's `.toolgate` directory.";
    Problem::new(StatusCode::FORBIDDEN, "secret_in_artifact", message, hint)
}

fn unreadable(error: &io::Error) -> ToolError {
    ToolError::io("The artifact can't be read", error)
}

fn send(artifact: &ArtifactRef, mut file: File, part: RequestedRange, tag: &str) -> Result<Response, Problem> {
    let (status, start, length) = match part {
        RequestedRange::Whole => (StatusCode::OK, 0, artifact.bytes),
        RequestedRange::Span { start, length } => (StatusCode::PARTIAL_CONTENT, start, length),
        RequestedRange::Outside => {
            let range = format!("bytes */{}", artifact.bytes);
            let message = "The artifact ends before that range begins.";
            let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "outside_range", message, "Ask for less.");
            return Ok(([(header::CONTENT_RANGE, range)], problem).into_response());
        }
    };
    file.seek(SeekFrom::Start(start)).map_err(|error| unreadable(&error))?;
    let body = Body::from_stream(ReaderStream::new(tokio::fs::File::from_std(file).take(length)));
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    let mut set = |name, text: String| {
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, artifact.mime.clone());
    set(header::CONTENT_LENGTH, length.to_string());
    set(header::ACCEPT_RANGES, "bytes".into());
    set(header::ETAG, tag.to_owned());
    set(header::CONTENT_DISPOSITION, "attachment".into());
    if status == StatusCode::PARTIAL_CONTENT {
        set(header::CONTENT_RANGE, format!("bytes {start}-{}/{}", start + length - 1, artifact.bytes));
    }
    Ok(response)
}

/// Which part of it is wanted.
#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    Whole,
    Span { start: u64, length: u64 },
    Outside,
}

impl RequestedRange {
    /// One range of bytes (RFC 9110). Anything else, also several ranges, gets the whole artifact, which the RFC allows.
    fn read(text: &str, size: u64) -> Self {
        let Some((first, last)) = text.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
            return Self::Whole;
        };
        let (start, end) = match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
            (Ok(first), Ok(last)) if first <= last => (first, last.saturating_add(1).min(size)),
            (Ok(first), Err(_)) if last.trim().is_empty() => (first, size),
            (Err(_), Ok(last)) if first.trim().is_empty() => (size.saturating_sub(last), size),
            _ => return Self::Whole,
        };
        match start < end {
            true => Self::Span { start, length: end - start },
            false => Self::Outside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let span = |start, length| RequestedRange::Span { start, length };
        for (text, expected) in [
            ("bytes=0-0", span(0, 1)),
            ("bytes=2-5", span(2, 4)),
            ("bytes=8-", span(8, 2)),
            ("bytes=8-99999999999999999999", RequestedRange::Whole),
            ("bytes=8-100", span(8, 2)),
            ("bytes=-3", span(7, 3)),
            ("bytes=-30", span(0, 10)),
            ("bytes=10-", RequestedRange::Outside),
            ("bytes=-0", RequestedRange::Outside),
            ("bytes=5-2", RequestedRange::Whole),
            ("bytes=0-1,4-5", RequestedRange::Whole),
            ("lines=0-1", RequestedRange::Whole),
            ("bytes=", RequestedRange::Whole),
            ("bytes=-", RequestedRange::Whole),
        ] {
            assert_eq!(RequestedRange::read(text, 10), expected, "{text}");
        }
        assert_eq!(RequestedRange::read("bytes=0-", 0), RequestedRange::Outside);
    }
}
