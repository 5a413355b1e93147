//! The state that all requests of one server share.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;
use toolgate_contract::{Call, CancellationToken, ErrorCode, ToolError, counted};
use toolgate_dialects::DialectSet;
use toolgate_journal::{EventStore, JournalError, new_token, read_events};
use toolgate_runtime::{Ceiling, Session};
use toolgate_workspace::{DialectReply, DialectSession, RecordedSession, RunChoice, Workspace};

use crate::artifact_verdicts::ArtifactVerdicts;
use crate::authenticator::AllowedOrigins;
use crate::console_options::ConsoleOptions;
use crate::http_session::{Caller, HttpSession, SessionRegistry};
use crate::live_feed::LiveFeed;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::refusal_log::RefusalLog;
use crate::routes::schemas::NewSession;
use crate::routes::{OutlineCache, RefreshedRuns};
use crate::server::{HttpLimits, HttpOptions};
use crate::token::{Token, TokenDigest};

/// The state that all requests of one server share.
pub(crate) struct ServerState {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) store: Arc<dyn EventStore>,
    pub(crate) allowed_origins: AllowedOrigins,
    pub(crate) owner_token: TokenDigest,
    /// The owner's own session, whose run holds the server's own events.
    pub(crate) owner: Arc<HttpSession>,
    pub(crate) clients: SessionRegistry,
    pub(crate) refusals: RefusalLog,
    pub(crate) artifact_verdicts: ArtifactVerdicts,
    pub(crate) metrics: Metrics,
    pub(crate) limits: HttpLimits,
    /// Cancels everything.
    pub(crate) stop: CancellationToken,
    /// Cancelled when everything has ended and is recorded.
    pub(crate) closed: CancellationToken,
    /// All running calls.
    pub(crate) running: TaskTracker,
    /// The page's sign-in and what it needs beside the workspace; none where nobody can sign in.
    pub(crate) console: Option<ConsoleOptions>,
    /// What happens, for those who follow all of it.
    pub(crate) feed: Arc<LiveFeed>,
    /// The rows of the runs that were shown last.
    pub(crate) outlines: OutlineCache,
    pub(crate) refreshed: Mutex<RefreshedRuns>,
    /// The processes that the owner typed into.
    pub(crate) attached: Mutex<HashSet<String>>,
    calls: Arc<Semaphore>,
}

/// The owner's session.
const OWNER_SESSION: &str = "http";

impl ServerState {
    pub(crate) fn open(workspace: Arc<Workspace>, token: &Token, options: HttpOptions) -> Result<Self, ToolError> {
        let HttpOptions { allowed_origins, limits, console, .. } = options;
        let stop = CancellationToken::new();
        let store = workspace.stores.store()?;
        let recorded = begin_session(&workspace, OWNER_SESSION)?;
        let now = workspace.clock.now();
        let dialects = DialectSession::new(DialectSet::default(), &workspace.directory);
        let owner = HttpSession::new(recorded, now, true, dialects, stop.child_token(), limits.calls_per_session);
        Ok(Self {
            store,
            allowed_origins,
            owner_token: token.digest(),
            owner: Arc::new(owner),
            clients: SessionRegistry::default(),
            refusals: RefusalLog::new(Arc::clone(&workspace)),
            artifact_verdicts: ArtifactVerdicts::default(),
            metrics: Metrics::new(),
            stop,
            closed: CancellationToken::new(),
            running: TaskTracker::new(),
            calls: Arc::new(Semaphore::new(limits.calls)),
            console,
            feed: Arc::new(LiveFeed::new(workspace.clock.id().simple().to_string())),
            outlines: OutlineCache::default(),
            refreshed: Mutex::default(),
            attached: Mutex::default(),
            limits,
            workspace,
        })
    }

