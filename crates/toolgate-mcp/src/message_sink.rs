//! Where messages for a client go: an output stream, or the event stream that answers one of its requests.

use std::sync::Arc;

/// Takes messages for a client, in order.
pub(crate) trait MessageSink: Send + Sync {
    /// Sends one message and never waits; messages for a client that has disconnected are dropped.
    fn send(&self, message: String);
}

/// A sink that several calls share.
pub(crate) type SharedMessageSink = Arc<dyn MessageSink>;
