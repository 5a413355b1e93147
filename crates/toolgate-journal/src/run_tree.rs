//! The tree of a run, rebuilt from its events: agent → turn → call. Plain data; a front end draws it.

use std::collections::HashMap;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;
use toolgate_contract::{
    ApprovalScope, Decision, ErrorCode, Event, EventPayload, FinishReason, HookedTool, Message, Risk, RuleName,
    RunFacts, TokenUsage,
};

use crate::{JournalError, read_events};

/// A run and everything that was done in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunTree {
    /// The run.
    pub run: String,
    /// What the run is about.
    pub facts: Option<RunFacts>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// How often a damaged end of the journal was recovered.
    pub recovered: u64,
    /// The turns of callers that aren't agents, in the order in which they began.
    pub turns: Vec<TurnNode>,
    /// The agents that no other agent started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentNode>,
}

/// An agent and everything it did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AgentNode {
    /// Its id, which is the trace of its events.
    pub id: String,
    /// Which kind of agent.
    pub agent: String,
    /// The model it works with.
    pub model: String,
    /// Its task.
    pub objective: String,
    /// When it began.
    pub started: Option<Timestamp>,
    /// How its work ended; none while it is running.
    pub finish: Option<FinishReason>,
    /// Its final answer, or why there is none.
    pub summary: Option<String>,
    /// What it used.
    pub tokens: Option<TokenUsage>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// Its turns, in the order in which they began.
    pub turns: Vec<TurnNode>,
    /// The call that started it.
    #[serde(skip)]
    pub parent: Option<String>,
}

/// One round of model output and tool calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TurnNode {
    /// Its number; none for events outside any turn.
    pub number: Option<u64>,
    /// Its calls, in the order in which they first appear.
    pub calls: Vec<CallNode>,
    /// Messages to the person outside any call.
    pub messages: Vec<Message>,
    /// Text from the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// Why the model failed or its output couldn't be understood, once for each time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// What the model used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenUsage>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// One call.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CallNode {
    /// Its id.
    pub tool_call_id: String,
    /// Identifies the calls that belong to one task.
    pub trace_id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The client's own tool that the call stands for, where a hook of the client brought it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooked: Option<HookedTool>,
    /// The tool's version.
    pub version: Option<String>,
    /// How much harm the tool can do.
    pub risk: Option<Risk>,
    /// When it started.
    pub started: Option<Timestamp>,
    /// Its current state.
    pub status: CallStatus,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// How it was judged.
    pub decision: Option<Decision>,
    /// Whether it was allowed only because it ran in a sandbox.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub confined: bool,
    /// The rule that decided.
    pub rule: Option<RuleName>,
    /// The answer to the approval request, or the grant that it ran under.
    pub approval: Option<Approval>,
    /// Its messages to the person.
    pub messages: Vec<Message>,
    /// The agents that it started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentNode>,
}

/// The state of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It hasn't ended.
    #[default]
    Running,
    /// It succeeded.
    Ok,
    /// It failed.
    Failed(ErrorCode),
}

/// The answer to an approval request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// It isn't answered yet.
    Asked {
        /// Why approval is needed.
        reason: String,
    },
    /// The person approved.
    Granted {
        /// How far it reaches.
        scope: ApprovalScope,
        /// Who approved; none when an earlier grant covers the call.
        by: Option<String>,
    },
    /// The person refused.
    Denied {
        /// Who refused.
        by: String,
        /// Their reason.
        reason: Option<String>,
    },
}

/// Rebuilds the tree from a run's events, in order.
pub fn tree<'a>(events: impl IntoIterator<Item = &'a Event>) -> RunTree {
    let mut builder = RunTreeBuilder::default();
    for event in events {
        builder.apply(event);
    }
    builder.finish()
}

