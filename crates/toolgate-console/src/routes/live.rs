//! Everything that happens in the workspace as one stream of server-sent events, for pages that show all of it. A session
//! gets what is about its own run.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::watch;
use toolgate_contract::CancellationToken;

use crate::http_session::Caller;
use crate::live_feed::LiveFeed;
use crate::server_state::ServerState;
use crate::stream_admission::{RECHECK, StreamAdmission};

/// A silent stream sends a comment this often, so that a lost connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

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
        Some((Ok::<_, Infallible>(batch), following))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(batches)).into_response()
}

impl Following {
    /// What is sent next, in one piece: the same bytes for everybody who may see them.
    async fn next_batch(&mut self) -> Option<Bytes> {
        let began = Instant::now();
        while self.admission.holds() {
            if std::mem::take(&mut self.reset) {
                return Some(format!("id: {}-{}\nevent: reset\ndata: {{}}\n\n", self.feed.epoch, self.after).into());
            }
            if self.feed.last() <= self.after {
                if began.elapsed() >= KEEP_ALIVE {
                    return Some(Bytes::from_static(b": still here\n\n"));
                }
                tokio::select! {
                    changed = self.more.changed() => changed.ok()?,
                    () = self.closed.cancelled() => return None,
                    () = tokio::time::sleep(RECHECK) => continue,
                }
            }
            self.more.mark_unchanged();
            let Some(items) = self.feed.after(self.after) else {
                (self.after, self.reset) = (self.feed.last(), true);
                continue;
            };
            self.after = items.last().map_or(self.after, |item| item.number);
            let is_visible = |run: &Option<String>| self.run.is_none() || *run == self.run;
            let visible = items.iter().filter(|item| is_visible(&item.run));
            let batch: Vec<&[u8]> = visible.map(|item| &item.sent[..]).collect();
            if !batch.is_empty() {
                return Some(batch.concat().into());
            }
        }
        None
    }
}
