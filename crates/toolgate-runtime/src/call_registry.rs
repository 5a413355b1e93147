//! The running calls of one session, whichever front end they came through: found by id, limited in number, and waited
//! for when the session ends.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use toolgate_contract::{CancellationToken, counted};

/// The running calls of a session.
#[derive(Debug)]
pub struct CallRegistry {
    max: usize,
    calls: Mutex<HashMap<String, CancellationToken>>,
    count: watch::Sender<usize>,
}

/// Why a call can't be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallRegistryError {
    /// A call of that id runs.
    #[error("A call with that `tool_call_id` is already running.")]
    Duplicate,
    /// Too many calls run.
    #[error("This session has {} running, which is the limit.", counted(*max, "call"))]
    Full {
        /// The limit.
        max: usize,
    },
}

impl CallRegistry {
    /// A registry for at most so many calls at a time.
    pub fn new(max: usize) -> Self {
        Self { max, calls: Mutex::default(), count: watch::Sender::new(0) }
    }

    /// Registers a call, until the guard is dropped.
    pub fn register(
        self: &Arc<Self>,
        call: &str,
        cancel: &CancellationToken,
    ) -> Result<RegisteredCall, CallRegistryError> {
        let mut calls = self.calls.lock();
        if calls.contains_key(call) {
            return Err(CallRegistryError::Duplicate);
        }
        if calls.len() >= self.max {
            return Err(CallRegistryError::Full { max: self.max });
        }
        calls.insert(call.to_owned(), cancel.clone());
        self.count.send_replace(calls.len());
        Ok(RegisteredCall { registry: Arc::clone(self), call: call.to_owned() })
    }

    /// Cancels a call; false when no call with that id runs.
    pub fn cancel(&self, call: &str) -> bool {
        self.calls.lock().get(call).map(CancellationToken::cancel).is_some()
    }

    /// Whether a call with that id runs.
    pub fn contains(&self, call: &str) -> bool {
        self.calls.lock().contains_key(call)
    }

    /// How many calls run.
    pub fn len(&self) -> usize {
        self.calls.lock().len()
    }

    /// Whether no call runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until no call runs.
    pub async fn idle(&self) {
        // The sender is a field of this registry, so this can't fail.
        let _ = self.count.subscribe().wait_for(|&count| count == 0).await;
    }
}

/// A call that is registered; dropping this removes it.
#[derive(Debug)]
pub struct RegisteredCall {
    registry: Arc<CallRegistry>,
    call: String,
}

impl Drop for RegisteredCall {
    fn drop(&mut self) {
        let mut calls = self.registry.calls.lock();
        calls.remove(&self.call);
        self.registry.count.send_replace(calls.len());
    }
}
