//! What an agent is told while it works. It reads that before its next turn.

use std::sync::{Mutex, PoisonError};

/// Messages that wait to be read.
#[derive(Debug, Default)]
pub(crate) struct MessageQueue(Mutex<Vec<String>>);

impl MessageQueue {
    pub(crate) fn put(&self, message: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
