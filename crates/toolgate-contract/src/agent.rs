//! Agents, as everybody else sees them: what one has used, how its work ended, and how a cleared tool sets others to
//! work (C-41). How an agent works is for whoever implements this to know.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BoxFuture, CancellationToken, ToolError};

/// What a model was given and what it wrote, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Given to the model.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
}

impl TokenUsage {
    /// Both together.
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

/// How an agent's work ended (C-39).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model gave its final answer.
    Answered,
    /// All turns were used.
    TurnLimit,
    /// The time was up.
    TimeLimit,
    /// All tokens were used.
    TokenLimit,
    /// What the model has to know no longer fits.
    ContextLimit,
    /// The same calls brought the same results, again and again.
    NoProgress,
    /// The model's answers couldn't be understood, several times in a row.
    InvalidAnswers,
    /// The model couldn't be reached, or refused to work.
    ModelFailed,
    /// The model failed so often that it is left alone for a while.
    CircuitOpen,
    /// Somebody stopped it.
    Cancelled,
    /// What happens could no longer be recorded.
    Unrecorded,
}

impl FinishReason {
    /// The word for it in JSON.
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

/// Something for another agent to do.
#[derive(Debug, Clone)]
pub struct SubagentTask {
    /// Which kind of agent.
    pub agent: String,
    /// What it should achieve.
    pub objective: String,
    /// The call that sends it; the agent's own calls stand beneath this one in the record.
    pub tool_call_id: String,
    /// Stops the agent.
    pub cancel: Option<CancellationToken>,
}

/// What became of an agent that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SubagentStatus {
    /// The agent's id.
    pub id: String,
    /// Which kind of agent.
    pub agent: String,
    /// How its work ended; none while it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// Its final answer, or why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Other agents that the caller may set to work. Their rights are the caller's or less.
pub trait Agents: Send + Sync {
    /// Sends one on its way and gives its id.
    fn send(&self, errand: SubagentTask) -> Result<String, ToolError>;
    /// Tells one that works something more.
    fn message(&self, id: &str, text: &str) -> Result<(), ToolError>;
    /// Waits until one has ended, at most so long.
    fn wait<'a>(&'a self, id: &'a str, most: Option<Duration>) -> BoxFuture<'a, Result<SubagentStatus, ToolError>>;
    /// All that the caller has sent.
    fn list(&self) -> Vec<SubagentStatus>;
    /// Stops one.
    fn stop(&self, id: &str) -> Result<(), ToolError>;
}
