//! The clients of the endpoint: those with a session by its id, the others by principal and name. Idle clients are
//! evicted when new ones connect.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use parking_lot::Mutex;

use super::{EarlyResponse, SESSION, headers, plain};
use crate::client::Client;
use crate::mcp_session::ClientIdentity;
use crate::server::McpServer;
use crate::subscriptions;

/// The most clients at a time.
const MAX_CLIENTS: usize = 1_000;
/// A client without a request for this long may be evicted.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The clients of one server.
pub(super) struct ClientRegistry {
    pub(super) server: Arc<McpServer>,
    sessions: Mutex<HashMap<String, ClientEntry>>,
    stateless: Mutex<HashMap<ClientIdentity, ClientEntry>>,
}

/// A client, and when its last request came.
struct ClientEntry {
    client: Arc<Client>,
    seen: Instant,
}

impl ClientRegistry {
    pub(super) fn new(server: Arc<McpServer>) -> Self {
        Self { server, sessions: Mutex::default(), stateless: Mutex::default() }
    }

    /// Registers a client that begins with a handshake, under a new session id.
    pub(super) fn admit(&self, principal: String) -> (String, Arc<Client>) {
        let id = self.server.workspace.clock.id().simple().to_string();
        let client = self.client(ClientIdentity { principal, name: String::new() });
        let mut sessions = self.sessions.lock();
        evict_idle(&mut sessions);
        sessions.insert(id.clone(), ClientEntry { client: Arc::clone(&client), seen: Instant::now() });
        (id, client)
    }

    /// The client of a session; none without one. A session belongs to the principal that opened it.
    pub(super) fn session(&self, principal: &str, headers: &HeaderMap) -> Result<Option<Arc<Client>>, EarlyResponse> {
        let Some(id) = headers::text(headers, SESSION) else { return Ok(None) };
        let mut sessions = self.sessions.lock();
        let entry = sessions.get_mut(id).filter(|entry| entry.client.identity.principal == principal);
        let entry = entry.ok_or_else(|| plain(StatusCode::NOT_FOUND, "No such session; send `initialize` again."))?;
        entry.seen = Instant::now();
        Ok(Some(Arc::clone(&entry.client)))
    }

    /// The client behind requests without a session.
    pub(super) fn stateless_client(&self, identity: ClientIdentity) -> Arc<Client> {
        let mut stateless = self.stateless.lock();
        if !stateless.contains_key(&identity) {
            evict_idle(&mut stateless);
        }
        let new = || ClientEntry { client: self.client(identity.clone()), seen: Instant::now() };
        let entry = stateless.entry(identity.clone()).or_insert_with(new);
        entry.seen = Instant::now();
        Arc::clone(&entry.client)
    }

    /// Removes a session.
    pub(super) fn remove_session(&self, headers: &HeaderMap) {
        if let Some(id) = headers::text(headers, SESSION) {
            self.sessions.lock().remove(id);
        }
    }

    fn client(&self, identity: ClientIdentity) -> Arc<Client> {
        let client = Client::new(Arc::clone(&self.server), identity);
        subscriptions::forward(&client);
        client
    }
}

/// Disconnects clients that were idle for too long, and the one that was idle longest if there are too many.
fn evict_idle<Key: Clone + Eq + Hash>(entries: &mut HashMap<Key, ClientEntry>) {
    let idle = |entry: &ClientEntry| !entry.client.is_busy();
    let mut gone: Vec<Key> = entries
        .iter()
        .filter(|(_, entry)| idle(entry) && entry.seen.elapsed() > IDLE_TIMEOUT)
        .map(|(key, _)| key.clone())
        .collect();
    if entries.len() - gone.len() >= MAX_CLIENTS {
        let oldest = entries.iter().filter(|(_, entry)| idle(entry)).min_by_key(|(_, entry)| entry.seen);
        gone.extend(oldest.map(|(key, _)| key.clone()));
    }
    for key in gone {
        if let Some(entry) = entries.remove(&key) {
            tokio::spawn(async move { entry.client.disconnect().await });
        }
    }
}