/// Rebuilds the tree from a run's directory. Only one event is in memory at a time.
pub fn read_tree(run_dir: &Path) -> Result<RunTree, JournalError> {
    let mut builder = RunTreeBuilder::default();
    for recorded in read_events(run_dir)? {
        builder.apply(&recorded.map_err(JournalError::io("The record couldn't be read"))?.event);
    }
    Ok(builder.finish())
}

/// A tree under construction: a flat list of agents, and indices to find what an event belongs to.
#[derive(Default)]
struct RunTreeBuilder {
    tree: RunTree,
    agents: Vec<AgentNode>,
    by_trace: HashMap<String, usize>,
    turns: HashMap<(Option<usize>, Option<u64>), usize>,
    calls: HashMap<String, CallPosition>,
}

/// The position of a call: its agent, if it has one, its turn, and its index in the turn.
#[derive(Clone, Copy)]
struct CallPosition {
    agent: Option<usize>,
    turn: usize,
    call: usize,
}

impl RunTreeBuilder {
    fn apply(&mut self, event: &Event) {
        if self.tree.run.is_empty() {
            self.tree.run.clone_from(&event.run);
        }
        match &event.payload {
            EventPayload::RunStarted(facts) => {
                self.tree.facts = Some(facts.clone());
                self.tree.started = Some(event.time);
            }
            EventPayload::RunEnded => self.tree.ended = Some(event.time),
            EventPayload::JournalRecovered { .. } => self.tree.recovered += 1,
            EventPayload::AgentStarted { .. } => self.begin_agent(event),
            EventPayload::AgentEnded { .. } => self.end_agent(event),
            EventPayload::Display(message) => match self.call(event) {
                Some(call) => call.messages.push(message.clone()),
                None => self.turn(event).messages.push(message.clone()),
            },
            payload => match self.call(event) {
                Some(call) => call.apply(payload, event.time),
                None if event.turn.is_some() => self.turn(event).apply(payload),
                None => {}
            },
        }
    }

    fn begin_agent(&mut self, event: &Event) {
        let (Some(trace), EventPayload::AgentStarted { agent, model, objective, parent, .. }) =
            (&event.trace_id, &event.payload)
        else {
            return;
        };
        self.by_trace.insert(trace.clone(), self.agents.len());
        self.agents.push(AgentNode {
            id: trace.clone(),
            agent: agent.clone(),
            model: model.clone(),
            objective: objective.clone(),
            started: Some(event.time),
            parent: parent.clone(),
            ..AgentNode::default()
        });
    }

    fn end_agent(&mut self, event: &Event) {
        let found = event.trace_id.as_deref().and_then(|trace| self.by_trace.get(trace)).copied();
        let EventPayload::AgentEnded { finish, summary, tokens, duration_ms, .. } = &event.payload else { return };
        if let Some(node) = found.and_then(|index| self.agents.get_mut(index)) {
            node.finish = Some(*finish);
            node.summary = Some(summary.clone());
            node.tokens = Some(*tokens);
            node.duration_ms = Some(*duration_ms);
        }
    }

    /// The turn that an event belongs to, and its position.
    fn turn_at(&mut self, event: &Event) -> (Option<usize>, usize) {
        let agent = event.trace_id.as_deref().and_then(|trace| self.by_trace.get(trace)).copied();
        let turns = turns_of(&mut self.tree, &mut self.agents, agent);
        let found = *self.turns.entry((agent, event.turn)).or_insert_with(|| {
            turns.push(TurnNode { number: event.turn, ..TurnNode::default() });
            turns.len() - 1
        });
        (agent, found)
    }

    fn turn(&mut self, event: &Event) -> &mut TurnNode {
        let (agent, turn) = self.turn_at(event);
        &mut turns_of(&mut self.tree, &mut self.agents, agent)[turn]
    }

