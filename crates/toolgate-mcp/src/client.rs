//! One client: what it said of itself, its session, its running requests, and the requests that the server sent it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use toolgate_contract::{ArtifactRef, CancellationToken, counted};
use toolgate_dialects::DialectSet;
use toolgate_runtime::{Ceiling, PrincipalSession, Session};
use toolgate_workspace::DialectSession;

use crate::call_context::CallContext;
use crate::elicitation::Elicitor;
use crate::json_rpc::{self, RequestId};
use crate::json_rpc_error::JsonRpcError;
use crate::mcp_session::{ClientHandlers, ClientIdentity, McpSession};
use crate::message_sink::{MessageSink, SharedMessageSink};
use crate::notifications::NotificationSink;
use crate::protocol_version::ClientProfile;
use crate::roots::ClientRoots;
use crate::server::{ListKind, McpServer};
use crate::suspended_calls::SuspendedCalls;

/// The most artifacts that a client's list of resources remembers.
const MAX_ARTIFACTS: usize = 1_000;

/// One client of a server.
pub(crate) struct Client {
    pub(crate) server: Arc<McpServer>,
    /// Tells the client from the others, for announcements to one client.
    pub(crate) number: u64,
    pub(crate) identity: ClientIdentity,
    /// The session that the client acts in, if its token stands for one.
    pub(crate) principal_session: Option<PrincipalSession>,
    /// What was said in each set of dialects. Without a handshake, every request may come under another name.
    dialect_sessions: Mutex<Vec<(DialectSet, Arc<DialectSession>)>>,
    /// What a handshake negotiated; requests without a handshake bring their own profile.
    pub(crate) negotiated: OnceLock<ClientProfile>,
    /// The least severe log message that the client asked for.
    pub(crate) log_level: Mutex<Option<String>>,
    /// The sink for messages that belong to no request.
    pub(crate) notifications: Mutex<Option<SharedMessageSink>>,
    pub(crate) suspended_calls: SuspendedCalls,
    pub(crate) roots: ClientRoots,
    mcp_session: Mutex<Option<Arc<McpSession>>>,
    call_contexts: Mutex<HashMap<String, Arc<CallContext>>>,
    running: Mutex<HashMap<RequestId, CancellationToken>>,
    outgoing: Mutex<HashMap<u64, oneshot::Sender<Result<Value, Value>>>>,
    next_id: AtomicU64,
    artifacts: Mutex<Vec<ArtifactRef>>,
    /// How many sets of tools skills held the session to when the client was last told.
    ceiling_count: AtomicUsize,
    activities: watch::Sender<usize>,
    /// Cancelled when the client disconnects; cancels its calls.
    pub(crate) stop: CancellationToken,
}

impl Client {
    pub(crate) fn new(
        server: Arc<McpServer>,
        identity: ClientIdentity,
        principal_session: Option<PrincipalSession>,
    ) -> Arc<Self> {
        let stop = principal_session.as_ref().map_or(&server.stop, |principal| &principal.stop).child_token();
        Arc::new(Self {
            dialect_sessions: Mutex::default(),
            number: server.client_count.fetch_add(1, Ordering::Relaxed),
            server,
            identity,
            principal_session,
            negotiated: OnceLock::new(),
            log_level: Mutex::default(),
            notifications: Mutex::default(),
            suspended_calls: SuspendedCalls::default(),
            roots: ClientRoots::default(),
            mcp_session: Mutex::default(),
            call_contexts: Mutex::default(),
            running: Mutex::default(),
            outgoing: Mutex::default(),
            next_id: AtomicU64::new(1),
            artifacts: Mutex::default(),
            ceiling_count: AtomicUsize::new(0),
            activities: watch::Sender::new(0),
            stop,
        })
    }

