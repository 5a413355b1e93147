//! Messages to a running agent, which reads them before its next turn.

use parking_lot::Mutex;

/// Messages that wait to be read.
#[derive(Debug, Default)]
pub(crate) struct MessageQueue(Mutex<Vec<String>>);

impl MessageQueue {
    pub(crate) fn put(&self, message: String) {
        self.0.lock().push(message);
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}
