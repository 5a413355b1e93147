//! Calls that wait between two requests: the first was answered with a question, the second brings the answer. Each
//! suspended call can be resumed once.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use toolgate_contract::{BoxFuture, CancellationToken};
use toolgate_workspace::DialectReply;

use crate::call_context::{CallContext, InputRequest};

/// How long a call waits for an answer.
pub(crate) const ANSWER_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);
/// The most calls of one client that are suspended at a time.
const MAX_SUSPENDED: usize = 64;

/// A running call, and what the client's next request needs to resume it.
pub(crate) struct InFlightCall {
    /// The call's id.
    pub(crate) id: String,
    /// Comes when the call ends; none if it was lost.
    pub(crate) end: BoxFuture<'static, Option<DialectReply>>,
    /// Questions that become part of a result.
    pub(crate) input_requests: mpsc::UnboundedReceiver<InputRequest>,
    pub(crate) context: Arc<CallContext>,
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

/// The suspended calls of one client.
#[derive(Default)]
pub(crate) struct SuspendedCalls(Mutex<HashMap<String, SuspendedCall>>);

impl SuspendedCalls {
    /// Keeps a call until its answer comes. False if too many are suspended already: then the call is cancelled.
    pub(crate) fn keep(&self, id: String, running: InFlightCall, asked: InputRequest, now: Timestamp) -> bool {
        let mut suspended = self.0.lock();
        suspended.retain(|_, call| now < call.expires);
        if suspended.len() >= MAX_SUSPENDED {
            running.cancel.cancel();
            return false;
        }
        let InputRequest { name, answer, .. } = asked;
        suspended.insert(id, SuspendedCall { running, name, answer, expires: now + ANSWER_TIMEOUT });
        true
    }

    /// Takes a call out once, unless it has expired.
    pub(crate) fn take(&self, id: &str, now: Timestamp) -> Option<SuspendedCall> {
        self.0.lock().remove(id).filter(|suspended| now < suspended.expires)
    }

    /// Drops all of them.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}
