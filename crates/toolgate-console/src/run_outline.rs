//! A run as rows: agents, their turns and calls, in the order of the tree. Rows are kept and only extended by what is new in
//! the record, so that a window of a very long run is shown at once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Decision, Event, EventPayload, TokenUsage, ToolError, schemars};
use toolgate_journal::Follower;

use crate::event_summary::{call_text, short};
use crate::problem::Problem;

/// One row of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct OutlineRow {
    kind: OutlineKind,
    /// How deep it is in the tree.
    depth: usize,
    /// The id of the agent or the call; `AGENT/TURN` for a turn.
    id: String,
    /// The agent's kind, the tool, or the turn.
    name: String,
    /// What it is about, in one line.
    text: String,
    status: OutlineStatus,
    /// The decision of policy about a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
    /// The error's code, of a call that failed; how an agent ended that gave no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// Who answered the approval request.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// Whether a person was asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    asked: bool,
    /// How many files it changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    changed: usize,
    #[schemars(with = "Option<String>")]
    started: Option<Timestamp>,
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// How many rows are directly below it.
    children: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutlineKind {
    /// An agent.
    Agent,
    /// A turn of an agent.
    Turn,
    /// A call.
    Call,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutlineStatus {
    /// At work.
    Running,
    /// Waiting for a person.
    Waiting,
    /// Done.
    Ok,
    /// Failed.
    Failed,
    /// Refused by policy or a person.
    Denied,
    /// It hadn't ended when its program died.
    Lost,
}

/// Which rows are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum OutlineFilter {
    /// Calls that failed.
    Failed,
    /// Calls that a person was asked about.
    Asked,
    /// Calls that policy or a person refused.
    Denied,
    /// Calls that changed files.
    Changed,
    /// Calls that haven't ended.
    Running,
}

/// A part of the rows.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OutlineWindow {
    /// How many rows there are.
    total: usize,
    /// The number of the first row here.
    offset: usize,
    rows: Vec<OutlineRow>,
    counts: OutlineCounts,
    /// When the first row began.
    #[schemars(with = "Option<String>")]
    from: Option<Timestamp>,
    /// When the last thing happened.
    #[schemars(with = "Option<String>")]
    to: Option<Timestamp>,
    /// Whether the run has ended.
    ended: bool,
    /// Whether a program works in it. If none does and it hasn't ended, its program has died.
    at_work: bool,
    /// The tokens that its agents have used so far.
    tokens: TokenUsage,
    /// What they cost; none where the prices of the models aren't known.
    pub(crate) cost: Option<String>,
    /// The number of the last event that counts here.
    seq: u64,
}

/// How many calls there are of each kind.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
struct OutlineCounts {
    calls: usize,
    failed: usize,
    asked: usize,
    denied: usize,
    changed: usize,
    running: usize,
}

/// The rows of a run, as far as its record was read.
pub(crate) struct RunOutline {
    follower: Follower,
    nodes: Vec<OutlineRow>,
    parents: Vec<Option<usize>>,
    children: HashMap<Option<usize>, Vec<usize>>,
    agents: HashMap<String, usize>,
    turns: HashMap<(Option<String>, u64), usize>,
    calls: HashMap<String, usize>,
    /// The model of each agent.
    models: HashMap<String, String>,
    /// The tokens of each model.
    pub(crate) usage: BTreeMap<String, TokenUsage>,
    to: Option<Timestamp>,
    ended: bool,
    seq: u64,
}

/// What a window is asked for.
pub(crate) struct OutlineRequest<'a> {
    pub(crate) offset: usize,
    pub(crate) limit: usize,
    pub(crate) filter: Option<OutlineFilter>,
    pub(crate) text: Option<&'a str>,
    /// Rows whose children are left out.
    pub(crate) closed: &'a [&'a str],
    /// Only calls, in the order in which they began.
    pub(crate) flat: bool,
    /// Whether a program works in the run.
    pub(crate) is_open: bool,
}

impl RunOutline {
    pub(crate) fn open(run_dir: &Path) -> Result<Self, Problem> {
        Ok(Self {
            follower: Follower::open(run_dir, 0)?,
            nodes: Vec::new(),
            parents: Vec::new(),
            children: HashMap::new(),
            agents: HashMap::new(),
            turns: HashMap::new(),
            calls: HashMap::new(),
            models: HashMap::new(),
            usage: BTreeMap::new(),
            to: None,
            ended: false,
            seq: 0,
        })
    }

    /// Reads what was recorded since the last time.
    pub(crate) fn refresh(&mut self) -> Result<(), Problem> {
        loop {
            let more = self.follower.more().map_err(|error| ToolError::io("The record can't be read", &error))?;
            if more.is_empty() {
                return Ok(());
            }
            for recorded in more {
                self.seq = recorded.seq;
                self.apply(&recorded.event);
            }
        }
    }

