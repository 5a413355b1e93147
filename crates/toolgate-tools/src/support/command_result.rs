//! The end of a command, for the tools that wait for one.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use toolgate_contract::{
    Denial, ErrorCode, Hands, ProcessExit, ProcessHandle, Right, SettledChanges, StopReason, Stream, ToolError,
};

/// Something that a command wanted and didn't get.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeniedAccess {
    /// `network_denied`, `sandbox_denied` or `sensitive_path`; `not_found` or `io_error` of a host that may be reached and couldn't
    /// be.
    code: &'static str,
    /// What would have been needed.
    #[serde(skip_serializing_if = "String::is_empty")]
    missing: String,
    /// Why it was refused.
    reason: String,
    /// What to ask for in `requested_permissions`, if it is needed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    request: Vec<String>,
    /// By which rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// What to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<&Denial> for DeniedAccess {
    fn from(denial: &Denial) -> Self {
        let request: Vec<String> = denial.missing.iter().filter_map(Right::of).map(|right| right.to_string()).collect();
        let rule = denial.rule.as_ref().map(|name| format!("{} ({})", name.rule, name.layer));
        let next = (request.is_empty() && !denial.is_mere_reason()).then(|| denial.code.next_step().to_owned());
        let (missing, reason) = (denial.missing_in_words(), denial.reason.clone());
        Self { code: denial.code.as_str(), missing, reason, request, rule, next }
    }
}

/// How a process ended, if it does so in time.
pub(crate) async fn ended(process: &dyn ProcessHandle, patience: Duration) -> Option<ProcessExit> {
    let mut progress = process.progress();
    let end = tokio::time::timeout(patience, progress.wait_for(|progress| progress.end.is_some())).await;
    end.ok()?.ok()?.end.clone()
}

/// A command that has ended, as its call tells of it.
pub(crate) struct CommandResult {
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// What confinement kept from it, if it failed or can't have noticed.
    pub(crate) denied: Vec<DeniedAccess>,
    pub(crate) duration_ms: u64,
    pub(crate) stopped: Option<StopReason>,
    pub(crate) changes: Option<SettledChanges>,
}

impl CommandResult {
    /// What a process left behind, noted as the call's.
    pub(crate) fn of(process: &dyn ProcessHandle, end: ProcessExit, hands: &Hands) -> Result<Self, ToolError> {
        let exit_code = end.code.map_err(|fault| ToolError::new(ErrorCode::IoError, fault))?;
        hands.ended(i64::from(exit_code));
        let stdout = hands.output(process, Stream::Stdout, "/stdout")?;
        let stderr = hands.output(process, Stream::Stderr, "/stderr")?;
        let denials = hands.denials(process, if process.facts().terminal { &stdout } else { &stderr });
        let is_told = |denial: &&Denial| exit_code != 0 || denial.is_unnoticed();
        let denied = denials.iter().filter(is_told).map(DeniedAccess::from).collect();
        Ok(Self {
            exit_code,
            stdout,
            stderr,
            denied,
            duration_ms: u64::try_from(end.duration.as_millis()).unwrap_or(u64::MAX),
            stopped: end.stopped,
            changes: hands.settled(process),
        })
    }
}
