//! Where a call may go beyond this machine, and what confinement kept from it.

use std::fmt::Debug;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Effect, ErrorCode, RuleName, ToolError};

/// Whether a connection may be made: asked for every host that a call wants to reach, and again for the address that a
/// name has led to. What it says comes from policy and from what was cleared with the call.
pub trait EgressPolicy: Debug + Send + Sync {
    /// Whether this host, a name or an address, may be connected to at this port.
    fn pass(&self, host: &str, port: u16) -> Result<(), Denial>;
    /// Whether the address may be used, to which a host that passes has led.
    fn arrive(&self, host: &str, port: u16, address: IpAddr) -> Result<(), Denial>;
    /// Hosts that were cleared with the call, in plain form, each with its port.
    fn cleared(&self) -> Vec<(String, u16)>;
}

/// Something that confinement kept from a call, and what would have been needed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    /// `network_denied`, `sandbox_denied`, or why policy hides a file; `not_found` or `io_error` of a host that may be reached
    /// and couldn't be.
    pub code: ErrorCode,
    /// What would have been needed, no more than that; nothing where nothing could be granted.
    pub missing: Vec<Effect>,
    /// Why, in a sentence for the person and the model.
    pub reason: String,
    /// The rule that forbids it; none where no rule speaks of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<RuleName>,
}

impl Denial {
    /// A connection that wasn't made.
    pub fn of_host(host: &str, port: u16, reason: impl Into<String>, rule: Option<RuleName>) -> Self {
        let missing = vec![Effect::Connect { host: host.to_owned(), port }];
        Self { code: ErrorCode::NetworkDenied, missing, reason: reason.into(), rule }
    }

    /// A hidden file that a command opened.
    pub fn of_decoy(path: &str, code: ErrorCode, why: &str, rule: Option<RuleName>) -> Self {
        let reason = format!("`{path}` wasn't read, the command saw a decoy of it: {why}");
        Self { code, missing: vec![Effect::read(path)], reason, rule }
    }

    /// Whether the call may not have noticed: what sees a decoy goes on with that.
    pub fn is_unnoticed(&self) -> bool {
        self.missing.iter().any(|effect| matches!(effect, Effect::Read { .. }))
    }

    /// Whether nothing was refused that could be granted: it only tells why a call may have failed.
    pub fn is_mere_reason(&self) -> bool {
        self.missing.is_empty()
    }

    /// What was missing, in words.
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
