//! The outcome of an agent's work.

use std::time::Duration;

use serde::Serialize;
use toolgate_contract::{FinishReason, TokenUsage};

/// The outcome of an agent's work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentOutcome {
    /// The agent's id, which is the trace id of its events.
    pub id: String,
    /// How it ended.
    pub finish: FinishReason,
    /// The final answer, or why there is none and what to do next. Redacted.
    pub summary: String,
    /// How many turns it took.
    pub turns: u64,
    /// Its token usage, without its subagents.
    pub tokens: TokenUsage,
    /// How long it took.
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    pub duration: Duration,
}

impl AgentOutcome {
    /// The final answer, if there is one.
    pub fn answer(&self) -> Option<&str> {
        (self.finish == FinishReason::Answered).then_some(self.summary.as_str())
    }
}

fn milliseconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
