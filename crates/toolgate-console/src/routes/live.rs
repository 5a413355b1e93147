//! Everything that happens in the workspace as one stream of server-sent events, for pages that show all of it. A session
//! gets what is about its own run.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use tokio::sync::watch;
use toolgate_contract::CancellationToken;

use crate::http_session::Caller;
use crate::live_feed::LiveFeed;
use crate::server_state::ServerState;
use crate::stream_admission::{RECHECK, StreamAdmission};

/// A silent stream sends a comment this often, so that a lost connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Items that come within this time are sent together.
const BATCH_TIME: Duration = Duration::from_millis(50);

/// One client that follows.
struct Following {
    feed: Arc<LiveFeed>,
    more: watch::Receiver<u64>,
    closed: CancellationToken,
    admission: StreamAdmission,
    /// The run that the client may see; none for all.
    run: Option<String>,
    after: u64,
    /// Whether the client has to load everything again, since items are missing.
    reset: bool,
}

pub(super) async fn follow(State(state): State<Arc<ServerState>>, caller: Caller, headers: HeaderMap) -> Response {
    let feed = Arc::clone(&state.feed);
    let more = feed.follow(&state);
    let seen = headers.get("last-event-id").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let resumed = seen.rsplit_once('-').filter(|(epoch, _)| *epoch == feed.epoch);
    let resumed =
        resumed.and_then(|(_, number)| number.parse::<u64>().ok()).filter(|number| feed.goes_on_after(*number));
    let run = match &caller {
        Caller::Owner => None,
        Caller::Session(client) => Some(client.run.id.clone()),
    };
    let after = resumed.unwrap_or_else(|| feed.last());
    let (closed, admission) = (state.closed.clone(), StreamAdmission::of(&state, &headers));
    let following = Following { feed, more, closed, admission, run, after, reset: resumed.is_none() };
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

impl Following {
    async fn next_batch(&mut self) -> Option<Vec<SseEvent>> {
        if std::mem::take(&mut self.reset) {
            let id = format!("{}-{}", self.feed.epoch, self.after);
            return Some(vec![SseEvent::default().id(id).event("reset").data("{}")]);
        }
        while self.admission.holds() {
            if self.feed.last() <= self.after {
                tokio::select! {
                    changed = self.more.changed() => changed.ok()?,
                    () = self.closed.cancelled() => return None,
                    () = tokio::time::sleep(RECHECK) => continue,
                }
                tokio::time::sleep(BATCH_TIME).await;
            }
            self.more.mark_unchanged();
            let Some(items) = self.feed.after(self.after) else {
                (self.after, self.reset) = (self.feed.last(), true);
                return Some(Vec::new());
            };
            self.after = items.last().map_or(self.after, |item| item.number);
            let is_visible = |run: &Option<String>| self.run.is_none() || *run == self.run;
            let visible = items.iter().filter(|item| is_visible(&item.run));
            let events: Vec<SseEvent> = visible
                .map(|item| {
                    let id = format!("{}-{}", self.feed.epoch, item.number);
                    SseEvent::default().id(id).event("live").data(&item.json)
                })
                .collect();
            if !events.is_empty() {
                return Some(events);
            }
        }
        None
    }
}