    /// The page's sign-in, or why there is none.
    pub(crate) fn console(&self) -> Result<&ConsoleOptions, Problem> {
        self.console.as_ref().ok_or_else(|| {
            let hint = "Start the server with `toolgate serve`.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_console", "This server has no console.", hint)
        })
    }

    /// The session in which a request acts: a client's own; for the owner, the one that the request names.
    pub(crate) fn acting(&self, caller: &Caller, named: Option<&str>) -> Result<Arc<HttpSession>, Problem> {
        let found = match (caller, named) {
            (Caller::Session(client), None) => Some(Arc::clone(client)),
            (Caller::Session(client), Some(id)) => (client.id == id).then(|| Arc::clone(client)),
            (Caller::Owner, None | Some(OWNER_SESSION)) => Some(Arc::clone(&self.owner)),
            (Caller::Owner, Some(id)) => self.clients.of_session(id),
        };
        found.ok_or_else(|| Problem::not_found("such session"))
    }

    /// Begins a session, and returns it with its token, which is shown only once.
    pub(crate) fn admit(&self, wanted: NewSession) -> Result<(Arc<HttpSession>, Token), Problem> {
        if self.clients.count() >= self.limits.sessions {
            let message = format!("The server has {}, which is the limit.", counted(self.limits.sessions, "session"));
            return Err(Problem::busy(StatusCode::TOO_MANY_REQUESTS, "too_many_sessions", message));
        }
        let id = wanted.id.unwrap_or_else(|| format!("http_{}", self.workspace.clock.id().simple()));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !(1..=64).contains(&id.len()) || !id.bytes().all(is_plain) {
            return Err(Problem::invalid("A session's id has 1 to 64 letters, digits, `_` or `-`."));
        }
        let taken = || {
            let hint = "End it first with `DELETE /v1/sessions/{id}`, or take another id.";
            Problem::new(StatusCode::CONFLICT, "session_taken", format!("The session `{id}` is in use."), hint)
        };
        if id == OWNER_SESSION || self.clients.of_session(&id).is_some() {
            return Err(taken());
        }
        let dialects = self.dialects(wanted.dialect.as_deref())?;
        let mut recorded = begin_session(&self.workspace, &id)?;
        if let Some(tools) = wanted.tools {
            recorded.session.ceilings.push(Ceiling { source: format!("session {id}"), tools });
        }
        if let (Some(seconds), Some(queue)) = (wanted.wait_seconds, recorded.session.queue.as_mut()) {
            queue.wait = Duration::from_secs(seconds);
        }
        let token = Token::new(new_token().map_err(|error| Problem::internal(error.to_string()))?);
        let since = self.workspace.clock.now();
        let (stop, max_calls) = (self.stop.child_token(), self.limits.calls_per_session);
        let client = Arc::new(HttpSession::new(recorded, since, wanted.may_answer, dialects, stop, max_calls));
        match self.clients.admit(token.digest(), Arc::clone(&client)) {
            true => Ok((client, token)),
            false => {
                let _ = client.run.end();
                Err(taken())
            }
        }
    }

    /// The dialects that a new session is to be spoken to in.
    fn dialects(&self, names: Option<&str>) -> Result<DialectSession, Problem> {
        let set = names.map_or_else(|| Ok(DialectSet::default()), str::parse);
        let set = set.and_then(|set: DialectSet| set.beside(self.workspace.gate.declarations()));
        let set = set.map_err(|error| Problem::invalid(format!("`dialect`: {error}.")))?;
        Ok(DialectSession::new(set, &self.workspace.directory))
    }

    /// Begins a call of a client, within the limits. The call runs in a task of its own, so that its end is recorded
    /// whatever becomes of the request.
    pub(crate) fn begin(
        self: &Arc<Self>,
        client: &Arc<HttpSession>,
        call: Call,
        is_native: bool,
    ) -> Result<SpawnedCall, Problem> {
        self.begin_in(client, client.session.clone(), call, is_native)
    }

    /// Begins a call of a client in a session that differs from the client's own, such as in who approves.
    pub(crate) fn begin_in(
        self: &Arc<Self>,
        client: &Arc<HttpSession>,
        session: Session,
        call: Call,
        is_native: bool,
    ) -> Result<SpawnedCall, Problem> {
        let permit = self.permit()?;
        let id = call.tool_call_id.clone();
        let cancel = client.stop.child_token();
        let registered = client.calls.register(&id, &cancel)?;
        let (state, client, cancelled) = (Arc::clone(self), Arc::clone(client), cancel.clone());
        let task = self.running.spawn(async move {
            let (id, tool) = (call.tool_call_id.clone(), call.name.clone());
            let (gate, session) = (&state.workspace.gate, &session);
            let made = match is_native {
                true => DialectReply { reply: gate.perform(call, session, cancelled).await, shown: None },
                false => client.dialects.perform(call, gate, session, cancelled).await,
            };
            state.metrics.call(state.known_tool(&client.dialects, &tool), &made.reply);
            if let Some(shown) = &made.shown {
                client.shown.keep(id, shown.clone().into());
            }
            drop((registered, permit));
            made
        });
        Ok(SpawnedCall { id, cancel, task })
    }

    fn permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        if self.stop.is_cancelled() {
            return Err(Problem::busy(StatusCode::SERVICE_UNAVAILABLE, "stopping", "The server is stopping."));
        }
        Arc::clone(&self.calls).try_acquire_owned().map_err(|_| {
            let message = format!("The server has {} running, which is the limit.", counted(self.limits.calls, "call"));
            Problem::busy(StatusCode::TOO_MANY_REQUESTS, "too_many_calls", message)
        })
    }

    /// A tool's name as a metric's label: only names that exist, so that clients can't create labels.
    fn known_tool(&self, dialects: &DialectSession, name: &str) -> String {
        let state = dialects.state();
        let name = state.set().native_name(name);
        let is_known = self.workspace.gate.declaration(name).is_some();
        if is_known { name.to_owned() } else { "unknown".into() }
    }

    /// Checks that a caller may see a run; another session's run is reported as not found.
    pub(crate) fn may_see(&self, caller: &Caller, run: &str) -> Result<(), Problem> {
        let session = session_of(&self.workspace, run)?;
        match caller {
            Caller::Owner => Ok(()),
            Caller::Session(client) if client.run.id == run || session.as_ref() == Some(&client.id) => Ok(()),
            Caller::Session(_) => Err(Problem::not_found("such run")),
        }
    }

    /// Ends every call, its processes and its run, and waits for the record.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.running.close();
        self.running.wait().await;
        for client in self.clients.all().iter().chain([&self.owner]) {
            client.session.end().await;
            let _ = client.run.end();
        }
        self.workspace.finish();
        self.closed.cancel();
    }
}

