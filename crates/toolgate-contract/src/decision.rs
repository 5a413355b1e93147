//! What policy answers. A decision is ordered, so the strictest of many is their maximum; a verdict is a decision with
//! its reasons.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Effect, ErrorCode, WorkspacePath};

/// Whether a call may run. Ordered: the strictest wins by `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The call may run.
    Allow,
    /// The call may run only if a person, or a grant that a person gave, approves it.
    Ask,
    /// The call may not run, and no approval changes that.
    Deny,
}

/// The source of a rule, weakest authority first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The preset and the built-in rules.
    Builtin,
    /// Flags and environment variables of this run.
    Flags,
    /// The workspace's own file, written by the author of the repository.
    Workspace,
    /// The user's configuration.
    User,
    /// The administrator's configuration; no other layer loosens it.
    Managed,
}

/// A rule in a form in which a person can find it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleName {
    /// The rule in words, such as `deny path **/.ssh/**`.
    pub rule: String,
    /// The layer that it is in.
    pub layer: Layer,
}

/// One rule's opinion on one effect of the call, or on the entire call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What this rule decides.
    pub decision: Decision,
    /// The effect in question; none if the opinion is about the tool itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// The rule.
    #[serde(flatten)]
    pub name: RuleName,
    /// The reason, in a sentence for the person and the model.
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
    /// For `ask`: everything that has to be approved, including the deciding finding.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub asks: Vec<Finding>,
    /// Whether the call may only run in a sandbox.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub confined: bool,
    /// Whether its commands, as policy reads them, change nothing: they run where nothing can be changed.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub only_reads: bool,
    /// What its commands name that would be quarantined otherwise: whoever approves the call approves this.
    #[serde(skip_serializing_if = "NamedChanges::is_empty", default)]
    pub named: NamedChanges,
    /// The findings that didn't decide.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub lost: Vec<Finding>,
}

/// Changes that the commands of a call name and that would be quarantined if nobody had been asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedChanges {
    /// Private keys that are made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub new_keys: Vec<WorkspacePath>,
    /// Remotes of git repositories that get another address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remote_urls: Vec<RemoteUrl>,
}

impl NamedChanges {
    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Another address for a remote of a git repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteUrl {
    /// The directory that git runs in.
    pub directory: WorkspacePath,
    /// The setting, such as `remote.origin.url`.
    pub setting: String,
    /// The new address.
    pub url: String,
}

impl Verdict {
    /// The verdict after everything else was approved: only the asks about these effects are still open.
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
