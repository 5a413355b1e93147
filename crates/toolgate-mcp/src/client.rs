//! One client: what it said of itself, its stay, the calls that it has under way, and the questions that were put to it.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use toolgate_contract::{ArtifactRef, CancellationToken};
use toolgate_runtime::{Ceiling, Session};

use crate::backend::{ClientHandlers, ClientIdentity, McpSession};
use crate::call_context::CallContext;
use crate::elicitation::Elicitor;
use crate::json_rpc::{self, RequestId};
use crate::json_rpc_error::JsonRpcError;
use crate::message_sink::{MessageSink, SharedMessageSink};
use crate::notifications::NotificationSink;
use crate::protocol_version::ClientProfile;
use crate::roots::ClientRoots;
use crate::server::{ListKind, McpServer};
use crate::suspended_calls::SuspendedCalls;

/// The most artifacts that a client's list of resources remembers.
const MOST_KEPT: usize = 1_000;

/// One client of a server.
pub(crate) struct Client {
    pub(crate) server: Arc<McpServer>,
    /// Tells it from the others.
    pub(crate) number: u64,
    pub(crate) visitor: ClientIdentity,
    /// What a handshake settled on; requests of the newer kind bring their own.
    pub(crate) settled: OnceLock<ClientProfile>,
    /// The least severe log message that it asked for.
    pub(crate) log_level: Mutex<Option<String>>,
    /// Where messages go that belong to no request.
    pub(crate) aside: Mutex<Option<SharedMessageSink>>,
    /// Calls that wait for an answer between two requests.
    pub(crate) pending: SuspendedCalls,
    pub(crate) roots: ClientRoots,
    mcp_session: Mutex<Option<Arc<McpSession>>>,
    links: Mutex<HashMap<String, Arc<CallContext>>>,
    running: Mutex<HashMap<RequestId, CancellationToken>>,
    asked: Mutex<HashMap<u64, oneshot::Sender<Result<Value, Value>>>>,
    next: AtomicU64,
    kept: Mutex<Vec<ArtifactRef>>,
    /// Sets of tools that the session was held to when the client last heard of it.
    held_to: AtomicUsize,
    work: watch::Sender<usize>,
    /// Ends with the client; every call of it ends with this.
    pub(crate) stop: CancellationToken,
}

impl Client {
    pub(crate) fn new(server: Arc<McpServer>, visitor: ClientIdentity) -> Arc<Self> {
        let stop = server.stop.child_token();
        Arc::new(Self {
            number: server.visitors.fetch_add(1, Ordering::Relaxed),
            server,
            visitor,
            settled: OnceLock::new(),
            log_level: Mutex::default(),
            aside: Mutex::default(),
            pending: SuspendedCalls::default(),
            roots: ClientRoots::default(),
            mcp_session: Mutex::default(),
            links: Mutex::default(),
            running: Mutex::default(),
            asked: Mutex::default(),
            next: AtomicU64::new(1),
            kept: Mutex::default(),
            held_to: AtomicUsize::new(0),
            work: watch::Sender::new(0),
            stop,
        })
    }

    /// The client's stay, begun with its first call: a client that only looks leaves no run behind.
    pub(crate) fn mcp_session(self: &Arc<Self>) -> Result<Arc<McpSession>, JsonRpcError> {
        let mut mcp_session = lock(&self.mcp_session);
        if let Some(mcp_session) = &*mcp_session {
            return Ok(Arc::clone(mcp_session));
        }
        let mut visitor = self.visitor.clone();
        if let Some(profile) = self.settled.get() {
            visitor.name.clone_from(&profile.client);
        }
        let person = Arc::new(Elicitor(Arc::downgrade(self)));
        let sink = Arc::new(NotificationSink(Arc::downgrade(self)));
        let present = ClientHandlers { approver: person.clone(), answerer: person, sink };
        let new = self.server.host.receive(&visitor, present);
        let new = Arc::new(new.map_err(|error| JsonRpcError::internal(error.message))?);
        *mcp_session = Some(Arc::clone(&new));
        Ok(new)
    }

    /// The client is gone: its calls end, then its processes, then its stay.
    pub(crate) async fn leave(&self) {
        self.stop.cancel();
        self.pending.clear();
        let mcp_session = lock(&self.mcp_session).take();
        self.idle().await;
        if let Some(mcp_session) = mcp_session {
            mcp_session.session.end().await;
        }
    }

    /// Notes that a request is under way. An id that is in use can't name another one.
    pub(crate) fn begin(self: &Arc<Self>, id: &RequestId) -> Result<ActiveRequest, JsonRpcError> {
        let cancel = self.stop.child_token();
        let mut running = lock(&self.running);
        if running.contains_key(id) {
            return Err(JsonRpcError::invalid_request(format!(
                "The id {id} is in use by a request that hasn't ended."
            )));
        }
        let most = self.server.options.most_underway;
        if running.len() >= most {
            return Err(JsonRpcError::busy(format!(
                "{most} requests are under way, and there may be no more. Wait for one."
            )));
        }
        running.insert(id.clone(), cancel.clone());
        Ok(ActiveRequest { work: self.work(), id: id.clone(), cancel })
    }

