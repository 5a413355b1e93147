//! Connects a running call to its client: where its messages go, what the client can be asked, and what it answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::json_rpc;
use crate::message_sink::SharedMessageSink;
use crate::protocol_version::ClientProfile;

/// A question that becomes part of a result: the client answers with its next request.
pub(crate) struct InputRequest {
    /// Its name among the inputs that the result asks for.
    pub(crate) name: &'static str,
    /// What is asked for: `elicitation/create` or `sampling/createMessage`.
    pub(crate) method: &'static str,
    /// The params of that method.
    pub(crate) params: Value,
    /// Takes the answer.
    pub(crate) answer: oneshot::Sender<Value>,
}

/// The client's side of one call.
pub(crate) struct CallContext {
    pub(crate) profile: ClientProfile,
    /// Answers that came along with the request.
    pub(crate) inputs: Map<String, Value>,
    /// What an extension put into the state of an earlier result.
    pub(crate) state: Option<Value>,
    input_requests: mpsc::UnboundedSender<InputRequest>,
    target: Mutex<MessageTarget>,
    progress_count: AtomicU64,
}

/// Where the messages of a call go. A later request for the same call brings another target.
#[derive(Clone)]
struct MessageTarget {
    sink: SharedMessageSink,
    progress_token: Option<Value>,
}

impl MessageTarget {
    fn of(params: &Map<String, Value>, sink: SharedMessageSink) -> Self {
        let progress_token = params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
        Self { sink, progress_token }
    }
}

impl CallContext {
    /// The context of a request with these params, and the receiver of questions that become part of a result.
    pub(crate) fn new(
        profile: ClientProfile,
        params: &Map<String, Value>,
        state: Option<Value>,
        sink: SharedMessageSink,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<InputRequest>) {
        let (input_requests, requested) = mpsc::unbounded_channel();
        let inputs = params.get("inputResponses").and_then(Value::as_object).cloned().unwrap_or_default();
        let target = Mutex::new(MessageTarget::of(params, sink));
        let context = Self { profile, inputs, state, input_requests, target, progress_count: AtomicU64::new(0) };
        (Arc::new(context), requested)
    }

    /// Sends messages to the sink of a later request from now on.
    pub(crate) fn redirect(&self, params: &Map<String, Value>, sink: SharedMessageSink) {
        *self.target.lock() = MessageTarget::of(params, sink);
    }

    pub(crate) fn sink(&self) -> SharedMessageSink {
        Arc::clone(&self.target.lock().sink)
    }

    /// Whether the client sent a progress token.
    pub(crate) fn wants_progress(&self) -> bool {
        self.target.lock().progress_token.is_some()
    }

    /// Reports progress to a client that sent a progress token.
    pub(crate) fn progress(&self, message: &str) {
        let MessageTarget { sink, progress_token } = self.target.lock().clone();
        let Some(token) = progress_token else { return };
        let progress = self.progress_count.fetch_add(1, Ordering::Relaxed) + 1;
        let params = json!({ "progressToken": token, "progress": progress, "message": message });
        sink.send(json_rpc::notification("notifications/progress", params));
    }

    /// Puts a question into the call's result. The answer comes with the client's next request, if there is one.
    pub(crate) fn request_input(
        &self,
        name: &'static str,
        method: &'static str,
        params: Value,
    ) -> oneshot::Receiver<Value> {
        let (answer, answered) = oneshot::channel();
        // If nobody takes questions any longer, the sender is dropped and the receiver reports that.
        let _ = self.input_requests.send(InputRequest { name, method, params, answer });
        answered
    }
}
