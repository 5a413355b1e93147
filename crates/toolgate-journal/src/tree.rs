//! The tree of a run, rebuilt from its events: agent → turn → call (C-33). Plain data; a front end draws it.

use jiff::Timestamp;
use serde::Serialize;
use toolgate_contract::{Decision, ErrorCode, Event, Happening, Message, Risk, RuleName, RunFacts, Scope};

/// The agent of a run, with all it did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tree {
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
    /// Its turns, in the order in which they began.
    pub turns: Vec<Turn>,
}

/// One round of model and tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Turn {
    /// Its number; none for what belongs to no turn.
    pub number: Option<u64>,
    /// Its calls, in the order in which they were first heard of.
    pub calls: Vec<CallNode>,
    /// What was said to the person outside any call.
    pub messages: Vec<Message>,
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
    pub status: Status,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// How it was judged.
    pub decision: Option<Decision>,
    /// The rule that decided.
    pub rule: Option<RuleName>,
    /// What became of the question to the person, or the grant that it ran under.
    pub approval: Option<Approval>,
    /// What it said to the person.
    pub messages: Vec<Message>,
}

/// How a call stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
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
        scope: Scope,
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
pub fn tree<'a>(events: impl IntoIterator<Item = &'a Event>) -> Tree {
    let mut tree = Tree::default();
    for event in events {
        tree.take(event);
    }
    tree
}

impl Tree {
    fn take(&mut self, event: &Event) {
        if self.run.is_empty() {
            self.run.clone_from(&event.run);
        }
        match &event.happening {
            Happening::RunStarted(facts) => {
                self.facts = Some(facts.clone());
                self.started = Some(event.time);
            }
            Happening::RunEnded => self.ended = Some(event.time),
            Happening::JournalRecovered { .. } => self.recovered += 1,
            Happening::Display(message) => match self.call(event) {
                Some(call) => call.messages.push(message.clone()),
                None => self.turn(event.turn).messages.push(message.clone()),
            },
            happening => {
                if let Some(call) = self.call(event) {
                    call.take(happening, event.time);
                }
            }
        }
    }

    fn turn(&mut self, number: Option<u64>) -> &mut Turn {
        let found = self.turns.iter().position(|turn| turn.number == number).unwrap_or_else(|| {
            self.turns.push(Turn { number, ..Turn::default() });
            self.turns.len() - 1
        });
        &mut self.turns[found]
    }

    /// The call that an event belongs to; it is in the turn in which it was first heard of.
    fn call(&mut self, event: &Event) -> Option<&mut CallNode> {
        let id = event.tool_call_id.as_ref()?;
        let place = |turns: &[Turn]| {
            turns.iter().enumerate().rev().find_map(|(turn, Turn { calls, .. })| {
                calls.iter().rposition(|call| call.tool_call_id == *id).map(|call| (turn, call))
            })
        };
        if let Some((turn, call)) = place(&self.turns) {
            return self.turns[turn].calls.get_mut(call);
        }
        let calls = &mut self.turn(event.turn).calls;
        calls.push(CallNode { tool_call_id: id.clone(), trace_id: event.trace_id.clone(), ..CallNode::default() });
        calls.last_mut()
    }
}

impl CallNode {
    fn take(&mut self, happening: &Happening, time: Timestamp) {
        match happening {
            Happening::CallStarted { tool, version, verdict, approval, risk, .. } => {
                self.tool.clone_from(tool);
                self.version.clone_from(version);
                self.risk = *risk;
                self.started = Some(time);
                self.decision = verdict.as_ref().map(|verdict| verdict.decision);
                self.rule = verdict.as_ref().map(|verdict| verdict.decided_by.name.clone());
                if let (Some(scope), None) = (approval, &self.approval) {
                    self.approval = Some(Approval::Granted { scope: *scope, by: None });
                }
            }
            Happening::CallCompleted(ending) => self.end(Status::Ok, ending.duration_ms),
            Happening::CallFailed { error, ending, .. } => self.end(Status::Failed(error.code), ending.duration_ms),
            Happening::ApprovalRequired { tool, reason, .. } => {
                self.tool.clone_from(tool);
                self.approval = Some(Approval::Asked { reason: reason.clone() });
            }
            Happening::ApprovalGranted { scope, by } => {
                self.approval = Some(Approval::Granted { scope: *scope, by: Some(by.clone()) });
            }
            Happening::ApprovalDenied { by, reason } => {
                self.approval = Some(Approval::Denied { by: by.clone(), reason: reason.clone() });
            }
            Happening::RunStarted(_)
            | Happening::RunEnded
            | Happening::FilesChanging { .. }
            | Happening::RequestRefused(_)
            | Happening::Display(_)
            | Happening::QuestionAsked(_)
            | Happening::QuestionAnswered { .. }
            | Happening::JournalRecovered { .. } => {}
        }
    }

    fn end(&mut self, status: Status, duration_ms: u64) {
        self.status = status;
        self.duration_ms = Some(duration_ms);
    }
}
