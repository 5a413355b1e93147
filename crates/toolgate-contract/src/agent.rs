//! Agents as other crates see them: what an agent has used, how its work ended, and how a cleared tool starts others.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BoxFuture, CancellationToken, ToolError};

/// Tokens that a model read and wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    /// Tokens read by the model.
    pub input: u64,
    /// Tokens written by the model.
    pub output: u64,
}

impl TokenUsage {
    /// The sum of both.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
    }
}

/// How an agent's work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model gave its final answer.
    Answered,
    /// The limit on turns was reached.
    TurnLimit,
    /// The time limit was reached.
    TimeLimit,
    /// The limit on tokens was reached.
    TokenLimit,
    /// The required context no longer fits the model's window.
    ContextLimit,
    /// The same calls had the same results, again and again.
    NoProgress,
    /// The model's answers couldn't be understood, several times in a row.
    InvalidAnswers,
    /// The model couldn't be reached, or refused to work.
    ModelFailed,
    /// The model failed so often that it isn't called for a while.
    CircuitOpen,
    /// The agent was cancelled.
    Cancelled,
    /// Events could no longer be recorded.
    Unrecorded,
}

impl FinishReason {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::TurnLimit => "turn_limit",
            Self::TimeLimit => "time_limit",
            Self::TokenLimit => "token_limit",
            Self::ContextLimit => "context_limit",
            Self::NoProgress => "no_progress",
            Self::InvalidAnswers => "invalid_answers",
            Self::ModelFailed => "model_failed",
            Self::CircuitOpen => "circuit_open",
            Self::Cancelled => "cancelled",
            Self::Unrecorded => "unrecorded",
        }
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A task for another agent.
#[derive(Debug, Clone)]
pub struct SubagentTask {
    /// Which kind of agent.
    pub agent: String,
    /// What the agent should achieve.
    pub objective: String,
    /// The call that starts the agent; the agent's own calls are its children in the journal.
    pub tool_call_id: String,
    /// Cancels the agent.
    pub cancel: Option<CancellationToken>,
}

/// The status of an agent that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SubagentStatus {
    /// The agent's id.
    pub id: String,
    /// Which kind of agent.
    pub agent: String,
    /// How its work ended; none while it is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// Its final answer, or why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Other agents that the caller may start. They have the caller's permissions or fewer.
pub trait Agents: Send + Sync {
    /// Starts an agent and returns its id.
    fn send(&self, task: SubagentTask) -> Result<String, ToolError>;
    /// Sends a message to a running agent.
    fn message(&self, id: &str, text: &str) -> Result<(), ToolError>;
    /// Waits until an agent has ended, at most for `most`.
    fn wait<'a>(&'a self, id: &'a str, most: Option<Duration>) -> BoxFuture<'a, Result<SubagentStatus, ToolError>>;
    /// All agents that the caller has started.
    fn list(&self) -> Vec<SubagentStatus>;
    /// Stops an agent.
    fn stop(&self, id: &str) -> Result<(), ToolError>;
}