    /// The client's session, opened with its first call: a client that only lists tools leaves no run behind.
    pub(crate) fn mcp_session(self: &Arc<Self>) -> Result<Arc<McpSession>, JsonRpcError> {
        let mut mcp_session = self.mcp_session.lock();
        if let Some(mcp_session) = &*mcp_session {
            return Ok(Arc::clone(mcp_session));
        }
        let mut identity = self.identity.clone();
        if let Some(profile) = self.negotiated.get() {
            identity.name.clone_from(&profile.client);
        }
        let person = Arc::new(Elicitor(Arc::downgrade(self)));
        let sink = Arc::new(NotificationSink(Arc::downgrade(self)));
        let handlers = ClientHandlers { approver: person.clone(), answerer: person, sink };
        let new = match &self.principal_session {
            Some(principal) => Ok(McpSession::join(&self.server, principal, handlers)),
            None => McpSession::open(&self.server, &identity, handlers),
        };
        let new = Arc::new(new.map_err(|error| JsonRpcError::internal(error.message))?);
        *mcp_session = Some(Arc::clone(&new));
        Ok(new)
    }

    /// What was said in the dialects that the server speaks to a client of this name.
    pub(crate) fn dialect_session(&self, name: &str) -> Arc<DialectSession> {
        let set = self.server.options.dialects_for(name);
        let mut sessions = self.dialect_sessions.lock();
        if let Some((_, session)) = sessions.iter().find(|(spoken, _)| spoken == set) {
            return Arc::clone(session);
        }
        let session = Arc::new(DialectSession::new(set.clone(), &self.server.workspace.directory));
        sessions.push((set.clone(), Arc::clone(&session)));
        session
    }

    /// Ends the client's calls, then its processes, then its session.
    pub(crate) async fn disconnect(&self) {
        self.stop.cancel();
        self.suspended_calls.clear();
        let mcp_session = self.mcp_session.lock().take();
        self.idle().await;
        if let Some(mcp_session) = mcp_session {
            mcp_session.end().await;
        }
    }

    /// Registers a running request. The id of a running request can't be used for another one.
    pub(crate) fn begin(self: &Arc<Self>, id: &RequestId) -> Result<ActiveRequest, JsonRpcError> {
        let cancel = self.stop.child_token();
        let mut running = self.running.lock();
        if running.contains_key(id) {
            return Err(JsonRpcError::invalid_request(format!(
                "The id {id} belongs to a request that is still running."
            )));
        }
        let max = self.server.options.max_requests;
        if running.len() >= max {
            return Err(JsonRpcError::busy(format!(
                "No more than {} can run at once. Wait for one to end.",
                counted(max, "request")
            )));
        }
        running.insert(id.clone(), cancel.clone());
        Ok(ActiveRequest { activity: self.activity(), id: id.clone(), cancel })
    }