    fn apply(&mut self, event: &Event) {
        self.to = Some(event.time);
        match &event.payload {
            EventPayload::RunEnded => self.ended = true,
            EventPayload::AgentStarted { agent, model, objective, parent, .. } => {
                let above = parent.as_ref().and_then(|call| self.calls.get(call)).copied();
                let id = event.trace_id.clone().unwrap_or_default();
                self.models.insert(id.clone(), model.clone());
                let row = OutlineRow { text: short(objective), ..row(OutlineKind::Agent, &id, agent, event) };
                let index = self.add(row, above);
                self.agents.insert(id, index);
            }
            EventPayload::AgentEnded { finish, duration_ms, .. } => {
                let found = event.trace_id.as_ref().and_then(|agent| self.agents.get(agent)).copied();
                if let Some(index) = found {
                    let is_done = *finish == toolgate_contract::FinishReason::Answered;
                    self.nodes[index].status = if is_done { OutlineStatus::Ok } else { OutlineStatus::Failed };
                    self.nodes[index].code = (!is_done).then(|| finish.as_str().to_owned());
                    self.nodes[index].duration_ms = Some(*duration_ms);
                }
            }
            EventPayload::TurnEnded { duration_ms, tokens } => {
                let model = event.trace_id.as_ref().and_then(|agent| self.models.get(agent)).cloned();
                *self.usage.entry(model.unwrap_or_default()).or_default() += *tokens;
                if let Some(index) = self.turn(event) {
                    self.nodes[index].status = OutlineStatus::Ok;
                    self.nodes[index].duration_ms = Some(*duration_ms);
                }
            }
            EventPayload::ModelSaid { text, .. } if !text.trim().is_empty() => {
                if let Some(index) = self.turn(event) {
                    self.nodes[index].text = short(text);
                }
            }
            EventPayload::ModelFailed { reason, .. } => {
                if let Some(index) = self.turn(event) {
                    self.nodes[index].text = short(reason);
                }
            }
            EventPayload::TurnStarted => drop(self.turn(event)),
            payload => {
                if let Some(index) = self.call(event) {
                    apply_to_call(&mut self.nodes[index], payload, event);
                }
            }
        }
    }

    /// The row of the turn that an event belongs to, if it has one.
    fn turn(&mut self, event: &Event) -> Option<usize> {
        let number = event.turn?;
        let key = (event.trace_id.clone(), number);
        if let Some(index) = self.turns.get(&key) {
            return Some(*index);
        }
        let above = event.trace_id.as_ref().and_then(|agent| self.agents.get(agent)).copied();
        let id = format!("{}/{number}", event.trace_id.as_deref().unwrap_or_default());
        let index = self.add(row(OutlineKind::Turn, &id, &format!("Turn {number}"), event), above);
        self.turns.insert(key, index);
        Some(index)
    }

    fn call(&mut self, event: &Event) -> Option<usize> {
        let id = event.tool_call_id.as_ref()?;
        if let Some(index) = self.calls.get(id) {
            return Some(*index);
        }
        let above =
            self.turn(event).or_else(|| event.trace_id.as_ref().and_then(|agent| self.agents.get(agent)).copied());
        let index = self.add(row(OutlineKind::Call, id, "", event), above);
        self.calls.insert(id.clone(), index);
        Some(index)
    }

    fn add(&mut self, mut row: OutlineRow, above: Option<usize>) -> usize {
        let index = self.nodes.len();
        if let Some(above) = above {
            row.depth = self.nodes[above].depth + 1;
            self.nodes[above].children += 1;
        }
        self.nodes.push(row);
        self.parents.push(above);
        self.children.entry(above).or_default().push(index);
        index
    }

    /// The rows that are asked for.
    pub(crate) fn window(&self, request: &OutlineRequest<'_>) -> OutlineWindow {
        let order = self.order(request);
        let end = (request.offset + request.limit).min(order.len());
        let shown = order.get(request.offset.min(order.len())..end).unwrap_or_default();
        let is_flat = request.flat || request.filter.is_some() || request.text.is_some();
        let shown_row = |index: &usize| {
            let mut row = self.nodes[*index].clone();
            if row.is(OutlineFilter::Running) && !self.is_at_work(request) {
                row.status = OutlineStatus::Lost;
            }
            if is_flat { OutlineRow { depth: 0, children: 0, ..row } } else { row }
        };
        OutlineWindow {
            total: order.len(),
            offset: request.offset,
            rows: shown.iter().map(shown_row).collect(),
            counts: self.counts(request),
            from: self.nodes.iter().filter_map(|row| row.started).min(),
            to: self.to,
            ended: self.ended,
            at_work: self.is_at_work(request),
            tokens: self.tokens(),
            cost: None,
            seq: self.seq,
        }
    }

    fn is_at_work(&self, request: &OutlineRequest<'_>) -> bool {
        request.is_open && !self.ended
    }

    fn tokens(&self) -> TokenUsage {
        self.usage.values().fold(TokenUsage::default(), |mut sum, tokens| {
            sum += *tokens;
            sum
        })
    }