    /// Ends a request.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(cancel) = lock(&self.running).get(id) {
            cancel.cancel();
        }
    }

    /// Something of this client is under way, as long as this is kept.
    pub(crate) fn work(self: &Arc<Self>) -> ActivityGuard {
        self.work.send_modify(|count| *count += 1);
        ActivityGuard { client: Arc::clone(self) }
    }

    /// Whether anything of this client is under way.
    pub(crate) fn is_busy(&self) -> bool {
        *self.work.borrow() > 0
    }

    /// Waits until nothing of this client is under way.
    pub(crate) async fn idle(&self) {
        // The other end is ours, so this can't fail.
        let _ = self.work.subscribe().wait_for(|&count| count == 0).await;
    }

    /// Ties what happens in a call to the request that it belongs to.
    pub(crate) fn tie(self: &Arc<Self>, call: &str, link: Arc<CallContext>) -> CallRegistration {
        lock(&self.links).insert(call.to_owned(), link);
        CallRegistration { client: Arc::clone(self), call: call.to_owned() }
    }

    pub(crate) fn link(&self, call: &str) -> Option<Arc<CallContext>> {
        lock(&self.links).get(call).cloned()
    }

    /// Asks the client for something and waits for the answer. When nobody waits any longer, the question is withdrawn.
    pub(crate) async fn ask(
        &self,
        outlet: &SharedMessageSink,
        method: &str,
        params: Value,
    ) -> Option<Result<Value, Value>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        lock(&self.asked).insert(id, answer);
        let mut question = OutgoingRequest { client: self, outlet: outlet.as_ref(), id, is_open: true };
        outlet.send(json_rpc::request(id, method, params));
        let answer = answered.await.ok();
        question.is_open = answer.is_none();
        answer
    }

    /// The client answered a question of ours.
    pub(crate) fn answered(&self, id: &Value, outcome: Result<Value, Value>) {
        let waiting = id.as_u64().and_then(|id| lock(&self.asked).remove(&id));
        if let Some(waiting) = waiting {
            // Whoever asked may have stopped waiting.
            let _ = waiting.send(outcome);
        }
    }

    /// Says something that belongs to no request.
    pub(crate) fn tell(&self, message: String) {
        if let Some(outlet) = &*lock(&self.aside) {
            outlet.send(message);
        }
    }

    /// Sets of tools that this client can't go beyond: the host's, and those of the skills that it has loaded.
    pub(crate) fn ceilings(&self) -> Vec<Ceiling> {
        let mcp_session = lock(&self.mcp_session).clone();
        mcp_session.map_or_else(|| self.server.host.ceilings().to_vec(), |mcp_session| mcp_session.session.ceilings())
    }

    /// Tells the client when its session is held to another set of tools than before: a skill does that.
    pub(crate) fn announce_changed_tools(&self, session: &Session) {
        let own = self.server.host.ceilings().len();
        let by_skills = session.ceilings().len().saturating_sub(own);
        if self.held_to.swap(by_skills, Ordering::Relaxed) != by_skills {
            self.server.announce_to(self.number, ListKind::Tools);
        }
    }

    /// Remembers stored output, for the list of resources.
    pub(crate) fn keep(&self, refs: &[ArtifactRef]) {
        let mut kept = lock(&self.kept);
        for artifact in refs {
            if !kept.iter().any(|known| known.id == artifact.id) {
                kept.push(artifact.clone());
            }
        }
        let too_many = kept.len().saturating_sub(MOST_KEPT);
        kept.drain(..too_many);
    }

    pub(crate) fn kept(&self) -> Vec<ArtifactRef> {
        lock(&self.kept).clone()
    }
}

/// A request that is under way; when this goes, it has ended.
pub(crate) struct ActiveRequest {
    work: ActivityGuard,
    id: RequestId,
    pub(crate) cancel: CancellationToken,
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        lock(&self.work.client.running).remove(&self.id);
    }
}

/// Something that is under way; when this goes, it is over.
pub(crate) struct ActivityGuard {
    client: Arc<Client>,
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.client.work.send_modify(|count| *count -= 1);
    }
}

/// A call that is tied to a request; when this goes, it is no longer.
pub(crate) struct CallRegistration {
    client: Arc<Client>,
    call: String,
}

impl Drop for CallRegistration {
    fn drop(&mut self) {
        lock(&self.client.links).remove(&self.call);
    }
}

/// A question to the client; when this goes unanswered, it is withdrawn.
struct OutgoingRequest<'a> {
    client: &'a Client,
    outlet: &'a dyn MessageSink,
    id: u64,
    is_open: bool,
}

impl Drop for OutgoingRequest<'_> {
    fn drop(&mut self) {
        lock(&self.client.asked).remove(&self.id);
        if self.is_open {
            let params = json!({ "requestId": self.id, "reason": "It no longer matters." });
            self.outlet.send(json_rpc::notification("notifications/cancelled", params));
        }
    }
}

/// A lock that a panic elsewhere doesn't take from the others.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
