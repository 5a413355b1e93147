//! The sessions of one server. Each has a run, a token and rights of its own; what belongs to another session looks as if
//! it didn't exist.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use toolgate_contract::CancellationToken;
use toolgate_journal::Run;
use toolgate_runtime::{CallRegistry, Principal, PrincipalSession, Session};
use toolgate_workspace::{DialectSession, RecordedSession};

use crate::shown_results::ShownResults;
use crate::token::TokenDigest;

/// One client: its session and its running calls.
pub(crate) struct HttpSession {
    pub(crate) id: String,
    pub(crate) session: Session,
    pub(crate) run: Arc<Run>,
    pub(crate) since: Timestamp,
    /// Whether it may answer its own approvals, which the owner decides when the session begins.
    pub(crate) may_answer: bool,
    /// The dialects that its calls are read in.
    pub(crate) dialects: DialectSession,
    /// What the dialects showed of its latest calls.
    pub(crate) shown: ShownResults,
    /// Cancels everything it does.
    pub(crate) stop: CancellationToken,
    /// Its running calls, those that came by MCP included.
    pub(crate) calls: Arc<CallRegistry>,
}

impl HttpSession {
    pub(crate) fn new(
        recorded: RecordedSession,
        since: Timestamp,
        may_answer: bool,
        dialects: DialectSession,
        stop: CancellationToken,
        max_calls: usize,
    ) -> Self {
        let RecordedSession { session, run } = recorded;
        Self {
            id: session.id.clone(),
            session,
            run,
            since,
            may_answer,
            dialects,
            shown: ShownResults::default(),
            stop,
            calls: Arc::new(CallRegistry::new(max_calls)),
        }
    }
}

/// All sessions, by token and by id.
#[derive(Default)]
pub(crate) struct SessionRegistry(Mutex<SessionIndex>);

#[derive(Default)]
struct SessionIndex {
    by_token: HashMap<TokenDigest, Arc<HttpSession>>,
    by_id: HashMap<String, (TokenDigest, Arc<HttpSession>)>,
}

impl SessionRegistry {
    /// The session with this token.
    pub(crate) fn with_token(&self, token: &TokenDigest) -> Option<Arc<HttpSession>> {
        self.known().by_token.get(token).cloned()
    }

    /// The session with this id.
    pub(crate) fn of_session(&self, id: &str) -> Option<Arc<HttpSession>> {
        self.known().by_id.get(id).map(|(_, client)| Arc::clone(client))
    }

    /// Adds a session, unless its id is taken.
    pub(crate) fn admit(&self, token: TokenDigest, client: Arc<HttpSession>) -> bool {
        let mut known = self.known();
        if known.by_id.contains_key(&client.id) {
            return false;
        }
        known.by_token.insert(token, Arc::clone(&client));
        known.by_id.insert(client.id.clone(), (token, client));
        true
    }

    /// Removes a session and invalidates its token.
    pub(crate) fn remove_session(&self, id: &str) -> Option<Arc<HttpSession>> {
        let mut known = self.known();
        let (token, client) = known.by_id.remove(id)?;
        known.by_token.remove(&token);
        Some(client)
    }

    /// All sessions, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<HttpSession>> {
        let mut clients: Vec<_> = self.known().by_id.values().map(|(_, client)| Arc::clone(client)).collect();
        clients.sort_by(|a, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
        clients
    }

    pub(crate) fn count(&self) -> usize {
        self.known().by_id.len()
    }

    fn known(&self) -> MutexGuard<'_, SessionIndex> {
        self.0.lock()
    }
}

/// Who sent a request, as authentication found out.
#[derive(Clone)]
pub(crate) enum Caller {
    /// The owner of the workspace.
    Owner,
    /// A client with a session.
    Session(Arc<HttpSession>),
}

impl Caller {
    /// The caller as front ends know it that are nested in this server.
    pub(crate) fn principal(&self) -> Principal {
        match self {
            Self::Owner => Principal { name: "owner".into(), session: None },
            Self::Session(client) => Principal {
                // A session's id may be used again after its end; its run is never another's.
                name: format!("session {} {}", client.id, client.run.id),
                session: Some(PrincipalSession {
                    session: client.session.clone(),
                    may_answer: client.may_answer,
                    calls: Arc::clone(&client.calls),
                    stop: client.stop.clone(),
                }),
            },
        }
    }
}
