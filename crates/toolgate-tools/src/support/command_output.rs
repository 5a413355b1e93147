//! The payload of tools that wait until their command has ended.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use toolgate_contract::{DeniedAccess, Hands, ProcessGuard, SettledChanges, StopReason, ToolError};

use crate::support::command_result::{CommandResult, ended};

/// How a command ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CommandOutput {
    /// 0 is success, 124 means that it timed out.
    exit_code: i32,
    /// What it wrote to its standard output.
    stdout: String,
    /// What it wrote to its standard error.
    stderr: String,
    /// How long it took, in milliseconds.
    duration_ms: u64,
    /// Whether it was stopped because it timed out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    /// Whether it was stopped because it wrote more output than is allowed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    output_limit: bool,
    /// What it changed in the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<SettledChanges>,
    /// What the sandbox denied it, if it failed, as a possible reason.
    // The gate fills this in, once it is known whether the missing rights are granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    denied: Vec<DeniedAccess>,
}

impl CommandOutput {
    /// Waits for the end of a command, which has a time limit of its own.
    pub(crate) async fn wait_for(attached: &ProcessGuard, hands: &dyn Hands) -> Result<Self, ToolError> {
        let Some(end) = ended(attached.process(), Duration::MAX).await else {
            return Err(ToolError::internal("A command's end was lost."));
        };
        let CommandResult { exit_code, stdout, stderr, duration_ms, stopped, changes } =
            CommandResult::of(attached.process(), end, hands)?;
        let (timed_out, output_limit) = (stopped == Some(StopReason::Time), stopped == Some(StopReason::Output));
        Ok(Self { exit_code, stdout, stderr, duration_ms, timed_out, output_limit, changes, denied: Vec::new() })
    }
}
