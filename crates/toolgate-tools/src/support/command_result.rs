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
        let errors = match process.facts().terminal {
            true => stdout.clone(),
            false => format!("{stderr}\n{}", sanitizer_errors(&stdout)),
        };
        let denials = hands.denials(process, &errors);
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

/// What sanitizers say of themselves among a command's output: their reports are usually sent there (`2>&1`). Nothing else of it
/// counts as an error message, since it may be anybody's text.
fn sanitizer_errors(stdout: &str) -> String {
    let is_error =
        |line: &&str| line.starts_with("==") && (line.contains("Sanitizer") || line.contains("ShadowMemory"));
    stdout.lines().filter(is_error).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reports_of_sanitizers_count_as_errors_among_output() {
        let report =
            "==9==ERROR: AddressSanitizer failed to allocate 0xdfff0001000 bytes\n==9==ReserveShadowMemoryRange failed";
        let stdout = format!("cat: /root/x: Permission denied\n{report}\nAborted\n");
        assert_eq!(sanitizer_errors(&stdout), report);
    }
}
