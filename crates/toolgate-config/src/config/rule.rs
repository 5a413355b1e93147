//! `[[rules]]`: one rule of a file, as written.

use serde::{Deserialize, Serialize};
use toolgate_contract::{Access, Decision, Permission, Risk};

/// One rule, as written. Exactly one of `tool`, `risk`, `permission`, `path`, `host` and `command` is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// What it says.
    pub decision: Decision,
    /// A pattern over tool names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// A risk; to ask and deny it stands for every higher one too, to allow for every lower one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// A permission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
    /// A pattern over paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A domain, `*.domain`, address or range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The words that a command begins with; each may be a pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// For `command`: no further words may follow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    /// For `command`: the options that it may have; each may be a pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<Vec<String>>,
    /// For `command`: a pattern over the directory it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// For `command`: patterns over all that it may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<Vec<String>>,
    /// For `path`: the kinds of access; all if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Vec<Access>>,
    /// Why, in a sentence for the person and the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Examples that must match.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Examples that must not match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_match: Vec<String>,
    /// Where it stands in its file.
    #[serde(skip)]
    pub line: Option<usize>,
}

impl RuleConfig {
    /// A rule about nothing yet.
    pub fn new(decision: Decision) -> Self {
        Self {
            decision,
            tool: None,
            risk: None,
            permission: None,
            path: None,
            host: None,
            command: None,
            exact: false,
            flags: None,
            workdir: None,
            writes: None,
            access: None,
            reason: None,
            matches: Vec::new(),
            no_match: Vec::new(),
            line: None,
        }
    }

    /// What the rule is about, such as `path`; a proper rule is about one thing.
    pub fn kinds(&self) -> Vec<&'static str> {
        let set = [
            ("tool", self.tool.is_some()),
            ("risk", self.risk.is_some()),
            ("permission", self.permission.is_some()),
            ("path", self.path.is_some()),
            ("host", self.host.is_some()),
            ("command", self.command.is_some()),
        ];
        set.into_iter().filter(|(_, present)| *present).map(|(kind, _)| kind).collect()
    }
}