    /// Cancels a request.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(cancel) = self.running.lock().get(id) {
            cancel.cancel();
        }
    }

    /// Marks the client as busy until the guard is dropped.
    pub(crate) fn activity(self: &Arc<Self>) -> ActivityGuard {
        self.activities.send_modify(|count| *count += 1);
        ActivityGuard { client: Arc::clone(self) }
    }

    /// Whether any activity of this client is going on.
    pub(crate) fn is_busy(&self) -> bool {
        *self.activities.borrow() > 0
    }

    /// Waits until no activity of this client is going on.
    pub(crate) async fn idle(&self) {
        // The sender is a field of this client, so this can't fail.
        let _ = self.activities.subscribe().wait_for(|&count| count == 0).await;
    }

    /// Makes the context of a call known by the call's id, until the guard is dropped.
    pub(crate) fn register_call(self: &Arc<Self>, call: &str, call_context: Arc<CallContext>) -> CallRegistration {
        self.call_contexts.lock().insert(call.to_owned(), call_context);
        CallRegistration { client: Arc::clone(self), call: call.to_owned() }
    }

    pub(crate) fn call_context(&self, call: &str) -> Option<Arc<CallContext>> {
        self.call_contexts.lock().get(call).cloned()
    }

    /// Sends the client a request and waits for the answer. Dropping the future cancels the request.
    pub(crate) async fn ask(
        &self,
        sink: &SharedMessageSink,
        method: &str,
        params: Value,
    ) -> Option<Result<Value, Value>> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.outgoing.lock().insert(id, answer);
        let mut question = OutgoingRequest { client: self, sink: sink.as_ref(), id, is_open: true };
        sink.send(json_rpc::request(id, method, params));
        let answer = answered.await.ok();
        question.is_open = answer.is_none();
        answer
    }

    /// Takes the client's answer to a request of the server's.
    pub(crate) fn resolve(&self, id: &Value, outcome: Result<Value, Value>) {
        let waiting = id.as_u64().and_then(|id| self.outgoing.lock().remove(&id));
        if let Some(waiting) = waiting {
            // The request may have been cancelled meanwhile.
            let _ = waiting.send(outcome);
        }
    }

    /// Sends a message that belongs to no request.
    pub(crate) fn notify(&self, message: String) {
        if let Some(sink) = &*self.notifications.lock() {
            sink.send(message);
        }
    }

    /// Sets of tools that this client is held to: the server's, those of the session that it acts in, and those of the
    /// skills that were loaded.
    pub(crate) fn ceilings(&self) -> Vec<Ceiling> {
        if let Some(mcp_session) = self.mcp_session.lock().clone() {
            return mcp_session.session.ceilings();
        }
        let of_principal = self.principal_session.as_ref().map(|principal| principal.session.ceilings());
        [of_principal.unwrap_or_default(), self.server.options.ceilings.clone()].concat()
    }

    /// Tells the client when a skill has changed the tools of its session.
    pub(crate) fn announce_changed_tools(&self, session: &Session) {
        let by_skills = session.ceilings().len().saturating_sub(session.ceilings.len());
        if self.ceiling_count.swap(by_skills, Ordering::Relaxed) != by_skills {
            self.server.announce_to(self.number, ListKind::Tools);
        }
    }

    /// Remembers stored output for the list of resources.
    pub(crate) fn remember_artifacts(&self, refs: &[ArtifactRef]) {
        let mut known = self.artifacts.lock();
        for artifact in refs.iter().filter(|artifact| !artifact.is_server_link()) {
            if !known.iter().any(|known| known.id == artifact.id) {
                known.push(artifact.clone());
            }
        }
        let too_many = known.len().saturating_sub(MAX_ARTIFACTS);
        known.drain(..too_many);
    }

    pub(crate) fn artifacts(&self) -> Vec<ArtifactRef> {
        self.artifacts.lock().clone()
    }
}

/// A running request; dropping this removes it from the client.
pub(crate) struct ActiveRequest {
    activity: ActivityGuard,
    id: RequestId,
    pub(crate) cancel: CancellationToken,
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.activity.client.running.lock().remove(&self.id);
    }
}

/// Keeps the client busy while it exists.
pub(crate) struct ActivityGuard {
    client: Arc<Client>,
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.client.activities.send_modify(|count| *count -= 1);
    }
}

/// Keeps the context of a call findable while it exists.
pub(crate) struct CallRegistration {
    client: Arc<Client>,
    call: String,
}

impl Drop for CallRegistration {
    fn drop(&mut self) {
        self.client.call_contexts.lock().remove(&self.call);
    }
}

/// A request to the client; dropped unanswered, it is cancelled.
struct OutgoingRequest<'a> {
    client: &'a Client,
    sink: &'a dyn MessageSink,
    id: u64,
    is_open: bool,
}

impl Drop for OutgoingRequest<'_> {
    fn drop(&mut self) {
        self.client.outgoing.lock().remove(&self.id);
        if self.is_open {
            let params = json!({ "requestId": self.id, "reason": "cancelled" });
            self.sink.send(json_rpc::notification("notifications/cancelled", params));
        }
    }
}
