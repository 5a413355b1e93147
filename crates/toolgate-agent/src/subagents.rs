//! The agents that an agent has started. Each has its own context and a session with the same or fewer rights; none
//! outlives the agent that started it.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use toolgate_contract::{
    Agents, BoxFuture, CancellationToken, ErrorCode, SubagentStatus, SubagentTask, ToolError, counted,
};
use toolgate_runtime::Session;

use crate::agent::TaskContext;
use crate::agent_loop::{AgentLoop, AgentRole};
use crate::message_queue::MessageQueue;
use crate::outcome::AgentOutcome;

/// The subagents of one agent.
pub(crate) struct Subagents {
    context: Arc<TaskContext>,
    /// The parent's session, which limits every subagent.
    session: Session,
    depth: u32,
    cancel: CancellationToken,
    members: Mutex<BTreeMap<String, Subagent>>,
}

struct Subagent {
    agent: String,
    inbox: Arc<MessageQueue>,
    cancel: CancellationToken,
    outcome: watch::Receiver<Option<AgentOutcome>>,
}

impl Subagent {
    fn status(&self, id: &str) -> SubagentStatus {
        let outcome = self.outcome.borrow();
        SubagentStatus {
            id: id.to_owned(),
            agent: self.agent.clone(),
            finish: outcome.as_ref().map(|outcome| outcome.finish),
            summary: outcome.as_ref().map(|outcome| outcome.summary.clone()),
        }
    }

    fn is_working(&self) -> bool {
        self.outcome.borrow().is_none()
    }
}

impl Subagents {
    pub(crate) fn new(context: Arc<TaskContext>, session: Session, depth: u32, cancel: CancellationToken) -> Self {
        Self { context, session, depth, cancel, members: Mutex::default() }
    }

    /// Stops all running subagents and waits until they have ended, so that their ends are recorded before the
    /// parent's.
    pub(crate) async fn stop_all(&self) {
        let outcomes: Vec<_> = self
            .members()
            .values()
            .map(|member| {
                member.cancel.cancel();
                member.outcome.clone()
            })
            .collect();
        for mut outcome in outcomes {
            let _ = outcome.wait_for(Option::is_some).await;
        }
    }

    /// Whether one more subagent may be started.
    fn check_limits(&self) -> Result<(), ToolError> {
        let reached =
            |message: String, next: &str| Err(ToolError::new(ErrorCode::LimitReached, message).with_hint(next));
        let controls = &self.context.controls;
        if self.depth >= controls.depth {
            return reached(
                format!("Agents can be nested {} levels deep, and no deeper.", controls.depth),
                "Do it yourself.",
            );
        }
        let working = self.members().values().filter(|member| member.is_working()).count();
        if working >= controls.agents_at_once as usize {
            return reached(
                format!("No more than {} can run at once.", counted(working, "agent")),
                "Wait for one of them with `agents`.",
            );
        }
        if self.context.started.fetch_add(1, Ordering::Relaxed) >= controls.agents {
            return reached(
                format!("This task may start {}, and has done so.", counted(controls.agents, "agent")),
                "Do it yourself.",
            );
        }
        Ok(())
    }

    fn members(&self) -> MutexGuard<'_, BTreeMap<String, Subagent>> {
        self.members.lock()
    }

    fn with<T>(&self, id: &str, read: impl FnOnce(&Subagent) -> T) -> Result<T, ToolError> {
        let members = self.members();
        members.get(id).map(read).ok_or_else(|| {
            ToolError::new(ErrorCode::NotFound, format!("You have started no agent `{id}`."))
                .with_hint("Use the action `list` to see the agents that you have started.")
        })
    }
}

impl Agents for Subagents {
    fn send(&self, task: SubagentTask) -> Result<String, ToolError> {
        let kind = self.context.kinds.iter().find(|kind| kind.name == task.agent).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.context.kinds.iter().map(|kind| kind.name.as_str()).collect();
            ToolError::invalid_args(format!("There is no agent named `{}`.", task.agent))
                .with_hint(format!("The agents here are: {}.", known.join(", ")))
        })?;
        self.check_limits()?;
        let cancel = task.cancel.unwrap_or_else(|| self.cancel.clone()).child_token();
        let role = AgentRole { kind, parent: Some(task.tool_call_id), depth: self.depth + 1 };
        let worker = AgentLoop::new(Arc::clone(&self.context), self.session.for_another_agent(), role, cancel.clone());
        let (id, inbox) = (worker.id().to_owned(), worker.inbox());
        let (send_outcome, outcome) = watch::channel(None);
        self.members().insert(id.clone(), Subagent { agent: task.agent, inbox, cancel, outcome });
        // Boxed, because an agent's future can contain that of its subagent.
        let work: BoxFuture<'static, AgentOutcome> =
            Box::pin(async move { worker.work(&task.objective, None).await.0 });
        tokio::spawn(async move { send_outcome.send_replace(Some(work.await)) });
        Ok(id)
    }

    fn message(&self, id: &str, text: &str) -> Result<(), ToolError> {
        match self.with(id, |member| member.is_working().then(|| member.inbox.put(text.to_owned())))? {
            Some(()) => Ok(()),
            None => Err(ToolError::new(ErrorCode::NotFound, format!("The agent `{id}` has ended."))
                .with_hint("Start another one.")),
        }
    }

    fn wait<'a>(&'a self, id: &'a str, most: Option<Duration>) -> BoxFuture<'a, Result<SubagentStatus, ToolError>> {
        Box::pin(async move {
            let mut outcome = self.with(id, |member| member.outcome.clone())?;
            let ended = outcome.wait_for(Option::is_some);
            match most {
                // Whether it has ended by then is in the status.
                Some(most) => drop(tokio::time::timeout(most, ended).await),
                None => drop(ended.await),
            }
            self.with(id, |member| member.status(id))
        })
    }

    fn list(&self) -> Vec<SubagentStatus> {
        self.members().iter().map(|(id, member)| member.status(id)).collect()
    }

    fn stop(&self, id: &str) -> Result<(), ToolError> {
        self.with(id, |member| member.cancel.cancel())
    }
}
