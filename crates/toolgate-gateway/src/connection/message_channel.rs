//! What messages go through: the standard streams of a program, or HTTP.

use std::sync::Arc;

use serde_json::Value;
use toolgate_contract::{BoxFuture, ChildProcess, ToolError};

use super::http_channel::HttpChannel;
use super::peer::ServerPeer;

/// What messages go through.
pub(super) enum MessageChannel {
    /// The standard streams of a program.
    Program(Arc<dyn ChildProcess>),
    /// Requests to an address.
    Http(HttpChannel),
}

impl MessageChannel {
    /// Sends a message. What comes back is heard by the peer.
    pub(super) fn send<'a>(
        &'a self,
        peer: &'a Arc<ServerPeer>,
        message: &'a Value,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            match self {
                Self::Program(child) => {
                    let mut line = serde_json::to_vec(message).expect("a JSON value has only strings for keys");
                    line.push(b'\n');
                    let _turn = peer.writing.lock().await;
                    let written = child.write(&line).await;
                    written.map_err(|_| peer.fault("doesn't take requests any more"))
                }
                Self::Http(channel) => channel.send(peer, message).await,
            }
        })
    }

    /// Gives up waiting for the answer to a request.
    pub(super) fn abandon(&self, id: u64) {
        if let Self::Http(channel) = self {
            channel.abandon(id);
        }
    }

    /// Ends the conversation without waiting.
    pub(super) fn close(&self) {
        match self {
            Self::Program(child) => child.kill(),
            Self::Http(channel) => channel.close(),
        }
    }

    /// Ends the conversation, and waits until a program is gone.
    pub(super) async fn end(&self) {
        self.close();
        if let Self::Program(child) = self {
            let _ = child.wait().await;
        }
    }
}