    fn order(&self, request: &OutlineRequest<'_>) -> Vec<usize> {
        if request.flat || request.filter.is_some() || request.text.is_some() {
            let text = request.text.map(str::to_lowercase);
            let is_wanted = |row: &OutlineRow| {
                (row.kind == OutlineKind::Call || (text.is_some() && request.filter.is_none() && !request.flat))
                    && request.filter.is_none_or(|filter| self.is_wanted(row, filter, request))
                    && text.as_ref().is_none_or(|text| row.contains(text))
            };
            return (0..self.nodes.len()).filter(|index| is_wanted(&self.nodes[*index])).collect();
        }
        let closed: HashSet<&str> = request.closed.iter().copied().collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        let below = |index: Option<usize>| self.children.get(&index).into_iter().flatten().rev().copied();
        let mut stack: Vec<usize> = below(None).collect();
        while let Some(index) = stack.pop() {
            order.push(index);
            if !closed.contains(self.nodes[index].id.as_str()) {
                stack.extend(below(Some(index)));
            }
        }
        order
    }

    fn is_wanted(&self, row: &OutlineRow, filter: OutlineFilter, request: &OutlineRequest<'_>) -> bool {
        row.is(filter) && (filter != OutlineFilter::Running || self.is_at_work(request))
    }

    fn counts(&self, request: &OutlineRequest<'_>) -> OutlineCounts {
        let mut counts = OutlineCounts::default();
        for row in self.nodes.iter().filter(|row| row.kind == OutlineKind::Call) {
            counts.calls += 1;
            counts.failed += usize::from(row.is(OutlineFilter::Failed));
            counts.asked += usize::from(row.is(OutlineFilter::Asked));
            counts.denied += usize::from(row.is(OutlineFilter::Denied));
            counts.changed += usize::from(row.is(OutlineFilter::Changed));
            counts.running += usize::from(self.is_wanted(row, OutlineFilter::Running, request));
        }
        counts
    }
}

impl OutlineRow {
    fn is(&self, filter: OutlineFilter) -> bool {
        match filter {
            OutlineFilter::Failed => matches!(self.status, OutlineStatus::Failed | OutlineStatus::Denied),
            OutlineFilter::Asked => self.asked,
            OutlineFilter::Denied => self.status == OutlineStatus::Denied,
            OutlineFilter::Changed => self.changed > 0,
            OutlineFilter::Running => matches!(self.status, OutlineStatus::Running | OutlineStatus::Waiting),
        }
    }

    fn contains(&self, text: &str) -> bool {
        [&self.id, &self.name, &self.text].iter().any(|field| field.to_lowercase().contains(text))
            || self.code.as_ref().is_some_and(|code| code.contains(text))
    }
}

fn row(kind: OutlineKind, id: &str, name: &str, event: &Event) -> OutlineRow {
    OutlineRow {
        kind,
        depth: 0,
        id: id.to_owned(),
        name: name.to_owned(),
        text: String::new(),
        status: OutlineStatus::Running,
        decision: None,
        code: None,
        by: None,
        asked: false,
        changed: 0,
        started: Some(event.time),
        duration_ms: None,
        turn: event.turn,
        agent: event.trace_id.clone(),
        children: 0,
    }
}

fn apply_to_call(row: &mut OutlineRow, payload: &EventPayload, event: &Event) {
    match payload {
        EventPayload::CallStarted { tool, args, verdict, approval, .. } => {
            row.name.clone_from(tool);
            row.text = call_text(args);
            let decision = verdict.as_ref().map(|verdict| verdict.decision);
            row.decision = decision.map(|decision| decision.to_string());
            row.asked |= approval.is_some() || decision == Some(Decision::Ask);
            row.status = OutlineStatus::Running;
        }
        EventPayload::CallCompleted(ending) => {
            row.status = OutlineStatus::Ok;
            row.duration_ms = Some(ending.duration_ms);
            row.changed = row.changed.max(ending.files_changed.len() + ending.more_files_changed);
            row.code = ending.exit_code.filter(|code| *code != 0).map(|code| format!("exit {code}"));
        }
        EventPayload::CallFailed { error, class, ending } => {
            let is_refused = *class == toolgate_contract::ErrorClass::Policy;
            row.status = if is_refused { OutlineStatus::Denied } else { OutlineStatus::Failed };
            row.duration_ms = Some(ending.duration_ms);
            row.code = Some(error.code.as_str().to_owned());
            row.changed = row.changed.max(ending.files_changed.len() + ending.more_files_changed);
        }
        EventPayload::FilesChanging { changes, .. } => row.changed += changes.len(),
        EventPayload::ApprovalRequired { tool, effects, .. } => {
            row.name.clone_from(tool);
            let words: Vec<String> = effects.iter().map(ToString::to_string).collect();
            row.text = short(&words.join(", "));
            row.asked = true;
            row.status = OutlineStatus::Waiting;
        }
        EventPayload::ApprovalGranted { by, .. } => {
            row.by = Some(by.clone());
            row.status = OutlineStatus::Running;
        }
        EventPayload::ApprovalDenied { by, .. } => row.by = Some(by.clone()),
        EventPayload::QuestionAsked(_) => row.status = OutlineStatus::Waiting,
        EventPayload::QuestionAnswered { by } => {
            row.by = Some(by.clone());
            row.status = OutlineStatus::Running;
        }
        _ => {}
    }
    row.started = row.started.or(Some(event.time));
}
