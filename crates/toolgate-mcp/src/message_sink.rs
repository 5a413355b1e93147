//! Where messages for a client go: a pipe, or the stream that answers one of its requests.

use std::sync::Arc;

/// Takes messages for a client, in order.
pub(crate) trait MessageSink: Send + Sync {
    /// Sends one message. A client that is gone gets nothing, and nobody waits for it.
    fn send(&self, message: String);
}

/// An outlet that several can share.
pub(crate) type SharedMessageSink = Arc<dyn MessageSink>;
