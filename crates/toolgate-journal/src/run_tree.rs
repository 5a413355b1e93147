//! The tree of a run, rebuilt from its events: agent → turn → call (C-33). Plain data; a front end draws it.

use std::collections::HashMap;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;
use toolgate_contract::{
    ApprovalScope, Decision, ErrorCode, Event, EventPayload, FinishReason, Message, Risk, RuleName, RunFacts,
    TokenUsage,
};

use crate::{JournalError, read_events};

/// A run, with all that was done in it.
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
    /// How often a damaged end of the journal was set aside.
    pub recovered: u64,
    /// The turns of whoever brought calls without being an agent, in the order in which they began.
    pub turns: Vec<TurnNode>,
    /// The agents that nobody else set to work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentNode>,
}

/// An agent, with all it did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AgentNode {
    /// Its id, which is the trace of its events.
    pub id: String,
    /// Which kind of agent.
    pub agent: String,
    /// The model it works with.
    pub model: String,
    /// What it should achieve.
    pub objective: String,
    /// When it began.
    pub started: Option<Timestamp>,
    /// How its work ended; none while it works.
    pub finish: Option<FinishReason>,
    /// Its final answer, or why there is none.
    pub summary: Option<String>,
    /// What it used.
    pub tokens: Option<TokenUsage>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// Its turns, in the order in which they began.
    pub turns: Vec<TurnNode>,
    /// The call that set it to work.
    #[serde(skip)]
    pub parent: Option<String>,
}

/// One round of model and tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TurnNode {
    /// Its number; none for what belongs to no turn.
    pub number: Option<u64>,
    /// Its calls, in the order in which they were first heard of.
    pub calls: Vec<CallNode>,
    /// What was said to the person outside any call.
    pub messages: Vec<Message>,
    /// What the model said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// How often the model failed, or couldn't be understood, and why.
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
    /// Ties it to the other calls of one piece of work.
    pub trace_id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The tool's version.
    pub version: Option<String>,
    /// How much harm the tool can do.
    pub risk: Option<Risk>,
    /// When it was taken up.
    pub started: Option<Timestamp>,
    /// How it stands.
    pub status: CallStatus,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// How it was judged.
    pub decision: Option<Decision>,
    /// Whether it ran only because a sandbox held it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub confined: bool,
    /// The rule that decided.
    pub rule: Option<RuleName>,
    /// What became of the question to the person, or the grant that it ran under.
    pub approval: Option<Approval>,
    /// What it said to the person.
    pub messages: Vec<Message>,
    /// The agents that it set to work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentNode>,
}

/// How a call stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It hasn't ended.
    #[default]
    Running,
    /// It worked.
    Ok,
    /// It failed.
    Failed(ErrorCode),
}

/// What became of the question to the person.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// It was asked and isn't answered.
    Asked {
        /// Why it was asked.
        reason: String,
    },
    /// Somebody said yes.
    Granted {
        /// How far it reaches.
        scope: ApprovalScope,
        /// Who; none when an earlier grant covers the call.
        by: Option<String>,
    },
    /// Somebody said no.
    Denied {
        /// Who.
        by: String,
        /// Their words.
        reason: Option<String>,
    },
}

/// Rebuilds the tree from a run's events, in order.
pub fn tree<'a>(events: impl IntoIterator<Item = &'a Event>) -> RunTree {
    let mut growing = RunTreeBuilder::default();
    for event in events {
        growing.take(event);
    }
    growing.finish()
}

/// Rebuilds the tree from a run's directory. Only one event is in memory at a time.
pub fn read_tree(run_dir: &Path) -> Result<RunTree, JournalError> {
    let mut growing = RunTreeBuilder::default();
    for recorded in read_events(run_dir)? {
        growing.take(&recorded.map_err(JournalError::io("The record couldn't be read"))?.event);
    }
    Ok(growing.finish())
}

/// A tree in the making: agents side by side, and where to find what an event speaks of.
#[derive(Default)]
struct RunTreeBuilder {
    tree: RunTree,
    agents: Vec<AgentNode>,
    by_trace: HashMap<String, usize>,
    turns: HashMap<(Option<usize>, Option<u64>), usize>,
    calls: HashMap<String, CallPosition>,
}

/// Where a call is: its agent, if it has one, its turn there, and its place in the turn.
#[derive(Clone, Copy)]
struct CallPosition {
    agent: Option<usize>,
    turn: usize,
    call: usize,
}

impl RunTreeBuilder {
    fn take(&mut self, event: &Event) {
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
                Some(call) => call.take(payload, event.time),
                None if event.turn.is_some() => self.turn(event).take(payload),
                None => {}
            },
        }
    }

    fn begin_agent(&mut self, event: &Event) {
        let (Some(trace), EventPayload::AgentStarted { agent, model, objective, parent }) =
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

    /// The turn that an event belongs to, and where it is.
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

    /// The call that an event belongs to; it is in the turn in which it was first heard of.
    fn call(&mut self, event: &Event) -> Option<&mut CallNode> {
        let id = event.tool_call_id.as_deref()?;
        let spot = match self.calls.get(id) {
            Some(spot) => *spot,
            None => {
                let (agent, turn) = self.turn_at(event);
                let calls = &mut turns_of(&mut self.tree, &mut self.agents, agent)[turn].calls;
                let trace_id = event.trace_id.clone();
                calls.push(CallNode { tool_call_id: id.into(), trace_id, ..CallNode::default() });
                let spot = CallPosition { agent, turn, call: calls.len() - 1 };
                self.calls.insert(id.to_owned(), spot);
                spot
            }
        };
        turns_of(&mut self.tree, &mut self.agents, spot.agent)[spot.turn].calls.get_mut(spot.call)
    }

    /// Puts each agent beneath the call that set it to work. Whoever was set to work began later, so the last go first.
    fn finish(mut self) -> RunTree {
        while let Some(agent) = self.agents.pop() {
            let spot = agent.parent.as_deref().and_then(|parent| self.calls.get(parent)).copied();
            match spot {
                Some(spot) if spot.agent.is_none_or(|above| above < self.agents.len()) => {
                    let turns = turns_of(&mut self.tree, &mut self.agents, spot.agent);
                    turns[spot.turn].calls[spot.call].agents.insert(0, agent);
                }
                _ => self.tree.agents.insert(0, agent),
            }
        }
        self.tree
    }
}

/// The turns of an agent, or of whoever brought calls without being one.
fn turns_of<'t>(tree: &'t mut RunTree, agents: &'t mut [AgentNode], agent: Option<usize>) -> &'t mut Vec<TurnNode> {
    match agent {
        Some(index) => &mut agents[index].turns,
        None => &mut tree.turns,
    }
}

impl TurnNode {
    fn take(&mut self, payload: &EventPayload) {
        match payload {
            EventPayload::TurnEnded { tokens, duration_ms } => {
                self.tokens = Some(*tokens);
                self.duration_ms = Some(*duration_ms);
            }
            EventPayload::ModelSaid { text } => self.said.push(text.clone()),
            EventPayload::ModelFailed { reason, .. } | EventPayload::ModelMisunderstood { reason } => {
                self.faults.push(reason.clone());
            }
            _ => {}
        }
    }
}

impl CallNode {
    fn take(&mut self, payload: &EventPayload, time: Timestamp) {
        match payload {
            EventPayload::CallStarted { tool, version, verdict, approval, risk, .. } => {
                self.tool.clone_from(tool);
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
