//! The program's exit codes. Documented in the README and in `toolgate --help`.

use std::process::ExitCode;

use toolgate_contract::{ErrorClass, ErrorCode, FinishReason, Reply, ToolError};
use toolgate_journal::JournalError;
use toolgate_workspace::WorkspaceError;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It worked.
    Ok,
    /// The tool, or a check, failed.
    Failed,
    /// The command line, the arguments or the configuration are wrong.
    Usage,
    /// Policy or a person refused.
    Denied,
    /// A person has to approve.
    ApprovalNeeded,
    /// The database that hosts share isn't available.
    Unavailable,
    /// The exit code of the command that the person ran.
    Code(u8),
}

impl Exit {
    /// The code for a reply. A command that ran gives its own, as a shell would.
    pub(crate) fn of_reply(reply: &Reply) -> Self {
        let of_command = || reply.payload.as_ref()?.get("exit_code")?.as_i64();
        match (&reply.error, of_command()) {
            (Some(error), _) => Self::of_tool_error(error),
            (None, None | Some(0)) => Self::Ok,
            (None, Some(code)) => u8::try_from(code).map_or(Self::Failed, Self::Code),
        }
    }

    pub(crate) fn of_tool_error(error: &ToolError) -> Self {
        match (error.code, error.code.class()) {
            (ErrorCode::ApprovalRequired, _) => Self::ApprovalNeeded,
            // As a shell reports a program that was interrupted.
            (ErrorCode::Cancelled, _) => Self::Code(130),
            (_, ErrorClass::Validation) => Self::Usage,
            (_, ErrorClass::Policy) => Self::Denied,
            _ => Self::Failed,
        }
    }

    /// The code for the end of a task. Each end has its own, so that a program can distinguish them.
    pub(crate) fn of_finish(finish: FinishReason) -> Self {
        match finish {
            FinishReason::Answered => Self::Ok,
            FinishReason::Unrecorded => Self::Failed,
            FinishReason::TurnLimit => Self::Code(10),
            FinishReason::TimeLimit => Self::Code(11),
            FinishReason::TokenLimit => Self::Code(12),
            FinishReason::ContextLimit => Self::Code(13),
            FinishReason::NoProgress => Self::Code(14),
            FinishReason::InvalidAnswers => Self::Code(15),
            FinishReason::ModelFailed => Self::Code(16),
            FinishReason::CircuitOpen => Self::Code(17),
            FinishReason::Cancelled => Self::Code(130),
        }
    }

    /// The code of an error that has none of its own, for programs.
    pub(crate) fn code_name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Denied => "denied",
            Self::ApprovalNeeded => "approval_required",
            Self::Unavailable => "unavailable",
            Self::Ok | Self::Failed | Self::Code(_) => "failed",
        }
    }

    /// The code for an error before any tool was reached.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        let is_of_journal = error.is::<JournalError>()
            || matches!(error.downcast_ref(), Some(WorkspaceError::Journal(_) | WorkspaceError::Record(_)));
        match tool_error_in(error) {
            Some(error) => Self::of_tool_error(error),
            None if is_unavailable(error) => Self::Unavailable,
            None if is_of_journal => Self::Failed,
            None => Self::Usage,
        }
    }
}

/// Whether the error comes from a database that can't be reached, so that trying again later may help.
fn is_unavailable(error: &anyhow::Error) -> bool {
    let of_journal = match error.downcast_ref() {
        Some(WorkspaceError::Journal(error) | WorkspaceError::Store(error)) => Some(error),
        _ => error.downcast_ref(),
    };
    matches!(of_journal, Some(JournalError::Unavailable { .. }))
}

/// The tool error that an error is, or holds.
pub(crate) fn tool_error_in(error: &anyhow::Error) -> Option<&ToolError> {
    match error.downcast_ref() {
        Some(WorkspaceError::Tool(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Denied => 3,
            Exit::ApprovalNeeded => 4,
            Exit::Unavailable => 5,
            Exit::Code(code) => code,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_down_has_a_code_of_its_own() {
        let down = || JournalError::Unavailable { database: "toolgate at host".into(), source: "refused".into() };
        let errors = [anyhow::Error::new(down()), WorkspaceError::from(down()).into()];
        for error in errors.into_iter().flat_map(|error| [Exit::of(&error), Exit::of(&error.context("more"))]) {
            assert_eq!(ExitCode::from(error), ExitCode::from(5));
        }
        assert_eq!(Exit::of(&JournalError::Store("full".into()).into()), Exit::Failed);
    }

    #[test]
    fn every_error_code_has_its_exit_code() {
        let table = [
            (ErrorCode::UnknownTool, Exit::Usage),
            (ErrorCode::InvalidArgs, Exit::Usage),
            (ErrorCode::PolicyDenied, Exit::Denied),
            (ErrorCode::SensitivePath, Exit::Denied),
            (ErrorCode::PathOutsideWorkspace, Exit::Denied),
            (ErrorCode::ApprovalDenied, Exit::Denied),
            (ErrorCode::ApprovalRequired, Exit::ApprovalNeeded),
            (ErrorCode::NotFound, Exit::Failed),
            (ErrorCode::Timeout, Exit::Failed),
            (ErrorCode::Internal, Exit::Failed),
        ];
        for (code, expected) in table {
            assert_eq!(Exit::of_tool_error(&ToolError::new(code, "")), expected, "{code}");
        }
    }
}
