//! Requests that wait for their answer.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use toolgate_contract::ToolError;

use super::peer::ServerPeer;

/// Requests that wait, by their id.
#[derive(Default)]
pub(super) struct PendingRequests(Mutex<PendingState>);

#[derive(Default)]
struct PendingState {
    last_id: u64,
    waiting: HashMap<u64, oneshot::Sender<Result<Value, ToolError>>>,
    /// Why no answer will come any more.
    closed: Option<ToolError>,
}

/// A request that waits for its answer.
pub(super) struct WaitingRequest {
    pub(super) id: u64,
    peer: Arc<ServerPeer>,
    answer: oneshot::Receiver<Result<Value, ToolError>>,
    is_answered: bool,
}

impl PendingRequests {
    /// Whether answers can still come.
    pub(super) fn is_open(&self) -> bool {
        self.0.lock().closed.is_none()
    }

    /// A new request.
    pub(super) fn begin(&self, peer: Arc<ServerPeer>) -> Result<WaitingRequest, ToolError> {
        let mut state = self.0.lock();
        if let Some(reason) = &state.closed {
            return Err(reason.clone());
        }
        state.last_id += 1;
        let (sender, answer) = oneshot::channel();
        let id = state.last_id;
        state.waiting.insert(id, sender);
        Ok(WaitingRequest { id, peer, answer, is_answered: false })
    }

    /// Takes an answer. One to no request, or a second one, is passed over.
    pub(super) fn answer(&self, id: Option<u64>, message: Value) {
        let waiting = id.and_then(|id| self.0.lock().waiting.remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(Ok(message));
        }
    }

    /// Says why one request gets no answer, unless it has one.
    pub(super) fn fail(&self, id: u64, why: ToolError) {
        let waiting = self.0.lock().waiting.remove(&id);
        if let Some(waiting) = waiting {
            let _ = waiting.send(Err(why));
        }
    }

    /// Says that no answers come any more.
    pub(super) fn close(&self, reason: ToolError) {
        let mut state = self.0.lock();
        state.closed.get_or_insert(reason);
        state.waiting.clear();
    }

    fn reason(&self) -> ToolError {
        self.0.lock().closed.clone().unwrap_or_else(ToolError::cancelled)
    }
}

impl WaitingRequest {
    /// Says that the request was never made, so that there is nothing to cancel.
    pub(super) fn forget(&mut self) {
        self.is_answered = true;
        self.peer.pending.0.lock().waiting.remove(&self.id);
    }

    /// Waits for the answer.
    pub(super) async fn answer(&mut self) -> Result<Value, ToolError> {
        let answer = (&mut self.answer).await;
        self.is_answered = true;
        answer.unwrap_or_else(|_| Err(self.peer.pending.reason()))
    }
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        self.peer.pending.0.lock().waiting.remove(&self.id);
        self.peer.channel.abandon(self.id);
        let (peer, params) =
            (Arc::clone(&self.peer), json!({ "requestId": self.id, "reason": "The call was given up." }));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { peer.notify("notifications/cancelled", params).await });
        }
    }
}
