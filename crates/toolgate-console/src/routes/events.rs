//! The events of a run: a page of them as JSON, or all of them live as server-sent events, from the one after
//! `Last-Event-ID` on, until the run ends or the client leaves. Whoever listens live also sees what processes write while
//! they write it, which is never on record and has no number.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_contract::{CancellationToken, Event, EventPayload, ToolError, schemars};
use toolgate_journal::{Follower, RecordedEvent};

use super::{PathId, StrictQuery, run_blocking};
use crate::http_session::Caller;
use crate::live_events::LiveEventReceiver;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// How often the file is looked at for more.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a stream may be silent, so that whoever listens knows that it lives.
const SILENT: Duration = Duration::from_secs(15);

/// How many events a page has at most.
const MOST: usize = 10_000;

/// Which events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// Only those after this number.
    #[serde(default)]
    after: Option<u64>,
    /// At most so many, for a page of JSON; 1,000 if missing.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
}

pub(super) async fn show(
    State(shared): State<Arc<ServerState>>,
    caller: Caller,
    PathId(run): PathId,
    StrictQuery(EventsQuery { after, limit }): StrictQuery<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let limit = limit.unwrap_or(1000);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` is between 1 and {MOST}.")));
    }
    let after = last_seen(&headers)?.or(after).unwrap_or(0);
    let (closed, heard) = (shared.closed.clone(), shared.backend.live().of_run(&run));
    let follower = run_blocking(move || {
        shared.may_see(&caller, &run)?;
        Ok(Follower::open(&shared.backend.state().run_dir(&run)?, after)?)
    })
    .await?;
    match wants_stream(&headers) {
        true => Ok(live(follower, heard, closed)),
        false => run_blocking(move || page(follower, limit)).await.map(IntoResponse::into_response),
    }
}

/// Where a client that was cut off wants to go on.
fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| Problem::invalid("`Last-Event-ID` is the number of an event."))
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let kinds = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    kinds.flat_map(|kinds| kinds.split(',')).any(|kind| kind.trim().starts_with("text/event-stream"))
}

/// A page, and the number behind which the next one begins; none when this is the end so far.
fn page(mut follower: Follower, limit: usize) -> Result<Json<Value>, Problem> {
    let mut events = Vec::new();
    while events.len() <= limit {
        let more = follower.more().map_err(|error| ToolError::io("The record can't be read", &error))?;
        if more.is_empty() {
            break;
        }
        events.extend(more);
    }
    let has_more = events.len() > limit;
    events.truncate(limit);
    let next = events.last().filter(|_| has_more).map(|last| last.seq);
    let events: Vec<Value> = events.iter().map(line).collect();
    Ok(Json(json!({ "events": events, "next": next })))
}

/// What a stream is at.
struct RunEventStream {
    follower: Follower,
    heard: LiveEventReceiver,
    closed: CancellationToken,
    silent_since: Instant,
    is_over: bool,
}

fn live(follower: Follower, heard: LiveEventReceiver, closed: CancellationToken) -> Response {
    let listening = RunEventStream { follower, heard, closed, silent_since: Instant::now(), is_over: false };
    let frames = stream::unfold(listening, |mut listening| async move {
        let frame = listening.frame().await?;
        Some((Ok::<_, std::io::Error>(frame), listening))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(frames)).into_response()
}

impl RunEventStream {
    /// The next piece of the stream; none when the run has ended, the server has closed, or the record can't be read.
    async fn frame(&mut self) -> Option<String> {
        while !self.is_over {
            // Asked before looking: what was recorded until the server closed is still told.
            self.is_over = self.closed.is_cancelled();
            let events = self.follower.more().ok()?;
            // Heard after looking and told first: what a command wrote comes before its end.
            let passed = self.heard.since();
            if !events.is_empty() || !passed.is_empty() {
                self.silent_since = Instant::now();
                self.is_over |= events.iter().any(|event| matches!(event.event.payload, EventPayload::RunEnded));
                return Some(passed.iter().map(|event| live_frame(event)).chain(events.iter().map(written)).collect());
            }
            if self.silent_since.elapsed() > SILENT {
                self.silent_since = Instant::now();
                return Some(": still here\n\n".into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        None
    }
}

/// An event as a server sends it: the line as it stands in the record, under its number.
fn written(event: &RecordedEvent) -> String {
    let kind = line(event)["kind"].as_str().unwrap_or("event").to_owned();
    format!("id: {}\nevent: {kind}\ndata: {}\n\n", event.seq, event.line)
}

/// Something that passes: without a number, since nobody can go on from it.
fn live_frame(event: &Event) -> String {
    let event = json!(event);
    format!("event: {}\ndata: {event}\n\n", event["kind"].as_str().unwrap_or("event"))
}

fn line(event: &RecordedEvent) -> Value {
    serde_json::from_str(&event.line).unwrap_or_default()
}
