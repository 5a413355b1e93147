//! An agent and the run that records it, opened in the same way for a task and for a conversation.

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use toolgate_agent::{Agent, AgentDefinition, AgentLimits, PastConversation, TextSink};
use toolgate_contract::{Call, CancellationToken, TokenUsage};
use toolgate_dialects::DialectSet;
use toolgate_journal::{Run, RunHold};
use toolgate_runtime::{Approver, EventSink, NobodyWatches, QuestionAnswerer, Session};
use toolgate_workspace::{RunChoice, Workspace, WorkspaceLocation};

use super::model::OpenedModel;
use super::{AgentArgs, agent_kinds, prompt_facts, resume};
use crate::commands::Invocation;
use crate::commands::dialects::checked;
use crate::workspace::open_workspace_with;

/// Who watches an agent, and who answers it.
#[derive(Clone)]
pub(crate) struct RunObservers {
    pub(crate) sink: Arc<dyn EventSink>,
    pub(crate) listener: Arc<dyn TextSink>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) answerer: Arc<dyn QuestionAnswerer>,
}

impl RunObservers {
    /// A session that they watch and answer.
    pub(crate) fn watch(&self, session: Session) -> Session {
        let session = session.approved_by(Arc::clone(&self.approver)).answered_by(Arc::clone(&self.answerer));
        session.watched_by(Arc::clone(&self.sink))
    }
}

/// An agent's run, before its first task.
pub(crate) struct AgentRun {
    pub(crate) workspace: Workspace,
    pub(crate) run: Arc<Run>,
    /// Keeps other processes from continuing the run meanwhile.
    pub(crate) hold: RunHold,
    pub(crate) session: Session,
    pub(crate) opened: OpenedModel,
    pub(crate) kinds: Vec<AgentDefinition>,
    pub(crate) limits: AgentLimits,
    pub(crate) past: Option<PastConversation>,
    /// The dialects in which the model is spoken to.
    pub(crate) dialects: DialectSet,
    /// The tokens that the run had used before.
    pub(crate) tokens: TokenUsage,
}

impl AgentRun {
    /// Opens the model and the workspace, and begins a run or goes on with one. Whatever is wrong is said before anything
    /// is recorded.
    pub(crate) fn begin(
        args: &AgentArgs,
        invocation: &Invocation,
        front_end: &'static str,
        observers: &RunObservers,
    ) -> Result<Self> {
        let limits = args.limits()?;
        let opened = args.model.open(&invocation.location.load()?.settings.model)?;
        let kinds = agent_kinds::user_agent_kinds(&invocation.location.config)?;
        let workspace = open_workspace_with(&invocation.location, toolgate_agent::tools(), opened.secrets())?;
        checked(args.dialects(&opened, None)?, workspace.gate.declarations())?;
        let run = resume::find(&workspace, args.continues, args.resume.as_deref())?;
        // A record that anybody could have written must not speak to the model as its own past.
        anyhow::ensure!(
            run.is_none() || invocation.location.signing_key().is_some(),
            "There is no signing key, so nobody can tell whether the record is yours. Start a new run."
        );
        // Held before it is opened: whoever is refused leaves no trace in the record.
        let held = run.as_deref().map(|run| workspace.state.hold_run(run)).transpose()?;
        let choice = RunChoice { run, session: args.session.clone(), front_end };
        let recorded = workspace.begin(&choice)?;
        let hold = held.map_or_else(|| workspace.state.hold_run(&recorded.run.id), Ok)?;
        let past = choice.run.as_ref().map(|_| resume::read(&workspace, &recorded.run)).transpose()?;
        let (past, tokens) = past.map_or_else(Default::default, |(past, tokens)| (Some(past), tokens));
        let dialects = checked(args.dialects(&opened, past.as_ref())?, workspace.gate.declarations())?;
        let session = workspace.limited_by_skills(recorded.session, &recorded.run)?;
        let session = observers.watch(session);
        Ok(Self { workspace, run: recorded.run, hold, session, opened, kinds, limits, past, dialects, tokens })
    }

    /// The agent, which knows the workspace's instructions and what is worth knowing at the start.
    pub(crate) async fn agent(&self, location: &WorkspaceLocation, listener: &Arc<dyn TextSink>) -> Agent {
        // What is looked up for the prompt is on record, but no person waits for it.
        let quiet = self.session.clone().watched_by(Arc::new(NobodyWatches));
        let instructions = workspace_instructions(&self.workspace, &self.session, location).await;
        let facts = prompt_facts::gather(&self.workspace, &quiet, location).await;
        let (model, gate) = (Arc::clone(&self.opened.model), Arc::clone(&self.workspace.gate));
        let agent = Agent::new(model, gate, self.session.clone(), self.limits.clone())
            .with_text_sink(Arc::clone(listener))
            .with_kinds(self.kinds.clone())
            .with_workspace_instructions(instructions)
            .with_facts(facts)
            .speaking(self.dialects.clone(), &self.workspace.directory);
        match self.past.clone() {
            Some(past) => agent.continuing(past),
            None => agent,
        }
    }
}

/// The agent instructions of a trusted workspace. They are read through the gate like any file.
async fn workspace_instructions(
    workspace: &Workspace,
    session: &Session,
    location: &WorkspaceLocation,
) -> Option<String> {
    let file = "AGENTS.md";
    let is_trusted = location.config.trusts(&location.directory, &location.directory).is_ok_and(|trusts| trusts);
    if !is_trusted || !location.directory.join(file).is_file() {
        return None;
    }
    let call = Call::new("read", json!({ "path": file }), workspace.clock.as_ref());
    let reply = workspace.gate.perform(call, session, CancellationToken::new()).await;
    Some(reply.payload?.get("content")?.as_str()?.to_owned())
}