    /// The call that an event belongs to; it is in the turn in which it first appeared.
    fn call(&mut self, event: &Event) -> Option<&mut CallNode> {
        let id = event.tool_call_id.as_deref()?;
        let position = match self.calls.get(id) {
            Some(position) => *position,
            None => {
                let (agent, turn) = self.turn_at(event);
                let calls = &mut turns_of(&mut self.tree, &mut self.agents, agent)[turn].calls;
                let trace_id = event.trace_id.clone();
                calls.push(CallNode { tool_call_id: id.into(), trace_id, ..CallNode::default() });
                let position = CallPosition { agent, turn, call: calls.len() - 1 };
                self.calls.insert(id.to_owned(), position);
                position
            }
        };
        turns_of(&mut self.tree, &mut self.agents, position.agent)[position.turn].calls.get_mut(position.call)
    }

    /// Moves each agent below the call that started it. A started agent began later than its parent, so the last go
    /// first.
    fn finish(mut self) -> RunTree {
        while let Some(agent) = self.agents.pop() {
            let position = agent.parent.as_deref().and_then(|parent| self.calls.get(parent)).copied();
            match position {
                Some(position) if position.agent.is_none_or(|above| above < self.agents.len()) => {
                    let turns = turns_of(&mut self.tree, &mut self.agents, position.agent);
                    turns[position.turn].calls[position.call].agents.insert(0, agent);
                }
                _ => self.tree.agents.insert(0, agent),
            }
        }
        self.tree
    }
}

/// The turns of an agent, or of callers that aren't agents.
fn turns_of<'t>(tree: &'t mut RunTree, agents: &'t mut [AgentNode], agent: Option<usize>) -> &'t mut Vec<TurnNode> {
    match agent {
        Some(index) => &mut agents[index].turns,
        None => &mut tree.turns,
    }
}

impl TurnNode {
    fn apply(&mut self, payload: &EventPayload) {
        match payload {
            EventPayload::TurnEnded { tokens, duration_ms } => {
                self.tokens = Some(*tokens);
                self.duration_ms = Some(*duration_ms);
            }
            EventPayload::ModelSaid { text, .. } if !text.trim().is_empty() => self.said.push(text.trim().to_owned()),
            EventPayload::ModelFailed { reason, .. } | EventPayload::ModelMisunderstood { reason } => {
                self.faults.push(reason.clone());
            }
            _ => {}
        }
    }
}

impl CallNode {
    fn apply(&mut self, payload: &EventPayload, time: Timestamp) {
        match payload {
            EventPayload::CallStarted { tool, version, verdict, approval, risk, hooked, .. } => {
                self.tool.clone_from(tool);
                self.hooked.clone_from(hooked);
                self.version.clone_from(version);
                self.risk = *risk;
                self.started = Some(time);
                self.decision = verdict.as_ref().map(|verdict| verdict.decision);
                self.confined = verdict.as_ref().is_some_and(|verdict| verdict.confined);
                self.rule = verdict.as_ref().map(|verdict| verdict.decided_by.name.clone());
                if let (Some(scope), None) = (approval, &self.approval) {
                    self.approval = Some(Approval::Granted { scope: *scope, by: None });
                }
            }
            EventPayload::CallCompleted(ending) => self.end(CallStatus::Ok, ending.duration_ms),
            EventPayload::CallFailed { error, ending, .. } => {
                self.end(CallStatus::Failed(error.code), ending.duration_ms)
            }
            EventPayload::ApprovalRequired { tool, reason, .. } => {
                self.tool.clone_from(tool);
                self.approval = Some(Approval::Asked { reason: reason.clone() });
            }
            EventPayload::ApprovalGranted { scope, by } => {
                self.approval = Some(Approval::Granted { scope: *scope, by: Some(by.clone()) });
            }
            EventPayload::ApprovalDenied { by, reason } => {
                self.approval = Some(Approval::Denied { by: by.clone(), reason: reason.clone() });
            }
            // The rest is about a run, an agent or a turn.
            _ => {}
        }
    }

    fn end(&mut self, status: CallStatus, duration_ms: u64) {
        self.status = status;
        self.duration_ms = Some(duration_ms);
    }
}
