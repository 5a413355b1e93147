//! The sessions of one server. Each has a run, a token and rights of its own; what belongs to another session looks as if
//! it didn't exist.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::StatusCode;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use toolgate_contract::CancellationToken;
use toolgate_journal::Run;
use toolgate_runtime::Session;

use crate::problem::Problem;
use crate::token::TokenDigest;

/// One client: its session and its running calls.
pub(crate) struct HttpSession {
    pub(crate) id: String,
    pub(crate) session: Session,
    pub(crate) run: Arc<Run>,
    pub(crate) since: Timestamp,
    /// Whether it may answer its own approvals, which the owner decides when the session begins.
    pub(crate) may_answer: bool,
    /// Cancels everything it does.
    pub(crate) stop: CancellationToken,
    calls: Mutex<HashMap<String, CancellationToken>>,
}

impl HttpSession {
    pub(crate) fn new(
        session: Session,
        run: Arc<Run>,
        since: Timestamp,
        may_answer: bool,
        stop: CancellationToken,
    ) -> Self {
        Self { id: session.id.clone(), session, run, since, may_answer, stop, calls: Mutex::default() }
    }

    /// Registers a call, unless one with that id runs already or the limit is reached.
    pub(crate) fn register_call(&self, call: &str, max: usize) -> Result<CancellationToken, Problem> {
        let mut calls = self.calls();
        if calls.contains_key(call) {
            return Err(Problem::duplicate_call("A call with that `tool_call_id` is already running."));
        }
        if calls.len() >= max {
            let message = format!("This session has {max} calls running, which is the limit.");
            return Err(Problem::busy(StatusCode::TOO_MANY_REQUESTS, "too_many_calls", message));
        }
        let cancel = self.stop.child_token();
        calls.insert(call.to_owned(), cancel.clone());
        Ok(cancel)
    }

    /// Removes a call that has ended.
    pub(crate) fn done(&self, call: &str) {
        self.calls().remove(call);
    }

    /// Cancels a call; false when no call with that id runs.
    pub(crate) fn cancel(&self, call: &str) -> bool {
        self.calls().get(call).map(CancellationToken::cancel).is_some()
    }

    /// Whether a call with that id runs.
    pub(crate) fn is_running(&self, call: &str) -> bool {
        self.calls().contains_key(call)
    }

    /// How many calls run.
    pub(crate) fn running(&self) -> usize {
        self.calls().len()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.calls.lock()
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
