//! Which hosts a call may connect to, and what the sandbox denied it.

use std::fmt::Debug;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Effect, ErrorCode, RuleName, ToolError};

/// Decides about connections: called for every host that a call wants to reach, and again for each resolved address.
/// The answer comes from policy and from the approvals of the call.
pub trait EgressPolicy: Debug + Send + Sync {
    /// Whether a connection to this host, a name or an address, is allowed at this port.
    fn pass(&self, host: &str, port: u16) -> Result<(), Denial>;
    /// Whether the address that an allowed host resolved to may be used.
    fn arrive(&self, host: &str, port: u16, address: IpAddr) -> Result<(), Denial>;
    /// Hosts that were approved with the call, in normalized form, each with its port.
    fn cleared(&self) -> Vec<(String, u16)>;
    /// Whether a call can ask for more hosts than these.
    fn takes_requests(&self) -> bool {
        true
    }
}

/// Something that the sandbox or the proxy denied a call, and the effects that would permit it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    /// `network_denied`, `sandbox_denied`, or why policy hides a file; `not_found` or `io_error` for an allowed host
    /// that couldn't be reached.
    pub code: ErrorCode,
    /// The effects that would have been needed; empty if nothing can be granted.
    pub missing: Vec<Effect>,
    /// The reason, in a sentence for the person and the model.
    pub reason: String,
    /// The rule that denies it; none if no rule does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<RuleName>,
}

impl Denial {
    /// A connection that was denied.
    pub fn of_host(host: &str, port: u16, reason: impl Into<String>, rule: Option<RuleName>) -> Self {
        let missing = vec![Effect::Connect { host: host.to_owned(), port }];
        Self { code: ErrorCode::NetworkDenied, missing, reason: reason.into(), rule }
    }

    /// A hidden file that a command opened.
    pub fn of_decoy(path: &str, code: ErrorCode, why: &str, rule: Option<RuleName>) -> Self {
        let reason = format!("`{path}` wasn't read, the command saw a decoy of it: {why}");
        Self { code, missing: vec![Effect::read(path)], reason, rule }
    }

    /// Whether the call may not have noticed: a process that reads a decoy continues with it.
    pub fn is_unnoticed(&self) -> bool {
        self.missing.iter().any(|effect| matches!(effect, Effect::Read { .. }))
    }

    /// Whether nothing was denied that could be granted: this only explains why a call may have failed.
    pub fn is_mere_reason(&self) -> bool {
        self.missing.is_empty()
    }

    /// The missing effects, in words.
    pub fn missing_in_words(&self) -> String {
        self.missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl From<Denial> for ToolError {
    fn from(denial: Denial) -> Self {
        let details = json!({ "missing": denial.missing, "rule": denial.rule });
        Self { missing: denial.missing, ..Self::new(denial.code, denial.reason).with_details(details) }
    }
}