/// Begins a run for a session, which everybody can follow live who may see it.
fn begin_session(workspace: &Workspace, session: &str) -> Result<RecordedSession, ToolError> {
    let choice = RunChoice { run: None, session: session.to_owned(), front_end: "http" };
    let recorded = workspace.begin(&choice)?;
    let session = recorded.session.watched_by(Arc::new(workspace.live.clone()));
    Ok(RecordedSession { session, run: recorded.run })
}

/// The session that a run belongs to, as its first event says.
fn session_of(workspace: &Workspace, run: &str) -> Result<Option<String>, Problem> {
    let mut events = read_events(&workspace.state.run_dir(run)?).map_err(|error| match error {
        JournalError::NoSuchRun { .. } | JournalError::BadId { .. } => Problem::not_found("such run"),
        other => other.into(),
    })?;
    let unreadable = |error: std::io::Error| Problem::from(ToolError::io("The record can't be read", &error));
    let is_line =
        |read: &std::io::Result<_>| !matches!(read, Err(error) if error.kind() == std::io::ErrorKind::InvalidData);
    let first = events.find(is_line).transpose().map_err(unreadable)?;
    Ok(first.and_then(|first| match first.event.payload {
        toolgate_contract::EventPayload::RunStarted(facts) => Some(facts.session),
        _ => None,
    }))
}

/// A call that runs in a task.
pub(crate) struct SpawnedCall {
    pub(crate) id: String,
    cancel: CancellationToken,
    task: tokio::task::JoinHandle<DialectReply>,
}

impl SpawnedCall {
    /// Waits for the reply. Dropping this earlier, because the client disconnected, cancels the call.
    pub(crate) async fn reply(self) -> Result<DialectReply, Problem> {
        let cancel_on_disconnect = self.cancel.drop_guard();
        let reply = self.task.await;
        cancel_on_disconnect.disarm();
        reply.map_err(|fault| ToolError::new(ErrorCode::Internal, format!("The call was lost: {fault}.")).into())
    }
}
