//! What ties a running call to its client: where its messages go, what the client can be asked, and what it answered.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::client::lock;
use crate::json_rpc;
use crate::json_rpc_error::JsonRpcError;
use crate::message_sink::SharedMessageSink;
use crate::protocol_version::ClientProfile;

/// A question that becomes part of a result: the client answers with its next request.
pub(crate) struct InputRequest {
    /// Its name among the inputs that the result asks for.
    pub(crate) name: &'static str,
    /// The question, as the params of `elicitation/create`.
    pub(crate) params: Value,
    /// Takes the answer.
    pub(crate) answer: oneshot::Sender<Value>,
}

/// What ties a call to its client.
pub(crate) struct CallContext {
    pub(crate) profile: ClientProfile,
    /// Answers that came along with the request.
    pub(crate) inputs: Map<String, Value>,
    /// What the call's tool said in an earlier round, as its state told.
    pub(crate) state: Option<Value>,
    /// What is answered instead of the call's own result.
    pub(crate) instead: Mutex<Option<Result<Value, JsonRpcError>>>,
    asks: mpsc::UnboundedSender<InputRequest>,
    way: Mutex<MessageTarget>,
    steps: AtomicU64,
}

/// Where the messages of a call go. A later request for the same call brings another one.
#[derive(Clone)]
struct MessageTarget {
    outlet: SharedMessageSink,
    progress: Option<Value>,
}

impl CallContext {
    /// A link for a request with these params, and where questions of the newer kind come out.
    pub(crate) fn new(
        profile: ClientProfile,
        params: &Map<String, Value>,
        state: Option<Value>,
        outlet: SharedMessageSink,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<InputRequest>) {
        let (asks, asked) = mpsc::unbounded_channel();
        let inputs = params.get("inputResponses").and_then(Value::as_object).cloned().unwrap_or_default();
        let way = Mutex::new(MessageTarget { outlet, progress: progress_token(params) });
        let link = Self { profile, inputs, state, instead: Mutex::default(), asks, way, steps: AtomicU64::new(0) };
        (Arc::new(link), asked)
    }

    /// Messages go this way from now on.
    pub(crate) fn redirect(&self, params: &Map<String, Value>, outlet: SharedMessageSink) {
        *lock(&self.way) = MessageTarget { outlet, progress: progress_token(params) };
    }

    pub(crate) fn outlet(&self) -> SharedMessageSink {
        Arc::clone(&lock(&self.way).outlet)
    }

    /// Whether the client asked to hear of progress.
    pub(crate) fn wants_progress(&self) -> bool {
        lock(&self.way).progress.is_some()
    }

    /// Tells the client that the call goes on, if it asked to hear so.
    pub(crate) fn progress(&self, words: &str) {
        let MessageTarget { outlet, progress } = lock(&self.way).clone();
        let Some(token) = progress else { return };
        let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        let params = json!({ "progressToken": token, "progress": step, "message": words });
        outlet.send(json_rpc::notification("notifications/progress", params));
    }

    /// Puts a question into the call's result. The answer comes with the client's next request, if it comes.
    pub(crate) fn put(&self, name: &'static str, params: Value) -> oneshot::Receiver<Value> {
        let (answer, answered) = oneshot::channel();
        // If nobody takes questions any longer, the answer's other end is gone, which is an answer too.
        let _ = self.asks.send(InputRequest { name, params, answer });
        answered
    }
}

fn progress_token(params: &Map<String, Value>) -> Option<Value> {
    params.get("_meta")?.get("progressToken").cloned()
}
