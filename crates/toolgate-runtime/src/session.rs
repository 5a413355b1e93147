//! One client's stay: the run its calls are recorded in, who answers for it, who watches, and what it was granted.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

#[cfg(doc)]
use toolgate_contract::EventPayload;
use toolgate_contract::{Agents, Artifacts, Event, ToolError};
use toolgate_journal::Grant;
use toolgate_policy::{Ceiling, PathBounds};

use crate::approval::{
    ApprovalAnswer, ApprovalQueueClient, ApprovalRequest, Approver, NobodyToAsk, QueuedAnswerer, Requester,
};
use crate::processes::ProcessRegistry;
use crate::question::{NobodyAnswers, QuestionAnswerer};
use crate::skills::ActiveSkills;
use toolgate_journal::Recorder;

/// Watches events as they come: a live view, a stream, a console.
pub trait EventSink: Send + Sync {
    /// Something happened and is on record.
    fn event(&self, event: &Event);
    /// Something passes that is never on record: a process' output ([`EventPayload::ProcessOutput`]) as it comes. Whoever
    /// shows it must not wait, and may leave it out.
    fn live(&self, _event: &Event) {}
    /// Whether anyone sees it.
    fn is_watched(&self) -> bool {
        true
    }
}

/// For programs: nobody watches.
pub struct NobodyWatches;

impl EventSink for NobodyWatches {
    fn event(&self, _event: &Event) {}

    fn is_watched(&self) -> bool {
        false
    }
}

/// One client's stay. A clone shares the run and what was granted; an agent that is set to work gets one, narrowed.
#[derive(Clone)]
pub struct Session {
    /// The session's id; grants of scope `session` belong to it.
    pub id: String,
    /// The run that calls are recorded in.
    pub run: String,
    /// Keeps the events of the run.
    pub recorder: Arc<dyn Recorder>,
    /// Keeps the output of the run.
    pub artifacts: Arc<dyn Artifacts>,
    /// Whoever answers an ask.
    pub approver: Arc<dyn Approver>,
    /// Whoever answers the agent's own questions.
    pub answerer: Arc<dyn QuestionAnswerer>,
    /// Where asks lie meanwhile, for others to answer.
    pub queue: Option<ApprovalQueueClient>,
    /// Whoever watches.
    pub sink: Arc<dyn EventSink>,
    /// Sets of tools that this session can't go beyond from the start, such as a parent agent's. Those of the skills that
    /// it loads come on top: [`Session::ceilings()`] has all of them.
    pub ceilings: Vec<Ceiling>,
    /// The agent's turn, where there is one.
    pub turn: Option<u64>,
    /// The session's processes. They end with the last session that holds them.
    pub processes: Arc<ProcessRegistry>,
    /// Agents that calls may set to work; none where no agent is at work.
    pub agents: Option<Arc<dyn Agents>>,
    /// Whether the session ends with its one call: then a command is waited for until it ends.
    pub waits: bool,
    pub(crate) skills: Arc<ActiveSkills>,
    grants: Arc<Mutex<Vec<Grant>>>,
    bounds: Arc<Mutex<Option<Arc<PathBounds>>>>,
}

impl Session {
    /// A session with nobody to ask and nobody watching.
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
            ceilings: Vec::new(),
            turn: None,
            processes: Arc::default(),
            agents: None,
            waits: false,
            skills: Arc::default(),
            grants: Arc::default(),
            bounds: Arc::default(),
        }
    }

    /// The same session with this approver.
    #[must_use]
    pub fn approved_by(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = approver;
        self
    }

    /// The same session with this respondent.
    #[must_use]
    pub fn answered_by(mut self, answerer: Arc<dyn QuestionAnswerer>) -> Self {
        self.answerer = answerer;
        self
    }

    /// The same session, whose asks also lie on this desk.
    #[must_use]
    pub fn with_desk(mut self, queue: ApprovalQueueClient) -> Self {
        self.queue = Some(queue);
        self
    }

    /// The same session, for a single call whose end is waited for.
    #[must_use]
    pub fn waiting(mut self) -> Self {
        self.waits = true;
        self
    }

    /// The same session with this watcher.
    #[must_use]
    pub fn watched_by(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.sink = sink;
        self
    }

    /// The same session, with answers that were given before.
    #[must_use]
    pub fn with_grants(self, grants: Vec<Grant>) -> Self {
        self.grants().extend(grants);
        self
    }

    /// Ends what the session still has running, and waits until all of it is gone and on record. Dropping the session ends
    /// it too, but nobody waits for that.
    pub async fn end(&self) {
        self.processes.end().await;
    }

    /// Every set of tools that the session can't go beyond, those of the skills that it has loaded included.
    pub fn ceilings(&self) -> Vec<Ceiling> {
        [self.ceilings.clone(), self.skills.ceilings()].concat()
    }

    /// A session for an agent that this one's sends: the same run and grants, and no more rights. The skills that it
    /// loads itself hold it alone.
    #[must_use]
    pub fn for_another_agent(&self) -> Self {
        Self { skills: Arc::new(self.skills.copied()), ..self.clone() }
    }

    /// Asks in the front end's own way and at the desk; whoever answers first has answered.
    pub(crate) async fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        match &self.queue {
            None => self.approver.ask(request).await,
            Some(queue) => {
                queue.ask(self.approver.as_ref(), &Requester { run: &self.run, session: &self.id }, request).await
            }
        }
    }

    /// Whoever answers the agent's own questions: in the front end's own way, and at the desk.
    pub(crate) fn question_answerer(&self) -> Arc<dyn QuestionAnswerer> {
        let own = Arc::clone(&self.answerer);
        match self.queue.clone() {
            None => own,
            Some(queue) => Arc::new(QueuedAnswerer { own, queue, run: self.run.clone(), session: self.id.clone() }),
        }
    }

    /// From the next call on, the session is held to these places, or to none in particular.
    pub fn hold_to(&self, bounds: Option<PathBounds>) {
        *self.bounds.lock() = bounds.map(Arc::new);
    }

    pub(crate) fn bounds(&self) -> Option<Arc<PathBounds>> {
        self.bounds.lock().clone()
    }

    /// Writes events down, then shows them.
    pub fn record(&self, events: &[Event]) -> Result<(), ToolError> {
        self.recorder.record(events)?;
        events.iter().for_each(|event| self.sink.event(event));
        Ok(())
    }

    pub(crate) fn grants(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.grants.lock()
    }
}
