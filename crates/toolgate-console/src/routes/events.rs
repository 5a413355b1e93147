//! The events of a run: a page of JSON, or all of them live as server-sent events, from the one after `Last-Event-ID` on,
//! until the run ends or the client disconnects. The live stream also has what processes write, which is never recorded
//! and has no id.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_contract::{CancellationToken, Event, EventPayload, ToolError, schemars};
use toolgate_journal::{Follower, RecordedEvent};
use toolgate_workspace::LiveEventReceiver;

use super::{PathId, StrictQuery, run_blocking};
use crate::http_session::Caller;
use crate::problem::Problem;
use crate::server_state::ServerState;
use crate::stream_admission::StreamAdmission;

/// How often the record is read for more.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A silent stream sends a comment this often.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How many events a page has at most.
const MAX_LIMIT: usize = 10_000;

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
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    PathId(run): PathId,
    StrictQuery(EventsQuery { after, limit }): StrictQuery<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let limit = limit.unwrap_or(1000);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` is between 1 and {MAX_LIMIT}.")));
    }
    let after = last_seen(&headers)?.or(after).unwrap_or(0);
    let (closed, live) = (state.closed.clone(), state.workspace.live.of_run(&run));
    let admission = StreamAdmission::of(&state, &headers);
    let follower = run_blocking(move || {
        state.may_see(&caller, &run)?;
        Ok(Follower::open(&state.workspace.state.run_dir(&run)?, after)?)
    })
    .await?;
    match wants_stream(&headers) {
        true => Ok(event_stream(follower, live, closed, admission)),
        false => run_blocking(move || page(follower, limit)).await.map(IntoResponse::into_response),
    }
}

/// The id after which a disconnected client resumes.
fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| Problem::invalid("`Last-Event-ID` is the number of an event."))
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let kinds = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    kinds.flat_map(|kinds| kinds.split(',')).any(|kind| kind.trim().starts_with("text/event-stream"))
}

/// A page, and the number after which the next one begins; none at the end.
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

/// A stream of a run's events, recorded and live.
struct RunEventStream {
    follower: Follower,
    live: LiveEventReceiver,
    closed: CancellationToken,
    admission: StreamAdmission,
    is_over: bool,
}

fn event_stream(
    follower: Follower,
    live: LiveEventReceiver,
    closed: CancellationToken,
    admission: StreamAdmission,
) -> Response {
    let following = RunEventStream { follower, live, closed, admission, is_over: false };
    let batches = stream::unfold(following, |mut following| async move {
        let batch = following.next_batch().await?;
        Some((stream::iter(batch.into_iter().map(Ok::<_, Infallible>)), following))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("still here");
    let mut response = Sse::new(batches.flatten()).keep_alive(keep_alive).into_response();
    // Authentication sets a stricter one.
    response.headers_mut().remove(header::CACHE_CONTROL);
    response
}

impl RunEventStream {
    /// The next events; none when the run has ended, the server has closed, the client may not follow any more, or the record
    /// can't be read.
    async fn next_batch(&mut self) -> Option<Vec<SseEvent>> {
        while !self.is_over && self.admission.holds() {
            // Checked before reading, so that everything recorded until the server closed is still sent.
            self.is_over = self.closed.is_cancelled();
            let recorded = self.follower.more().ok()?;
            // Received after reading and sent first, so that a command's output comes before its end.
            let live = self.live.since();
            if !recorded.is_empty() || !live.is_empty() {
                self.is_over |= recorded.iter().any(|event| matches!(event.event.payload, EventPayload::RunEnded));
                return Some(
                    live.iter().map(|event| live_event(event)).chain(recorded.iter().map(recorded_event)).collect(),
                );
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        None
    }
}

/// A recorded event: its line in the record, with its number as the id.
fn recorded_event(event: &RecordedEvent) -> SseEvent {
    let kind = line(event)["kind"].as_str().unwrap_or("event").to_owned();
    SseEvent::default().id(event.seq.to_string()).event(kind).data(&event.line)
}

/// A live event, without an id because no client can resume after it.
fn live_event(event: &Event) -> SseEvent {
    let event = json!(event);
    SseEvent::default().event(event["kind"].as_str().unwrap_or("event")).data(event.to_string())
}

fn line(event: &RecordedEvent) -> Value {
    serde_json::from_str(&event.line).unwrap_or_default()
}
