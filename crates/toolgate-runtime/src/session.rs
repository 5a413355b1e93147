//! The session of one client: the run that records its calls, who answers approval requests, and who receives events.

use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

#[cfg(doc)]
use toolgate_contract::EventPayload;
use toolgate_contract::{Agents, Artifacts, CancellationToken, Event, ToolError};
use toolgate_policy::{Ceiling, PathBounds};

use crate::approval::{
    ApprovalAnswer, ApprovalQueueClient, ApprovalRequest, Approver, NobodyToAsk, QueuedAnswerer, Requester,
};
use crate::client_tools::ClientTools;
use crate::gate::FlowLabels;
use crate::processes::ProcessRegistry;
use crate::question::{NobodyAnswers, QuestionAnswerer};
use crate::servers::SessionServers;
use crate::skills::ActiveSkills;
use toolgate_journal::{Recorder, SkillLimits};

/// Receives events as they happen: a live view, a stream, a console.
pub trait EventSink: Send + Sync {
    /// An event that is recorded.
    fn event(&self, event: &Event);
    /// An event that is never recorded: a process' output ([`EventPayload::ProcessOutput`]) while it runs. An
    /// implementation must not block, and may drop it.
    fn live(&self, _event: &Event) {}
    /// Whether anyone receives the events.
    fn is_watched(&self) -> bool {
        true
    }
}

/// A sink for programs, where no one receives events.
pub struct NobodyWatches;

impl EventSink for NobodyWatches {
    fn event(&self, _event: &Event) {}

    fn is_watched(&self) -> bool {
        false
    }
}

/// Whether a person ended the run before its time.
#[derive(Default)]
struct RunAbort {
    token: CancellationToken,
    by: OnceLock<String>,
}

/// The session of one client. A clone shares the run and what was granted in it; a subagent gets one with fewer rights.
#[derive(Clone)]
pub struct Session {
    /// The session's id.
    pub id: String,
    /// The run that calls are recorded in.
    pub run: String,
    /// Records the events of the run.
    pub recorder: Arc<dyn Recorder>,
    /// Stores the output of the run.
    pub artifacts: Arc<dyn Artifacts>,
    /// Answers approval requests.
    pub approver: Arc<dyn Approver>,
    /// Answers the agent's own questions.
    pub answerer: Arc<dyn QuestionAnswerer>,
    /// The queue in which other processes can answer requests.
    pub queue: Option<ApprovalQueueClient>,
    /// Receives events.
    pub sink: Arc<dyn EventSink>,
    /// Receives live events for other programs that follow the workspace.
    pub followers: Option<Arc<dyn EventSink>>,
    /// Sets of tools that limit this session from the start, such as a parent agent's. Those of the skills that it
    /// loads are added: [`Session::ceilings()`] returns all of them.
    pub ceilings: Vec<Ceiling>,
    /// The current turn of the agent, if there is one.
    pub turn: Option<u64>,
    /// The session's processes. They end with the last session that shares them.
    pub processes: Arc<ProcessRegistry>,
    /// The MCP servers that run for the session. They end with the last session that shares them.
    pub servers: Arc<SessionServers>,
    /// Agents that calls may start; none outside an agent.
    pub agents: Option<Arc<dyn Agents>>,
    /// Whether this program makes one call of the session and ends: then the call waits until its command ends. The
    /// session itself goes on in the next program that names it.
    pub waits: bool,
    /// Tools that the session's own client registered. They leave with it.
    pub client_tools: Arc<ClientTools>,
    pub(crate) flow: Arc<FlowLabels>,
    pub(crate) skills: Arc<ActiveSkills>,
    abort: Arc<RunAbort>,
    bounds: Arc<Mutex<Option<Arc<PathBounds>>>>,
}

impl Session {
    /// A session that can't ask a person and whose events no one receives.
    pub fn new(
        id: impl Into<String>,
        run: impl Into<String>,
        recorder: Arc<dyn Recorder>,
        artifacts: Arc<dyn Artifacts>,
    ) -> Self {
        Self {
            id: id.into(),
            run: run.into(),
            recorder,
            artifacts,
            approver: Arc::new(NobodyToAsk),
            answerer: Arc::new(NobodyAnswers),
            queue: None,
            sink: Arc::new(NobodyWatches),
            followers: None,
            ceilings: Vec::new(),
            turn: None,
            processes: Arc::default(),
            servers: Arc::new(SessionServers::new("MCP server")),
            agents: None,
            waits: false,
            client_tools: Arc::default(),
            flow: Arc::default(),
            skills: Arc::default(),
            abort: Arc::default(),
            bounds: Arc::default(),
        }
    }

