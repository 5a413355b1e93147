//! Calls that wait between two requests: the first was answered with a question, the second brings the answer. Each wait
//! can be ended once.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use toolgate_contract::{BoxFuture, CancellationToken, Reply};

use crate::call_context::{CallContext, InputRequest};
use crate::client::lock;

/// How long an answer is waited for.
pub(crate) const PATIENCE: SignedDuration = SignedDuration::from_mins(10);
/// The most calls of one client that wait at a time.
const MOST_WAITING: usize = 64;

/// A call on its way, and what the client's next request needs to go on with it.
pub(crate) struct InFlightCall {
    /// Comes when the call ends; none if it was lost.
    pub(crate) reply: BoxFuture<'static, Option<Reply>>,
    /// Questions that become part of a result.
    pub(crate) asks: mpsc::UnboundedReceiver<InputRequest>,
    pub(crate) link: Arc<CallContext>,
    /// Ends the call.
    pub(crate) cancel: CancellationToken,
}

/// A call that waits, and where its answer goes.
pub(crate) struct SuspendedCall {
    pub(crate) running: InFlightCall,
    /// The name of the question.
    pub(crate) name: &'static str,
    pub(crate) answer: oneshot::Sender<Value>,
    expires: Timestamp,
}

/// Calls of one client that wait.
#[derive(Default)]
pub(crate) struct SuspendedCalls(Mutex<HashMap<String, SuspendedCall>>);

impl SuspendedCalls {
    /// Keeps a call until its answer comes. False if too many wait already: then the call is ended.
    pub(crate) fn keep(&self, id: String, running: InFlightCall, asked: InputRequest, now: Timestamp) -> bool {
        let mut waiting = lock(&self.0);
        waiting.retain(|_, call| now < call.expires);
        if waiting.len() >= MOST_WAITING {
            running.cancel.cancel();
            return false;
        }
        let InputRequest { name, answer, .. } = asked;
        waiting.insert(id, SuspendedCall { running, name, answer, expires: now + PATIENCE });
        true
    }

    /// Takes a call up again, once, while it may be.
    pub(crate) fn take(&self, id: &str, now: Timestamp) -> Option<SuspendedCall> {
        lock(&self.0).remove(id).filter(|waiting| now < waiting.expires)
    }

    /// Lets go of all of them.
    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}
