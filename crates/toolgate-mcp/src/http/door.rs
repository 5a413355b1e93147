//! Who is inside: clients with a session by its id, the others by principal and name. A client that hasn't been seen for
//! long is let go when others come.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};

use super::{Refusal, SESSION, guard, plain};
use crate::client::{Client, lock};
use crate::host::Visitor;
use crate::listen;
use crate::server::Server;

/// The most clients at a time.
const MOST_CLIENTS: usize = 1_000;
/// A client that hasn't been seen for this long may be let go.
const LONG: Duration = Duration::from_secs(60 * 60);

/// Keeps the clients of one server.
pub(super) struct Door {
    pub(super) server: Arc<Server>,
    sessions: Mutex<HashMap<String, Seat>>,
    visitors: Mutex<HashMap<Visitor, Seat>>,
}

/// A client, and when it was seen last.
struct Seat {
    client: Arc<Client>,
    seen: Instant,
}

impl Door {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self { server, sessions: Mutex::default(), visitors: Mutex::default() }
    }

    /// Lets in a client that brings a handshake, and gives it a session.
    pub(super) fn admit(&self, principal: String) -> (String, Arc<Client>) {
        let id = self.server.host.clock().id().simple().to_string();
        let client = self.client(Visitor { principal, name: String::new() });
        let mut sessions = lock(&self.sessions);
        make_room(&mut sessions);
        sessions.insert(id.clone(), Seat { client: Arc::clone(&client), seen: Instant::now() });
        (id, client)
    }

    /// The client of a session; none without one. A session belongs to the principal that began it.
    pub(super) fn session(&self, principal: &str, headers: &HeaderMap) -> Result<Option<Arc<Client>>, Refusal> {
        let Some(id) = guard::text(headers, SESSION) else { return Ok(None) };
        let mut sessions = lock(&self.sessions);
        let seat = sessions.get_mut(id).filter(|seat| seat.client.visitor.principal == principal);
        let seat = seat.ok_or_else(|| plain(StatusCode::NOT_FOUND, "There is no such session; initialize anew."))?;
        seat.seen = Instant::now();
        Ok(Some(Arc::clone(&seat.client)))
    }

    /// The client that stands behind requests without a session.
    pub(super) fn visitor(&self, visitor: Visitor) -> Arc<Client> {
        let mut visitors = lock(&self.visitors);
        if !visitors.contains_key(&visitor) {
            make_room(&mut visitors);
        }
        let new = || Seat { client: self.client(visitor.clone()), seen: Instant::now() };
        let seat = visitors.entry(visitor.clone()).or_insert_with(new);
        seat.seen = Instant::now();
        Arc::clone(&seat.client)
    }

    /// Forgets a session.
    pub(super) fn dismiss(&self, headers: &HeaderMap) {
        if let Some(id) = guard::text(headers, SESSION) {
            lock(&self.sessions).remove(id);
        }
    }

    fn client(&self, visitor: Visitor) -> Arc<Client> {
        let client = Client::new(Arc::clone(&self.server), visitor);
        listen::forward(&client);
        client
    }
}

/// Lets go of clients that were not seen for long, and of the one that was not for longest if there are too many.
fn make_room<Key: Clone + Eq + Hash>(seats: &mut HashMap<Key, Seat>) {
    let idle = |seat: &Seat| !seat.client.is_busy();
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
