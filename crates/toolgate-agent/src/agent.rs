//! An agent as a front end uses it: a model, a gate, a session and limits; give it a task, get an outcome.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use toolgate_contract::CancellationToken;
use toolgate_dialects::{DialectSet, DialectState};
use toolgate_runtime::{Gate, Session};

use crate::agent_loop::{AgentLoop, AgentRole};
use crate::circuit_breaker::CircuitBreaker;
use crate::definition::AgentDefinition;
use crate::limits::{AgentLimits, Budget};
use crate::message_queue::MessageQueue;
use crate::model::{MAIN_AGENT, Model};
use crate::outcome::AgentOutcome;
use crate::past_conversation::PastConversation;
use crate::text_sink::{DiscardText, TextSink};

/// A model that works on a task through the gate.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use toolgate_contract::CancellationToken;
/// # async fn example(
/// #     model: Arc<dyn toolgate_agent::model::Model>,
/// #     gate: Arc<toolgate_runtime::Gate>,
/// #     session: toolgate_runtime::Session,
/// # ) {
/// let agent = toolgate_agent::Agent::new(model, gate, session, toolgate_agent::AgentLimits::default());
/// let outcome = agent.work("Make the tests pass.", CancellationToken::new()).await;
/// println!("{}: {}", outcome.finish, outcome.summary);
/// # }
/// ```
pub struct Agent {
    context: TaskContext,
    session: Session,
    messages: Arc<MessageQueue>,
    /// The conversation so far.
    past: Option<PastConversation>,
}

/// What all agents of one task share.
pub(crate) struct TaskContext {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) controls: AgentLimits,
    pub(crate) budget: Budget,
    pub(crate) breaker: CircuitBreaker,
    pub(crate) listener: Arc<dyn TextSink>,
    /// The kinds of agents that can be started.
    pub(crate) kinds: Vec<AgentDefinition>,
    /// The workspace's own instructions for agents.
    pub(crate) workspace_instructions: Option<String>,
    /// What is worth knowing at the start, each a paragraph.
    pub(crate) facts: Vec<String>,
    /// The dialects in which models are spoken to, as a new conversation begins.
    pub(crate) dialects: DialectState,
    /// How many agents were started so far.
    pub(crate) started: AtomicU32,
}

impl Agent {
    /// An agent with this model, gate, session and limits.
    pub fn new(model: Arc<dyn Model>, gate: Arc<Gate>, session: Session, controls: AgentLimits) -> Self {
        let context = TaskContext {
            model,
            gate,
            budget: Budget::begin(&controls),
            breaker: CircuitBreaker::new(controls.failures, controls.rest),
            controls,
            listener: Arc::new(DiscardText),
            kinds: AgentDefinition::built_in(),
            workspace_instructions: None,
            facts: Vec::new(),
            dialects: DialectState::new(DialectSet::default(), ""),
            started: AtomicU32::new(0),
        };
        Self { context, session, messages: Arc::default(), past: None }
    }

    /// Continues an earlier conversation with its next task.
    #[must_use]
    pub fn continuing(mut self, past: PastConversation) -> Self {
        self.past = Some(past);
        self
    }

    /// Messages to the agent while it works; it reads them before its next turn.
    pub fn messages(&self) -> Arc<MessageQueue> {
        Arc::clone(&self.messages)
    }

    /// Goes on with another model.
    pub fn set_model(&mut self, model: Arc<dyn Model>) {
        self.context.model = model;
    }

    /// Goes on behind another gate and in another session.
    #[must_use]
    pub fn moved_to(mut self, gate: Arc<Gate>, session: Session) -> Self {
        (self.context.gate, self.session) = (gate, session);
        self
    }

    /// Sets the sink that receives the model's text while it is written.
    #[must_use]
    pub fn with_text_sink(mut self, listener: Arc<dyn TextSink>) -> Self {
        self.context.listener = listener;
        self
    }

    /// Adds kinds of agents that this agent can start. A kind with a known name replaces that one.
    #[must_use]
    pub fn with_kinds(mut self, kinds: impl IntoIterator<Item = AgentDefinition>) -> Self {
        for kind in kinds {
            self.context.kinds.retain(|known| known.name != kind.name);
            self.context.kinds.push(kind);
        }
        self
    }

    /// Sets the workspace's own instructions for agents. Only for a trusted workspace.
    #[must_use]
    pub fn with_workspace_instructions(mut self, workspace_instructions: Option<String>) -> Self {
        self.context.workspace_instructions = workspace_instructions;
        self
    }

    /// Sets what is worth knowing at the start, such as the date and the state of git.
    #[must_use]
    pub fn with_facts(mut self, facts: Vec<String>) -> Self {
        self.context.facts = facts;
        self
    }

    /// Sets the dialects in which the model is spoken to, in the workspace of this directory.
    #[must_use]
    pub fn speaking(mut self, dialects: DialectSet, workspace: &Path) -> Self {
        self.context.dialects = DialectState::new(dialects, workspace.display().to_string());
        self
    }

    /// Works on a task until there is an answer, a limit is reached, or the task is cancelled. The limits count from
    /// now.
    pub async fn work(mut self, task: &str, cancel: CancellationToken) -> AgentOutcome {
        self.say(task, cancel).await
    }

    /// Works on the next task of the same conversation. The limits of a task count from now.
    pub async fn say(&mut self, task: &str, cancel: CancellationToken) -> AgentOutcome {
        let context = Arc::new(self.context.for_next_task());
        let kind = AgentDefinition { name: MAIN_AGENT.into(), ..AgentDefinition::default() };
        let role = AgentRole { kind, parent: None, depth: 0 };
        let past = self.past.take().map(|past| past.for_model(context.model.name()));
        let note = past.as_ref().and_then(PastConversation::note);
        let worker = AgentLoop::new(context, self.session.clone(), role, cancel);
        let (outcome, past) = worker.continuing(past, self.messages()).work(task, note).await;
        self.past = Some(PastConversation { finish: Some(outcome.finish), ..past });
        outcome
    }
}

impl TaskContext {
    /// The same, with nothing used of its limits.
    fn for_next_task(&self) -> Self {
        Self {
            model: Arc::clone(&self.model),
            gate: Arc::clone(&self.gate),
            budget: Budget::begin(&self.controls),
            breaker: CircuitBreaker::new(self.controls.failures, self.controls.rest),
            controls: self.controls.clone(),
            listener: Arc::clone(&self.listener),
            kinds: self.kinds.clone(),
            workspace_instructions: self.workspace_instructions.clone(),
            facts: self.facts.clone(),
            dialects: self.dialects.clone(),
            started: AtomicU32::new(0),
        }
    }
}
