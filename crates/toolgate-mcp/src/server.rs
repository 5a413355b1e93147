//! One server for all clients: what they share, and how they are told that a list changed.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, LazyLock, Once};

use serde_json::{Value, json};
use tokio::sync::broadcast;
use toolgate_contract::CancellationToken;
use toolgate_dialects::DialectSet;

use crate::extension::ServerExtension;
use crate::protocol_version::ClientProfile;
use crate::request_state::StateKey;
use toolgate_runtime::Ceiling;
use toolgate_workspace::Workspace;

/// How many changes are kept for a slow listener.
const BACKLOG: usize = 16;

/// Limits and modes of a server.
#[derive(Debug, Clone)]
pub struct McpOptions {
    /// Entries in one page of a list.
    pub page_size: usize,
    /// The largest message, in bytes.
    pub max_message_bytes: usize,
    /// Requests of one client that may run at a time.
    pub max_requests: usize,
    /// Sets of tools that every client is held to.
    pub ceilings: Vec<Ceiling>,
    /// The dialects that every client is spoken to in, whatever it calls itself.
    pub dialects: Option<DialectSet>,
    /// Otherwise: the dialects for clients that announce themselves by these names. All others get the native tools.
    pub client_dialects: BTreeMap<String, DialectSet>,
    /// Whether an outer server has checked `Host`, `Origin` and token, and says as whom a request was authenticated.
    pub is_preauthenticated: bool,
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            page_size: 100,
            max_message_bytes: 16 * 1024 * 1024,
            max_requests: 64,
            ceilings: Vec::new(),
            dialects: None,
            client_dialects: BTreeMap::new(),
            is_preauthenticated: false,
        }
    }
}

impl McpOptions {
    /// The dialects for a client of this name.
    pub(crate) fn dialects_for(&self, client: &str) -> &DialectSet {
        static NATIVE: LazyLock<DialectSet> = LazyLock::new(DialectSet::default);
        self.dialects.as_ref().or_else(|| self.client_dialects.get(client)).unwrap_or(&NATIVE)
    }
}

/// A list whose changes are announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`, and what other servers have to read.
    Resources,
}

/// Announces that a list changed, to all clients or to one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListChanged {
    pub(crate) changed: ListKind,
    only: Option<u64>,
}

impl ListChanged {
    /// Whether the client of this number is told.
    pub(crate) fn is_for(self, client: u64) -> bool {
        self.only.is_none_or(|only| only == client)
    }
}

/// Serves MCP to any number of clients.
pub struct McpServer {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) options: McpOptions,
    pub(crate) key: StateKey,
    pub(crate) changes: broadcast::Sender<ListChanged>,
    /// How many clients have connected so far.
    pub(crate) client_count: AtomicU64,
    pub(crate) stop: CancellationToken,
    pub(crate) extension: Option<Arc<dyn ServerExtension>>,
    /// Set when the first client has come.
    pub(crate) follows_servers: Once,
}

impl McpServer {
    /// A server for this workspace.
    pub fn new(workspace: Arc<Workspace>, options: McpOptions) -> std::io::Result<Arc<Self>> {
        Self::build(workspace, options, None)
    }

    /// A server that an extension adds methods and results to.
    pub fn with_extension(
        workspace: Arc<Workspace>,
        options: McpOptions,
        extension: Arc<dyn ServerExtension>,
    ) -> std::io::Result<Arc<Self>> {
        Self::build(workspace, options, Some(extension))
    }

    fn build(
        workspace: Arc<Workspace>,
        options: McpOptions,
        extension: Option<Arc<dyn ServerExtension>>,
    ) -> std::io::Result<Arc<Self>> {
        let (changes, _) = broadcast::channel(BACKLOG);
        Ok(Arc::new(Self {
            workspace,
            options,
            key: StateKey::fresh()?,
            changes,
            client_count: AtomicU64::new(0),
            stop: CancellationToken::new(),
            extension,
            follows_servers: Once::new(),
        }))
    }

    /// Tells every client that the list of tools changed.
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
        // It is no error if nobody listens.
        let _ = self.changes.send(ListChanged { changed, only: None });
    }

    /// Tells the client of this number.
    pub(crate) fn announce_to(&self, client: u64, changed: ListKind) {
        let _ = self.changes.send(ListChanged { changed, only: Some(client) });
    }

    /// The server's name and version.
    pub(crate) fn identity(&self) -> Value {
        json!({
            "name": "toolgate",
            "title": "Toolgate",
            "version": env!("CARGO_PKG_VERSION"),
        })
    }

    /// What the server offers a client of this profile.
    pub(crate) fn capabilities(&self, profile: &ClientProfile) -> Value {
        let mut can = json!({
            "tools": { "listChanged": true },
            "resources": { "listChanged": true },
        });
        if !profile.is_stateless() {
            can["logging"] = json!({});
        }
        if let (Some(extension), Some(can)) = (&self.extension, can.as_object_mut()) {
            extension.add_capabilities(can, profile.is_stateless());
        }
        can
    }

    /// How a model should use the tools.
    pub(crate) fn instructions(&self) -> String {
        let warning = self.workspace.warning().map(|warning| format!(" WARNING: {warning}")).unwrap_or_default();
        format!(
            "These tools read, search and change files and run confined commands in {}; paths are relative to it, and any \
             change can be undone. Every call is judged by policy and recorded: an error says what to do next, and output \
             that was cut can be read back with the tool `artifact`.{warning}",
            self.workspace.directory.display()
        )
    }
}
