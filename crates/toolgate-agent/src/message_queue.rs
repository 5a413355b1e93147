//! Messages to a running agent, which reads them before its next turn: so a person, or the agent that started it, steers
//! it.

use parking_lot::Mutex;

/// Messages that wait to be read.
#[derive(Debug, Default)]
pub struct MessageQueue(Mutex<Vec<String>>);

impl MessageQueue {
    /// Adds a message.
    pub fn put(&self, message: String) {
        self.0.lock().push(message);
    }

    /// Takes all messages that wait.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }

    /// How many messages wait.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
