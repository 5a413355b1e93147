//! What policy answers. A decision is an ordered word, so the strictest of many is their maximum; a verdict is a
//! decision with its reasons.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Effect, ErrorCode};

/// May this call run? Ordered: the strictest wins by `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may.
    Allow,
    /// Only if a person, or a grant that a person gave, says so.
    Ask,
    /// It may not, and no approval changes that.
    Deny,
}

/// Where a rule came from, weakest authority first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The preset and what is built in.
    Builtin,
    /// Flags and environment variables of this run.
    Flags,
    /// The workspace's own file, written by whoever wrote the repository.
    Workspace,
    /// The user's configuration.
    User,
    /// The administrator's; nobody loosens it.
    Managed,
}

/// A rule as a person can find it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleName {
    /// The rule in words, such as `deny path **/.ssh/**`.
    pub rule: String,
    /// Where it came from.
    pub layer: Layer,
}

/// One rule's opinion on one effect of the call, or on the call as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What this rule says.
    pub decision: Decision,
    /// The effect in question; none when it is about the tool itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// The rule that says it.
    #[serde(flatten)]
    pub name: RuleName,
    /// Why, in a sentence for the person and the model.
    pub reason: String,
    /// For a denial: the error code that the caller gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
}

/// A decision with its reasons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The strictest of all findings.
    pub decision: Decision,
    /// The finding that decided.
    pub decided_by: Finding,
    /// For `ask`: everything that has to be approved, the deciding finding included.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub asks: Vec<Finding>,
    /// The call runs only where a sandbox holds it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub confined: bool,
    /// The findings that lost.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub lost: Vec<Finding>,
}

impl Verdict {
    /// The verdict once everything else was approved: only what is asked about these effects is still open.
    #[must_use]
    pub fn asking_only(mut self, effects: &[Effect]) -> Self {
        self.asks.retain(|ask| ask.effect.as_ref().is_some_and(|effect| effects.contains(effect)));
        if self.decision == Decision::Ask && self.asks.is_empty() {
            self.decision = Decision::Allow;
        }
        self
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Builtin => "builtin",
            Self::Flags => "flags",
            Self::Workspace => "workspace",
            Self::User => "user",
            Self::Managed => "managed",
        })
    }
}