    /// Sets the approver.
    #[must_use]
    pub fn approved_by(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = approver;
        self
    }

    /// Sets the answerer of questions.
    #[must_use]
    pub fn answered_by(mut self, answerer: Arc<dyn QuestionAnswerer>) -> Self {
        self.answerer = answerer;
        self
    }

    /// Adds an approval queue, in which requests can be answered too.
    #[must_use]
    pub fn with_approval_queue(mut self, queue: ApprovalQueueClient) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Makes this a session for a single call, which waits until its command ends.
    #[must_use]
    pub fn waiting(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Limits the session as the skills do that its earlier programs loaded, and stores what this one loads.
    pub fn limited_by(mut self, stored: SkillLimits, now: Timestamp) -> Result<Self, ToolError> {
        self.skills = Arc::new(ActiveSkills::restored(stored, now)?);
        Ok(self)
    }

    /// Sets the sink that receives events.
    #[must_use]
    pub fn watched_by(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.sink = sink;
        self
    }

    /// Ends all processes and servers of the session, and waits until the processes are gone and recorded; what was granted until its end is
    /// removed. Dropping the session ends the processes too, without waiting.
    pub async fn end(&self) {
        self.servers.end();
        self.client_tools.end();
        self.processes.end().await;
        // Nobody can continue such a session, so a grant that couldn't be removed covers nothing any more.
        let _ = self.recorder.end_grants();
    }

    /// Ends the run, in this session and in all that share it: running calls are cancelled, and no more are made.
    pub(crate) fn abort(&self, by: &str) {
        let _ = self.abort.by.set(by.to_owned());
        self.abort.token.cancel();
    }

    /// Who aborted the run, if a person did.
    pub fn aborted_by(&self) -> Option<&str> {
        self.abort.by.get().map(String::as_str)
    }

    /// Waits until a person aborts the run.
    pub async fn aborted(&self) {
        self.abort.token.cancelled().await;
    }

    /// Every set of tools that limits the session, including those of the skills that it has loaded.
    pub fn ceilings(&self) -> Vec<Ceiling> {
        [self.ceilings.clone(), self.skills.ceilings()].concat()
    }

    /// A session for a subagent: the same run and grants, and no more rights. The skills that the subagent loads limit
    /// it alone.
    #[must_use]
    pub fn for_another_agent(&self) -> Self {
        Self { skills: Arc::new(self.skills.copied()), ..self.clone() }
    }

    /// The same session for another of its clients. Paths that one client is limited to don't limit the others.
    #[must_use]
    pub fn for_another_client(&self) -> Self {
        Self { bounds: Arc::default(), ..self.clone() }
    }

    /// Asks in the front end and in the approval queue; the first answer counts.
    pub(crate) async fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        match &self.queue {
            None => self.approver.ask(request).await,
            Some(queue) => {
                queue.ask(self.approver.as_ref(), &Requester { run: &self.run, session: &self.id }, request).await
            }
        }
    }

    /// Answers the agent's own questions: in the front end, and in the approval queue.
    pub(crate) fn question_answerer(&self) -> Arc<dyn QuestionAnswerer> {
        let front_end = Arc::clone(&self.answerer);
        match self.queue.clone() {
            None => front_end,
            Some(queue) => {
                Arc::new(QueuedAnswerer { front_end, queue, run: self.run.clone(), session: self.id.clone() })
            }
        }
    }

    /// From the next call on, limits the session to these paths, or lifts the limit.
    pub fn hold_to(&self, bounds: Option<PathBounds>) {
        *self.bounds.lock() = bounds.map(Arc::new);
    }

    pub(crate) fn bounds(&self) -> Option<Arc<PathBounds>> {
        self.bounds.lock().clone()
    }

    /// Records events, then passes them to the sink.
    pub fn record(&self, events: &[Event]) -> Result<(), ToolError> {
        self.recorder.record(events)?;
        events.iter().for_each(|event| self.sink.event(event));
        Ok(())
    }
}
