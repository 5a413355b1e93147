//! Asking a person (C-17 to C-20): what they are shown, what they can answer, and what an answer covers later.

mod queue;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_contract::{ApprovalScope, BoxFuture, Effect, Risk, ToolError, schemars};

pub use self::queue::{ApprovalQueueClient, QueueItem, QueuedQuestion};
pub(crate) use self::queue::{QueuedAnswerer, Requester};

/// Everything a person needs to decide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequest {
    /// The call in question.
    pub tool_call_id: String,
    /// The tool.
    pub tool: String,
    /// How much harm it can do.
    pub risk: Risk,
    /// Why a person is asked.
    pub reason: String,
    /// Why the model wants it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub justification: Option<String>,
    /// The arguments, redacted.
    pub args: Value,
    /// All that the call will touch.
    pub effects: Vec<Effect>,
    /// For a change: the unified diff.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub preview: Option<String>,
    /// What each answer would grant, narrowest first.
    pub scopes: Vec<ApprovalOption>,
    /// A command that repeats this call with approval; none for what only the session itself can do.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub replay: Option<String>,
}

/// One possible yes, and exactly what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalOption {
    /// How far it reaches.
    pub scope: ApprovalScope,
    /// What it would let through, in words; for `always`, the very rule that would be written.
    pub grants: String,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Yes, this far.
    Granted {
        /// How far it reaches.
        scope: ApprovalScope,
        /// Who said so.
        by: String,
    },
    /// No.
    Denied {
        /// Who said so.
        by: String,
        /// Their words, for the model.
        reason: Option<String>,
    },
    /// Nobody could be asked.
    Nobody,
}

/// Whoever answers an ask. Each front end brings its own.
pub trait Approver: Send + Sync {
    /// Asks, and waits for the answer. Dropped when the call is cancelled.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer>;
}

/// For programs and pipelines: nobody is there.
pub struct NobodyToAsk;

impl Approver for NobodyToAsk {
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(ApprovalAnswer::Nobody))
    }
}

/// Where an "always" is written down: the user's configuration.
pub trait UserRules: Send + Sync {
    /// Appends rules, as TOML.
    fn append_rules(&self, rules: &str) -> Result<(), ToolError>;
}
