//! The clients of the endpoint: those with a session by its id, the others by principal and name. Idle clients are
//! evicted when new ones connect.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use toolgate_runtime::Principal;

use super::{EarlyResponse, SESSION, headers, plain, recorded};
use crate::client::Client;
use crate::mcp_session::ClientIdentity;
use crate::server::McpServer;
use crate::subscriptions;

/// The most clients at a time.
const MAX_CLIENTS: usize = 1_000;
/// The most clients at a time with the token of one session.
const MAX_CLIENTS_OF_SESSION: usize = 64;
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
    pub(super) fn admit(&self, principal: &Principal) -> Result<(String, Arc<Client>), EarlyResponse> {
        let id = self.server.workspace.clock.id().simple().to_string();
        let mut sessions = self.sessions.lock();
        make_room(&mut sessions, principal)?;
        let client = self.client(principal, "");
        sessions.insert(id.clone(), ClientEntry { client: Arc::clone(&client), seen: Instant::now() });
        Ok((id, client))
    }

    /// The client of a session; none without one. A session belongs to the principal that opened it.
    pub(super) fn session(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<Client>>, EarlyResponse> {
        let Some(id) = headers::text(headers, SESSION) else { return Ok(None) };
        let mut sessions = self.sessions.lock();
        let entry = sessions.get_mut(id).filter(|entry| entry.client.identity.principal == principal.name);
        let entry = entry.ok_or_else(|| {
            let refusal = plain(StatusCode::NOT_FOUND, "No such session; send `initialize` again.");
            recorded(refusal, "unknown_session", "a session that isn't the client's own, or is over".to_owned())
        })?;
        entry.seen = Instant::now();
        Ok(Some(Arc::clone(&entry.client)))
    }

    /// The client behind requests without a session, by the name that it gives.
    pub(super) fn stateless_client(&self, principal: &Principal, name: &str) -> Result<Arc<Client>, EarlyResponse> {
        let identity = ClientIdentity { principal: principal.name.clone(), name: name.to_owned() };
        let mut stateless = self.stateless.lock();
        if let Some(entry) = stateless.get_mut(&identity) {
            entry.seen = Instant::now();
            return Ok(Arc::clone(&entry.client));
        }
        make_room(&mut stateless, principal)?;
        let client = self.client(principal, name);
        stateless.insert(identity, ClientEntry { client: Arc::clone(&client), seen: Instant::now() });
        Ok(client)
    }

    /// Removes a session.
    pub(super) fn remove_session(&self, headers: &HeaderMap) {
        if let Some(id) = headers::text(headers, SESSION) {
            self.sessions.lock().remove(id);
        }
    }

    fn client(&self, principal: &Principal, name: &str) -> Arc<Client> {
        let identity = ClientIdentity { principal: principal.name.clone(), name: name.to_owned() };
        let client = Client::new(Arc::clone(&self.server), identity, principal.session.clone());
        subscriptions::forward(&client);
        if principal.session.is_some() {
            let ending = Arc::clone(&client);
            tokio::spawn(async move {
                ending.stop.cancelled().await;
                ending.disconnect().await;
            });
        }
        client
    }
}

/// Disconnects clients that were idle for too long, and the one that was idle longest if there are too many. A session has
/// a limit of its own, so that it never pushes out the clients of others.
fn make_room<Key: Clone + Eq + Hash>(
    entries: &mut HashMap<Key, ClientEntry>,
    principal: &Principal,
) -> Result<(), EarlyResponse> {
    let is_idle = |entry: &ClientEntry| !entry.client.is_busy();
    let is_over =
        |entry: &ClientEntry| entry.client.stop.is_cancelled() || is_idle(entry) && entry.seen.elapsed() > IDLE_TIMEOUT;
    let over: Vec<Key> = entries.iter().filter(|(_, entry)| is_over(entry)).map(|(key, _)| key.clone()).collect();
    over.iter().for_each(|key| disconnect(entries, key));
    let counts = |entry: &ClientEntry| principal.session.is_none() || entry.client.identity.principal == principal.name;
    let max = if principal.session.is_some() { MAX_CLIENTS_OF_SESSION } else { MAX_CLIENTS };
    if entries.values().filter(|entry| counts(entry)).count() < max {
        return Ok(());
    }
    let idle = entries.iter().filter(|(_, entry)| counts(entry) && is_idle(entry));
    let oldest = idle.min_by_key(|(_, entry)| entry.seen).map(|(key, _)| key.clone());
    match (oldest, principal.session.is_some()) {
        (Some(key), _) => disconnect(entries, &key),
        (None, true) => return Err(plain(StatusCode::TOO_MANY_REQUESTS, "This session has too many clients.")),
        // The owner is limited by connections alone.
        (None, false) => {}
    }
    Ok(())
}

fn disconnect<Key: Eq + Hash>(entries: &mut HashMap<Key, ClientEntry>, key: &Key) {
    if let Some(entry) = entries.remove(key) {
        tokio::spawn(async move { entry.client.disconnect().await });
    }
}
