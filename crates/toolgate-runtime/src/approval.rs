//! Approval of calls by a person: what the person is shown, what they can answer, and what an answer covers later.

mod queue;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_contract::{ApprovalScope, BoxFuture, Effect, Risk, SkillOrigin, schemars};

pub use self::queue::{ApprovalQueueClient, QueueItem, QueuedQuestion};
pub(crate) use self::queue::{QueuedAnswerer, Requester};

/// Everything a person needs to decide about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequest {
    /// The call in question.
    pub tool_call_id: String,
    /// The tool.
    pub tool: String,
    /// How much harm it can do.
    pub risk: Risk,
    /// Why approval is needed.
    pub reason: String,
    /// Why the model wants it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub justification: Option<String>,
    /// The arguments, redacted.
    pub args: Value,
    /// Everything that the call affects.
    pub effects: Vec<Effect>,
    /// The skill that the call uses, such as the one whose script it runs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub skill: Option<Box<SkillOrigin>>,
    /// For a change: the unified diff.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub preview: Option<String>,
    /// What each answer would grant, narrowest first.
    pub scopes: Vec<ApprovalOption>,
    /// A command that repeats this call with approval; none for calls that only this session can make.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub replay: Option<String>,
}

impl ApprovalRequest {
    /// Whether this scope can be granted.
    pub fn offers(&self, scope: ApprovalScope) -> bool {
        self.scopes.iter().any(|offer| offer.scope == scope)
    }
}

/// One possible approval, and exactly what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalOption {
    /// How far it reaches.
    pub scope: ApprovalScope,
    /// What it would allow, where and until when, in words.
    pub grants: String,
    /// When it would end at the latest; none for a single call, and if it has no end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<String>")]
    pub until: Option<Timestamp>,
}

/// The answer to an approval request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Approved.
    Granted {
        /// How far it reaches.
        scope: ApprovalScope,
        /// Who answered.
        by: String,
    },
    /// Refused.
    Denied {
        /// Who answered.
        by: String,
        /// Their reason, for the model.
        reason: Option<String>,
    },
    /// Refused, and the whole run ends: its other calls are cancelled, and no more are made.
    Aborted {
        /// Who answered.
        by: String,
        /// Their reason.
        reason: Option<String>,
    },
    /// No person could be asked.
    Nobody,
}

/// Answers approval requests. Each front end has its own implementation.
pub trait Approver: Send + Sync {
    /// Asks, and waits for the answer. The future is dropped when the call is cancelled.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer>;
}

/// An approver for programs and pipelines, where no person can be asked.
pub struct NobodyToAsk;

impl Approver for NobodyToAsk {
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(ApprovalAnswer::Nobody))
    }
}
