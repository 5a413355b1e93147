//! How a request is answered: the work goes on beside the connection, so that its end is on record even when the client
//! hangs up; hanging up ends it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use toolgate_contract::CancellationToken;

use crate::client::{Client, lock};
use crate::json_rpc::{JsonRpcRequest, RequestId};
use crate::json_rpc_error::JsonRpcError;
use crate::message_sink::{MessageSink, SharedMessageSink};
use crate::methods::{self, RequestContext};
use crate::protocol_version::ClientProfile;

/// A stream that has nothing to say shows at least this often that it is alive.
const ALIVE: Duration = Duration::from_secs(10);

/// Messages on their way into a stream.
struct SseSink(mpsc::UnboundedSender<String>);

impl MessageSink for SseSink {
    fn send(&self, message: String) {
        // The stream may be gone; then the work is being ended anyway.
        let _ = self.0.send(message);
    }
}

/// A request that is being answered.
pub(super) struct PendingResponse {
    id: RequestId,
    messages: mpsc::UnboundedReceiver<String>,
    work: JoinHandle<Result<Value, JsonRpcError>>,
    _hung_up: CancelOnDisconnect,
}

/// Ends the work when the connection goes.
struct CancelOnDisconnect(CancellationToken);

impl Drop for CancelOnDisconnect {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl PendingResponse {
    /// Begins to answer a request.
    pub(super) fn begin(client: Arc<Client>, profile: ClientProfile, request: JsonRpcRequest) -> Self {
        let (sender, messages) = mpsc::unbounded_channel();
        let outlet: SharedMessageSink = Arc::new(SseSink(sender));
        let hung_up = client.stop.child_token();
        let (id, cancel) = (request.id.clone(), hung_up.clone());
        let work = tokio::spawn(async move { answer(&client, &profile, &request, &outlet, &cancel).await });
        Self { id, messages, work, _hung_up: CancelOnDisconnect(hung_up) }
    }

    /// The response: plain when the answer comes first, a stream when something else does or it takes long.
    pub(super) async fn respond(mut self, has_statuses: bool) -> Response {
        tokio::select! {
            biased;
            Some(message) = self.messages.recv() => self.events(Some(message)),
            answer = &mut self.work => {
                let answer = answer.unwrap_or_else(|_| Err(lost()));
                let status = if has_statuses { status_of(&answer) } else { StatusCode::OK };
                let body = methods::response_message(&self.id, &answer);
                (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
            }
            () = tokio::time::sleep(ALIVE) => self.events(None),
        }
    }

    fn events(self, first: Option<String>) -> Response {
        let first = first.map(|message| event(&message));
        let state = (Some(self), first);
        events(Body::from_stream(stream::unfold(state, |(reply, first)| async move {
            if let Some(first) = first {
                return Some((Ok::<_, Infallible>(first), (reply, None)));
            }
            let mut reply = reply?;
            let (bytes, is_last) = reply.next().await;
            Some((Ok(bytes), ((!is_last).then_some(reply), None)))
        })))
    }

    /// The next event, and whether it is the last.
    async fn next(&mut self) -> (Bytes, bool) {
        tokio::select! {
            biased;
            Some(message) = self.messages.recv() => (event(&message), false),
            answer = &mut self.work => {
                let answer = answer.unwrap_or_else(|_| Err(lost()));
                (event(&methods::response_message(&self.id, &answer)), true)
            }
            () = tokio::time::sleep(ALIVE) => (Bytes::from_static(b": alive\n\n"), false),
        }
    }
}

async fn answer(
    client: &Arc<Client>,
    profile: &ClientProfile,
    request: &JsonRpcRequest,
    outlet: &SharedMessageSink,
    hung_up: &CancellationToken,
) -> Result<Value, JsonRpcError> {
    // Requests that stand alone may come from several places at once; their ids tell them apart only there.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let own = RequestId::server_generated(NEXT.fetch_add(1, Ordering::Relaxed));
    let underway = client.begin(if profile.is_modern() { &own } else { &request.id })?;
    let cancel = &underway.cancel;
    let asking = RequestContext { client, profile, params: &request.params, id: &request.id, outlet, cancel };
    let answering = methods::answer(&asking, &request.method);
    tokio::pin!(answering);
    tokio::select! {
        biased;
        answer = &mut answering => answer,
        () = hung_up.cancelled() => {
            cancel.cancel();
            answering.await
        }
    }
}

fn lost() -> JsonRpcError {
    JsonRpcError::internal("The answer was lost.")
}

fn event(message: &str) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

fn events(body: Body) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache, no-transform")];
    (headers, body).into_response()
}

/// The status that the newer era asks for.
fn status_of(answer: &Result<Value, JsonRpcError>) -> StatusCode {
    match answer.as_ref().err().map(|fault| fault.code) {
        Some(JsonRpcError::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(JsonRpcError::MISSING_CAPABILITY | JsonRpcError::HEADER_MISMATCH | JsonRpcError::UNSUPPORTED_VERSION) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

/// A stream for what belongs to no request of a client.
pub(super) fn aside(client: &Arc<Client>) -> Response {
    let (sender, messages) = mpsc::unbounded_channel();
    *lock(&client.aside) = Some(Arc::new(SseSink(sender)));
    let stop = client.stop.clone();
    events(Body::from_stream(stream::unfold((messages, stop), |(mut messages, stop)| async move {
        let bytes = tokio::select! {
            () = stop.cancelled() => return None,
            message = messages.recv() => event(&message?),
            () = tokio::time::sleep(ALIVE) => Bytes::from_static(b": alive\n\n"),
        };
        Some((Ok::<_, Infallible>(bytes), (messages, stop)))
    })))
}
