//! The same events as database rows, for queries across calls and runs. A store is a view of the journals: it may lag,
//! be lost and be rebuilt, and no call ever waits for it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use toolgate_contract::{ApprovalScope, Decision, ErrorClass, ErrorCode, FinishReason, Layer, Risk, TokenUsage};

use crate::{JournalError, RecordedEvent};

/// A database of events.
pub trait EventStore: Send + Sync {
    /// Applies events of a run, all or none. Events that it has already change nothing, in whatever order they arrive.
    fn apply(&self, run: &str, events: &[RecordedEvent]) -> Result<(), JournalError>;
    /// Runs, newest first.
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, JournalError>;
    /// One run.
    fn run(&self, id: &str) -> Result<Option<RunRow>, JournalError>;
    /// The calls of a run, in the order in which they started.
    fn calls(&self, run: &str) -> Result<Vec<CallRow>, JournalError>;
    /// Calls of all runs whose tool, arguments, changed paths or commands contain a text, newest first.
    fn search_calls(&self, filter: &CallFilter) -> Result<Vec<CallRow>, JournalError>;
    /// Events of a run after number `after`, in order.
    fn events(&self, run: &str, after: u64, limit: usize) -> Result<Vec<RecordedEvent>, JournalError>;
    /// Events of one kind, such as `command.misread`, newest first; of one workspace, or of all.
    fn events_of_kind(
        &self,
        kind: &str,
        workspace: Option<&str>,
        limit: usize,
    ) -> Result<Vec<RecordedEvent>, JournalError>;
    /// Up to where no event of the run is missing.
    fn indexed_up_to(&self, run: &str) -> Result<IndexedPart, JournalError>;
    /// Deletes a run.
    fn clear(&self, run: &str) -> Result<(), JournalError>;
}

/// The beginning of a run's journal of which a store misses nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexedPart {
    /// The number of its last event; 0 if there is none.
    pub seq: u64,
    /// How many bytes its lines have in the journal.
    pub bytes: u64,
}

/// Which runs to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// Only those of this session.
    pub session: Option<String>,
    /// Only those of this workspace.
    pub workspace: Option<String>,
    /// Only those whose id, session or task contains this, whatever its case.
    pub text: Option<String>,
    /// Only those that began before this time: the next page after one whose last run began then.
    pub before: Option<Timestamp>,
    /// At most this many.
    pub limit: usize,
}

/// Which calls to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFilter {
    /// What their tool, arguments, changed paths or commands contain, whatever its case.
    pub text: String,
    /// Only those of this session.
    pub session: Option<String>,
    /// Only those of this workspace.
    pub workspace: Option<String>,
    /// At most this many.
    pub limit: usize,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self { session: None, workspace: None, text: None, before: None, limit: 100 }
    }
}

/// A run, as far as its events are known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRow {
    /// Its id.
    pub id: String,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// The workspace's directory.
    pub workspace: Option<String>,
    /// The session that it belongs to.
    pub session: Option<String>,
    /// The policy preset.
    pub preset: Option<String>,
    /// The front end that received the calls.
    pub front_end: Option<String>,
    /// How many events it has.
    pub events: u64,
    /// How many calls.
    pub calls: u64,
    /// How many of the calls failed.
    pub failed: u64,
    /// The first task of an agent in it.
    pub task: Option<String>,
    /// How the last agent in it that ended did so.
    pub outcome: Option<RunOutcome>,
    /// The tokens that the agents in it used that have ended, by model.
    pub usage: BTreeMap<String, TokenUsage>,
}

/// How an agent's work ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunOutcome {
    /// How it ended.
    pub finish: FinishReason,
    /// The number of turns.
    pub turns: u64,
    /// The tokens that it used.
    pub tokens: TokenUsage,
}

/// A call, as far as its events are known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallRow {
    /// Its run.
    pub run: String,
    /// Its id.
    pub tool_call_id: String,
    /// The tool.
    pub tool: Option<String>,
    /// The tool's version.
    pub version: Option<String>,
    /// How much harm the tool can do.
    pub risk: Option<Risk>,
    /// The decision of policy.
    pub decision: Option<Decision>,
    /// The rule that decided.
    pub rule: Option<String>,
    /// Where that rule came from.
    pub layer: Option<Layer>,
    /// The scope of the approval that it ran under.
    pub approval: Option<ApprovalScope>,
    /// When it started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Whether it succeeded; none while it runs.
    pub ok: Option<bool>,
    /// The error code, if it failed.
    pub error_code: Option<ErrorCode>,
    /// The class of the error.
    pub error_class: Option<ErrorClass>,
    /// The exit code, for commands.
    pub exit_code: Option<i64>,
    /// Whether its payload was shortened.
    pub truncated: bool,
    /// Whether a secret was replaced.
    pub redacted: bool,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// Paths that were created, changed or removed.
    pub files_changed: Vec<String>,
    /// Commands that ran.
    pub commands_run: Vec<String>,
    /// The arguments, redacted.
    pub args: Option<Value>,
}
