//! An agent as a front end sees it: a model, a gate, a session and limits; give it a task, get an outcome.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use toolgate_contract::CancellationToken;
use toolgate_runtime::{Gate, Session};

use crate::agent_loop::{AgentLoop, AgentRole};
use crate::circuit_breaker::CircuitBreaker;
use crate::definition::AgentDefinition;
use crate::limits::{AgentLimits, Budget};
use crate::model::{FIRST, Model};
use crate::outcome::AgentOutcome;
use crate::text_sink::{DiscardText, TextSink};

/// A model at work behind the gate.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use toolgate_contract::CancellationToken;
/// # async fn example(
/// #     model: Arc<dyn toolgate_agent::model::Model>,
/// #     gate: Arc<toolgate_runtime::Gate>,
/// #     session: toolgate_runtime::Session,
/// # ) {
/// let agent = toolgate_agent::Agent::new(model, gate, session, toolgate_agent::Controls::default());
/// let outcome = agent.work("Make the tests pass.", CancellationToken::new()).await;
/// println!("{}: {}", outcome.finish, outcome.summary);
/// # }
/// ```
pub struct Agent {
    context: TaskContext,
    session: Session,
}

/// What all agents of one task share.
pub(crate) struct TaskContext {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) controls: AgentLimits,
    pub(crate) budget: Budget,
    pub(crate) breaker: CircuitBreaker,
    pub(crate) listener: Arc<dyn TextSink>,
    /// The kinds of agents that can be set to work.
    pub(crate) kinds: Vec<AgentDefinition>,
    /// What the workspace wants every agent to know.
    pub(crate) workspace_says: Option<String>,
    /// How many agents were set to work so far.
    pub(crate) sent: AtomicU32,
}

impl Agent {
    /// An agent with this model, whose calls go through this gate, in this session, within these limits.
    pub fn new(model: Arc<dyn Model>, gate: Arc<Gate>, session: Session, controls: AgentLimits) -> Self {
        let context = TaskContext {
            model,
            gate,
            budget: Budget::begin(&controls),
            breaker: CircuitBreaker::new(controls.failures, controls.rest),
            controls,
            listener: Arc::new(DiscardText),
            kinds: AgentDefinition::built_in(),
            workspace_says: None,
            sent: AtomicU32::new(0),
        };
        Self { context, session }
    }

    /// The same agent, heard by this listener as it speaks.
    #[must_use]
    pub fn with_text_sink(mut self, listener: Arc<dyn TextSink>) -> Self {
        self.context.listener = listener;
        self
    }

    /// The same agent, which can set these kinds of agents to work too. One of a known name takes its place.
    #[must_use]
    pub fn with_kinds(mut self, kinds: impl IntoIterator<Item = AgentDefinition>) -> Self {
        for kind in kinds {
            self.context.kinds.retain(|known| known.name != kind.name);
            self.context.kinds.push(kind);
        }
        self
    }

    /// The same agent, told what the workspace wants agents to know. Only of a workspace that is trusted.
    #[must_use]
    pub fn told(mut self, workspace_says: Option<String>) -> Self {
        self.context.workspace_says = workspace_says;
        self
    }

    /// Works on a task until there is an answer, or a limit is reached, or somebody stops it. Its time begins now.
    pub async fn work(mut self, task: &str, cancel: CancellationToken) -> AgentOutcome {
        self.context.budget = Budget::begin(&self.context.controls);
        let kind = AgentDefinition { name: FIRST.into(), ..AgentDefinition::default() };
        let post = AgentRole { kind, parent: None, depth: 0 };
        AgentLoop::new(Arc::new(self.context), self.session, post, cancel).work(task).await
    }
}
