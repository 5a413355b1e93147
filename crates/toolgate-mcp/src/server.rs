//! One server for all clients: what they share, and how it tells them that something changed.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde_json::{Value, json};
use tokio::sync::broadcast;
use toolgate_contract::CancellationToken;

use crate::backend::ServerBackend;
use crate::protocol_version::ClientProfile;
use crate::request_state::StateKey;

/// How many changes may wait for a slow listener.
const BACKLOG: usize = 16;

/// What can be set.
#[derive(Debug, Clone)]
pub struct McpOptions {
    /// Entries in one page of a list.
    pub page: usize,
    /// Bytes in one message.
    pub most_bytes: usize,
    /// Requests of one client that may be under way at a time.
    pub most_underway: usize,
    /// Whether somebody else has checked `ServerBackend`, `Origin` and token before a request comes here, and says whose it is.
    pub is_behind_door: bool,
    /// Offers what the public conformance suite asks for, beside the tools.
    pub conformance: bool,
}

impl Default for McpOptions {
    fn default() -> Self {
        Self { page: 100, most_bytes: 16 * 1024 * 1024, most_underway: 64, is_behind_door: false, conformance: false }
    }
}

/// A list that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
}

/// The news that a list changed, for all clients or for one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListChanged {
    pub(crate) changed: ListKind,
    only: Option<u64>,
}

impl ListChanged {
    /// Whether the client of this number should hear of it.
    pub(crate) fn is_for(self, client: u64) -> bool {
        self.only.is_none_or(|only| only == client)
    }
}

/// Serves MCP to any number of clients.
pub struct McpServer {
    pub(crate) host: Arc<dyn ServerBackend>,
    pub(crate) options: McpOptions,
    pub(crate) key: StateKey,
    pub(crate) changes: broadcast::Sender<ListChanged>,
    /// How many clients there have been.
    pub(crate) visitors: AtomicU64,
    pub(crate) stop: CancellationToken,
}

impl McpServer {
    /// A server for this host.
    pub fn new(host: Arc<dyn ServerBackend>, options: McpOptions) -> std::io::Result<Arc<Self>> {
        let (changes, _) = broadcast::channel(BACKLOG);
        Ok(Arc::new(Self {
            host,
            options,
            key: StateKey::fresh()?,
            changes,
            visitors: AtomicU64::new(0),
            stop: CancellationToken::new(),
        }))
    }

    /// Tells every client that the list of tools is another one now.
    pub fn tools_changed(&self) {
        self.announce(ListKind::Tools);
    }

    /// Ends every call and every stream.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the server is stopped.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        self.stop.clone().cancelled_owned()
    }

    pub(crate) fn announce(&self, changed: ListKind) {
        // Nobody may be listening.
        let _ = self.changes.send(ListChanged { changed, only: None });
    }

    /// Tells one client, whose number this is.
    pub(crate) fn announce_to(&self, client: u64, changed: ListKind) {
        let _ = self.changes.send(ListChanged { changed, only: Some(client) });
    }

    /// Who answers.
    pub(crate) fn identity(&self) -> Value {
        json!({
            "name": "toolgate",
            "title": "Toolgate",
            "version": env!("CARGO_PKG_VERSION"),
        })
    }

    /// What can be asked for.
    pub(crate) fn capabilities(&self, profile: &ClientProfile) -> Value {
        let mut can = json!({
            "tools": { "listChanged": true },
            "resources": {},
        });
        if !profile.is_modern() {
            can["logging"] = json!({});
        }
        if self.options.conformance {
            can["prompts"] = json!({ "listChanged": true });
            can["completions"] = json!({});
            if !profile.is_modern() {
                can["resources"] = json!({ "subscribe": true });
            }
        }
        can
    }

    /// How a model should use what is here.
    pub(crate) fn instructions(&self) -> String {
        format!(
            "Tools work in {}. Paths are relative to it. Every call is judged by policy and recorded; an error says what \
             to do next. Output that was cut can be read back with the tool `artifact`.",
            self.host.workspace().display()
        )
    }
}
