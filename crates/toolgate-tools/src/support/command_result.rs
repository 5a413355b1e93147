//! The end of a command, for the tools that wait for one.

use std::time::Duration;

use toolgate_contract::{
    Denial, DeniedAccess, ErrorCode, Hands, ProcessExit, ProcessHandle, SettledChanges, StopReason, Stream, ToolError,
};

/// How a process ended, if it does so in time.
pub(crate) async fn ended(process: &dyn ProcessHandle, timeout: Duration) -> Option<ProcessExit> {
    let mut progress = process.progress();
    let end = tokio::time::timeout(timeout, progress.wait_for(|progress| progress.end.is_some())).await;
    end.ok()?.ok()?.end.clone()
}

/// A command that has ended, as its call reports it.
pub(crate) struct CommandResult {
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) duration_ms: u64,
    pub(crate) stopped: Option<StopReason>,
    pub(crate) changes: Option<SettledChanges>,
}

impl CommandResult {
    /// The result of a process, recorded with the call.
    pub(crate) fn of(process: &dyn ProcessHandle, end: ProcessExit, hands: &dyn Hands) -> Result<Self, ToolError> {
        let exit_code = end.code.map_err(|fault| ToolError::new(ErrorCode::IoError, fault))?;
        hands.ended(i64::from(exit_code));
        let stdout = hands.output(process, Stream::Stdout, "/stdout")?;
        let stderr = hands.output(process, Stream::Stderr, "/stderr")?;
        let denials = hands.denials(process, if process.facts().terminal { &stdout } else { &stderr });
        let is_reported = |denial: &&Denial| exit_code != 0 || denial.is_unnoticed();
        hands.report_denied(denials.iter().filter(is_reported).map(DeniedAccess::from).collect());
        Ok(Self {
            exit_code,
            stdout,
            stderr,
            duration_ms: u64::try_from(end.duration.as_millis()).unwrap_or(u64::MAX),
            stopped: end.stopped,
            changes: hands.settled(process),
        })
    }
}
