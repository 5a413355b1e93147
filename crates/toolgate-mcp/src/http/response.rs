//! How a request is answered: the work runs in a task of its own, so that its end is recorded even when the client
//! disconnects. Disconnecting cancels the work.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;
use toolgate_contract::CancellationToken;

use crate::client::Client;
use crate::json_rpc::{JsonRpcRequest, RequestId};
use crate::json_rpc_error::JsonRpcError;
use crate::message_sink::{MessageSink, SharedMessageSink};
use crate::methods::{self, RequestContext};
use crate::protocol_version::ClientProfile;

/// A request that takes longer than this is answered by a stream, and a silent stream sends a comment this often.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Sends messages into an event stream.
struct SseSink(mpsc::UnboundedSender<String>);

impl MessageSink for SseSink {
    fn send(&self, message: String) {
        // The stream may be gone; then the work is being cancelled anyway.
        let _ = self.0.send(message);
    }
}

/// A request that is being answered. Dropping it cancels the work.
pub(super) struct PendingResponse {
    id: RequestId,
    messages: mpsc::UnboundedReceiver<String>,
    work: JoinHandle<Result<Value, JsonRpcError>>,
    _cancel_on_disconnect: DropGuard,
}

impl PendingResponse {
    /// Begins to answer a request.
    pub(super) fn begin(client: Arc<Client>, profile: ClientProfile, request: JsonRpcRequest) -> Self {
        let (sender, messages) = mpsc::unbounded_channel();
        let sink: SharedMessageSink = Arc::new(SseSink(sender));
        let disconnected = client.stop.child_token();
        let (id, cancel) = (request.id.clone(), disconnected.clone());
        let work = tokio::spawn(async move { answer(&client, &profile, &request, &sink, &cancel).await });
        Self { id, messages, work, _cancel_on_disconnect: disconnected.drop_guard() }
    }

    /// The response: plain JSON when the answer comes first, an event stream when another message does or it takes long.
    pub(super) async fn respond(mut self, has_statuses: bool) -> Response {
        tokio::select! {
            biased;
            Some(message) = self.messages.recv() => self.stream(Some(message)),
            answer = &mut self.work => {
                let answer = answer.unwrap_or_else(|_| Err(lost()));
                let status = if has_statuses { status_of(&answer) } else { StatusCode::OK };
                let body = methods::response_message(&self.id, &answer);
                (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
            }
            () = tokio::time::sleep(KEEP_ALIVE) => self.stream(None),
        }
    }

    fn stream(self, first: Option<String>) -> Response {
        let rest = stream::unfold(Some(self), |pending| async move {
            let mut pending = pending?;
            let (message, is_last) = pending.next().await;
            Some((message, (!is_last).then_some(pending)))
        });
        event_stream(stream::iter(first).chain(rest))
    }

    /// The next message, and whether it is the last.
    async fn next(&mut self) -> (String, bool) {
        tokio::select! {
            biased;
            Some(message) = self.messages.recv() => (message, false),
            answer = &mut self.work => {
                let answer = answer.unwrap_or_else(|_| Err(lost()));
                (methods::response_message(&self.id, &answer), true)
            }
        }
    }
}

async fn answer(
    client: &Arc<Client>,
    profile: &ClientProfile,
    request: &JsonRpcRequest,
    sink: &SharedMessageSink,
    disconnected: &CancellationToken,
) -> Result<Value, JsonRpcError> {
    // Without a handshake, several processes may share one client; their ids are unique only in each of them.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let own = RequestId::server_generated(NEXT.fetch_add(1, Ordering::Relaxed));
    let active = client.begin(if profile.is_stateless() { &own } else { &request.id })?;
    let cancel = &active.cancel;
    let context = RequestContext { client, profile, params: &request.params, id: &request.id, sink, cancel };
    let answering = methods::answer(&context, &request.method);
    tokio::pin!(answering);
    tokio::select! {
        biased;
        answer = &mut answering => answer,
        () = disconnected.cancelled() => {
            cancel.cancel();
            answering.await
        }
    }
}

fn lost() -> JsonRpcError {
    JsonRpcError::internal("The answer was lost.")
}

fn event_stream(messages: impl Stream<Item = String> + Send + 'static) -> Response {
    let events = messages.map(|message| Ok::<_, Infallible>(SseEvent::default().event("message").data(message)));
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("alive");
    let mut response = Sse::new(events).keep_alive(keep_alive).into_response();
    let no_cache = HeaderValue::from_static("no-cache, no-transform");
    response.headers_mut().insert(header::CACHE_CONTROL, no_cache);
    response
}

/// The HTTP status that the protocol version without a handshake requires.
fn status_of(answer: &Result<Value, JsonRpcError>) -> StatusCode {
    match answer.as_ref().err().map(|fault| fault.code) {
        Some(JsonRpcError::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(JsonRpcError::MISSING_CAPABILITY | JsonRpcError::HEADER_MISMATCH | JsonRpcError::UNSUPPORTED_VERSION) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

/// The event stream for messages that belong to no request of a client.
pub(super) fn notification_stream(client: &Arc<Client>) -> Response {
    let (sender, messages) = mpsc::unbounded_channel();
    *client.notifications.lock() = Some(Arc::new(SseSink(sender)));
    let messages = stream::unfold(messages, |mut messages| async move {
        let message = messages.recv().await?;
        Some((message, messages))
    });
    event_stream(messages.take_until(client.stop.clone().cancelled_owned()))
}
