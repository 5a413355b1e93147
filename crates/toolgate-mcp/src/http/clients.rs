//! Who is inside: clients with a session by its id, the others by principal and name. A client that hasn't been seen for
//! long is let go when others come.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};

use super::{EarlyResponse, SESSION, headers, plain};
use crate::backend::ClientIdentity;
use crate::client::{Client, lock};
use crate::server::McpServer;
use crate::subscriptions;

/// The most clients at a time.
const MOST_CLIENTS: usize = 1_000;
/// A client that hasn't been seen for this long may be let go.
const LONG: Duration = Duration::from_secs(60 * 60);

/// Keeps the clients of one server.
pub(super) struct ClientRegistry {
    pub(super) server: Arc<McpServer>,
    sessions: Mutex<HashMap<String, ClientEntry>>,
    visitors: Mutex<HashMap<ClientIdentity, ClientEntry>>,
}

/// A client, and when it was seen last.
struct ClientEntry {
    client: Arc<Client>,
    seen: Instant,
}

impl ClientRegistry {
    pub(super) fn new(server: Arc<McpServer>) -> Self {
        Self { server, sessions: Mutex::default(), visitors: Mutex::default() }
    }

    /// Lets in a client that brings a handshake, and gives it a session.
    pub(super) fn admit(&self, principal: String) -> (String, Arc<Client>) {
        let id = self.server.host.clock().id().simple().to_string();
        let client = self.client(ClientIdentity { principal, name: String::new() });
        let mut sessions = lock(&self.sessions);
        evict_idle(&mut sessions);
        sessions.insert(id.clone(), ClientEntry { client: Arc::clone(&client), seen: Instant::now() });
        (id, client)
    }

    /// The client of a session; none without one. A session belongs to the principal that began it.
    pub(super) fn session(&self, principal: &str, headers: &HeaderMap) -> Result<Option<Arc<Client>>, EarlyResponse> {
        let Some(id) = headers::text(headers, SESSION) else { return Ok(None) };
        let mut sessions = lock(&self.sessions);
        let seat = sessions.get_mut(id).filter(|seat| seat.client.visitor.principal == principal);
        let seat = seat.ok_or_else(|| plain(StatusCode::NOT_FOUND, "There is no such session; initialize anew."))?;
        seat.seen = Instant::now();
        Ok(Some(Arc::clone(&seat.client)))
    }

    /// The client that stands behind requests without a session.
    pub(super) fn visitor(&self, visitor: ClientIdentity) -> Arc<Client> {
        let mut visitors = lock(&self.visitors);
        if !visitors.contains_key(&visitor) {
            evict_idle(&mut visitors);
        }
        let new = || ClientEntry { client: self.client(visitor.clone()), seen: Instant::now() };
        let seat = visitors.entry(visitor.clone()).or_insert_with(new);
        seat.seen = Instant::now();
        Arc::clone(&seat.client)
    }

    /// Forgets a session.
    pub(super) fn remove_session(&self, headers: &HeaderMap) {
        if let Some(id) = headers::text(headers, SESSION) {
            lock(&self.sessions).remove(id);
        }
    }

    fn client(&self, visitor: ClientIdentity) -> Arc<Client> {
        let client = Client::new(Arc::clone(&self.server), visitor);
        subscriptions::forward(&client);
        client
    }
}

/// Lets go of clients that were not seen for long, and of the one that was not for longest if there are too many.
fn evict_idle<Key: Clone + Eq + Hash>(seats: &mut HashMap<Key, ClientEntry>) {
    let idle = |seat: &ClientEntry| !seat.client.is_busy();
    let mut gone: Vec<Key> =
        seats.iter().filter(|(_, seat)| idle(seat) && seat.seen.elapsed() > LONG).map(|(key, _)| key.clone()).collect();
    if seats.len() - gone.len() >= MOST_CLIENTS {
        let oldest = seats.iter().filter(|(_, seat)| idle(seat)).min_by_key(|(_, seat)| seat.seen);
        gone.extend(oldest.map(|(key, _)| key.clone()));
    }
    for key in gone {
        if let Some(seat) = seats.remove(&key) {
            tokio::spawn(async move { seat.client.leave().await });
        }
    }
}
