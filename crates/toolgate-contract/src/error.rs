//! How a call fails: one enum of error codes, each with a hint on what to do next.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Effect;

/// The class of a failure, for statistics and for retry logic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The request itself was invalid.
    Validation,
    /// Policy or a person denied it.
    Policy,
    /// The tool ran and failed.
    ToolExec,
    /// It took too long.
    Timeout,
    /// A fault in Toolgate.
    Unknown,
}

/// Declares the codes once: name, wire form, class, and what the model can do next.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $wire:literal $class:ident $next:literal;)*) => {
        /// Why a call failed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The code as it appears in JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire),* }
            }

            /// The class that it belongs to.
            pub fn class(self) -> ErrorClass {
                match self { $(Self::$variant => ErrorClass::$class),* }
            }

            /// What the model can do next, if the error has no more specific hint.
            pub fn next_step(self) -> &'static str {
                match self { $(Self::$variant => $next),* }
            }
        }
    };
}

codes! {
    /// No tool has that name.
    UnknownTool "unknown_tool" Validation "Call one of the listed tools.";
    /// The arguments don't fit the schema.
    InvalidArgs "invalid_args" Validation "Correct the arguments by the tool's schema and call again.";
    /// The requested version doesn't exist, and there is no adapter for it.
    UnsupportedVersion "unsupported_version" Validation "Use the version that the message names.";
    /// The tool is not in the set that this run may use.
    ToolNotAllowed "tool_not_allowed" Policy "Use another tool; this one is switched off here.";
    /// A rule denies it.
    PolicyDenied "policy_denied" Policy "Find another way; repeating the call won't help.";
    /// A person has to approve and nobody could be asked.
    ApprovalRequired "approval_required" Policy "Ask the person to run the `replay` command, or go on without this call.";
    /// A person denied it.
    ApprovalDenied "approval_denied" Policy "Don't repeat the call; ask the person what they would prefer.";
    /// The path leads outside the workspace.
    PathOutsideWorkspace "path_outside_workspace" Policy "Use a path inside the workspace.";
    /// The path contains credentials or private state.
    SensitivePath "sensitive_path" Policy "Work without this file; it is never opened for tools.";
    /// The path doesn't exist.
    NotFound "not_found" ToolExec "Use `list` to see what exists.";
    /// It is a directory, a pipe or a device.
    NotAFile "not_a_file" ToolExec "Use `list` for directories; pipes and devices can't be used.";
    /// The file isn't text.
    IsBinary "is_binary" ToolExec "Use a tool that understands this format.";
    /// The file is larger than the tool accepts.
    FileTooLarge "file_too_large" ToolExec "Work on a part of it, with `offset` and `limit`.";
    /// The file has changed since it was read.
    StaleFile "stale_file" ToolExec "Read the file again, then repeat the change.";
    /// The text to replace doesn't occur.
    NoMatch "no_match" ToolExec "Read the file and copy the text to replace exactly.";
    /// The text to replace occurs more than once.
    AmbiguousMatch "ambiguous_match" ToolExec "Add surrounding lines until it is unique, or replace all.";
    /// A hunk doesn't match the file.
    PatchMismatch "patch_mismatch" ToolExec "Read the file again and make the patch from its present text.";
    /// A person was asked a question and gave no answer, or nobody could be asked.
    NoAnswer "no_answer" ToolExec "Decide yourself and say what you assumed, or finish with the question as your answer.";
    /// It took too long.
    Timeout "timeout" Timeout "Do less in one call, or ask for a longer timeout.";
    /// A command that a tool needs for its own result ended with a nonzero exit code. Not for tools that run the
    /// caller's command: their call succeeds, and the exit code is part of the payload.
    ExitNonzero "exit_nonzero" ToolExec "Read the output for the cause.";
    /// The sandbox denied it.
    SandboxDenied "sandbox_denied" Policy "Stay within the granted paths, or say what more is needed and why.";
    /// The required sandbox isn't available here.
    SandboxUnavailable "sandbox_unavailable" Policy "Ask the person to run `toolgate doctor`.";
    /// The network rules forbid the host.
    NetworkDenied "network_denied" Policy "Work without this host, or ask the person to allow it.";
    /// An MCP server's tool isn't defined any more as a person approved it.
    DefinitionChanged "definition_changed" Policy "Go on without this tool; a person has to look at its new definition first.";
    /// Another MCP server failed, or its tool reported an error.
    ServerError "server_error" ToolExec "Read the message for the cause; correct the arguments, or go on without this tool.";
    /// The call was cancelled.
    Cancelled "cancelled" ToolExec "Stop here unless you are told to go on.";
    /// A limit of the run was reached.
    LimitReached "limit_reached" Policy "Finish with what you have.";
    /// The operating system refused.
    IoError "io_error" ToolExec "Check the path and try again; the message names the cause.";
    /// A fault in Toolgate.
    Internal "internal" Unknown "Try another way; this is a fault of the tool, not of your call.";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failure as the caller gets it: code, message, hint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ToolError {
    /// The kind of failure.
    pub code: ErrorCode,
    /// What happened and why.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// More details, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The effects that the sandbox denied: with them the call can run once more.
    #[serde(skip)]
    pub missing: Vec<Effect>,
}

impl ToolError {
    /// A failure with the code's own hint.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: Some(code.next_step().to_owned()),
            details: None,
            missing: Vec::new(),
        }
    }

    /// Replaces the hint with a more specific one.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds details for programs.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// The arguments are invalid.
    pub fn invalid_args(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgs, message)
    }

    /// Nothing exists at `path`.
    pub fn not_found(path: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("Nothing exists at `{path}`."))
    }

    /// The operating system refused an operation on `what`.
    pub fn io(what: &str, error: &std::io::Error) -> Self {
        Self::new(ErrorCode::IoError, format!("{what}: {error}."))
    }

    /// A fault in Toolgate.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// The call was cancelled.
    pub fn cancelled() -> Self {
        Self::new(ErrorCode::Cancelled, "The call was cancelled.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_reads_back_from_its_own_wire_form() {
        for &code in ErrorCode::ALL {
            let json = serde_json::to_string(&code).unwrap();
            assert_eq!(json, format!("\"{}\"", code.as_str()));
            assert_eq!(serde_json::from_str::<ErrorCode>(&json).unwrap(), code);
            assert!(!code.next_step().is_empty());
        }
        assert_eq!(ErrorCode::ALL.len(), 29);
    }
}
