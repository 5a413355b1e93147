//! How Codex says that a call failed.

use serde_json::{Value, json};
use toolgate_contract::{ErrorClass, ErrorCode, ToolError};

use crate::dialect::{EnterFault, FailedCall, ShownResult};
use crate::matches::texts;
use crate::parameter::ArgumentError;
use crate::shell::{TIMED_OUT, command_line, printed_until_stopped};

pub(super) fn failure(failed: &FailedCall<'_>) -> ShownResult {
    ShownResult::error(match failed.fault {
        EnterFault::UnknownTool => format!("unsupported call: {}", failed.tool),
        EnterFault::Arguments(faults) => {
            let lines: Vec<String> = faults.iter().map(fault).collect();
            format!("failed to parse function arguments: {}", lines.join("; "))
        }
        EnterFault::Refused(error) => refused(failed, error),
    })
}

fn fault(fault: &ArgumentError) -> String {
    match fault {
        ArgumentError::Missing { at } => format!("missing field `{at}`"),
        ArgumentError::Unexpected { at } => format!("unknown field `{at}`"),
        ArgumentError::Wrong { at, expected, given } => {
            format!("invalid value at `{at}`: {given}, expected {expected}")
        }
    }
}

fn refused(failed: &FailedCall<'_>, error: &ToolError) -> String {
    let message = &error.message;
    match (failed.tool, error.code) {
        ("apply_patch", code) if code.class() == ErrorClass::Policy => format!("patch rejected: {message}"),
        ("apply_patch", code) => format!("apply_patch verification failed: {}", unapplied(failed, code, message)),
        ("request_user_input", _) => format!("request_user_input is unavailable here: {message}"),
        ("view_image", ErrorCode::NotFound) => {
            format!("unable to locate image at `{}`: No such file or directory (os error 2)", path(failed, "path"))
        }
        ("read_file", code) if code.class() == ErrorClass::ToolExec => format!("failed to read file: {message}"),
        (_, ErrorCode::InvalidArgs) => message.clone(),
        ("shell" | "container.exec" | "local_shell", ErrorCode::Timeout) => {
            let output = format!("{message}\n{}", printed_until_stopped(error));
            json!({ "output": output, "metadata": { "exit_code": TIMED_OUT } }).to_string()
        }
        ("shell_command", ErrorCode::Timeout) => {
            format!("Exit code: {TIMED_OUT}\nOutput:\n{message}\n{}", printed_until_stopped(error))
        }
        (_, ErrorCode::ApprovalRequired) => format!("approval policy is Never; reject command\n{message}"),
        (_, code) if code.class() == ErrorClass::Policy => {
            let by_whom = if code == ErrorCode::ApprovalDenied { " by user" } else { "" };
            let command = ["cmd", "command"].iter().find_map(|name| failed.args.get(*name));
            let command = command.map(|command| match command {
                Value::Array(_) => command_line(&texts(command)),
                other => other.as_str().unwrap_or_default().to_owned(),
            });
            let quoted = command.map_or_else(String::new, |command| format!("`/bin/bash -lc '{command}'` "));
            format!(
                "{} failed: CreateProcess {{ message: \"Rejected(\\\"{quoted}rejected{by_whom}: {message}\\\")\" }}",
                failed.tool
            )
        }
        _ => message.clone(),
    }
}

/// The first line of a patch.
const BEGIN: &str = "*** Begin Patch";

/// Why a patch can't be applied: this client's own words for it, then ours.
fn unapplied(failed: &FailedCall<'_>, code: ErrorCode, message: &str) -> String {
    // Our messages name the file first, in backticks.
    let path = message.split('`').nth(1).map(|path| failed.memory.absolute(path)).unwrap_or_default();
    let expected: Vec<&str> = message.lines().filter_map(|line| line.trim_start().strip_prefix("| ")).collect();
    match code {
        ErrorCode::InvalidArgs if !failed.text("input").trim_start().starts_with(BEGIN) => {
            format!("invalid patch: it has to begin with '{BEGIN}'\n{message}")
        }
        ErrorCode::InvalidArgs => format!("invalid patch: {message}"),
        ErrorCode::NotFound => format!("Failed to read file to update {path}: it doesn't exist\n{message}"),
        ErrorCode::NoMatch | ErrorCode::PatchMismatch if !expected.is_empty() => {
            format!("Failed to find expected lines in {path}:\n{}\n{message}", expected.join("\n"))
        }
        _ => message.to_owned(),
    }
}

fn path(failed: &FailedCall<'_>, name: &str) -> String {
    let path = failed.args.get(name).and_then(Value::as_str).unwrap_or_default();
    failed.memory.absolute(&failed.memory.native(path))
}
