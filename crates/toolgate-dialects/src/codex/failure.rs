//! How Codex says that a call failed.

use serde_json::Value;
use toolgate_contract::{ErrorClass, ErrorCode, ToolError};

use crate::dialect::{EnterFault, FailedCall, ShownResult};
use crate::parameter::ArgumentError;

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
        ("apply_patch", _) => format!("apply_patch verification failed: {message}"),
        ("view_image", ErrorCode::NotFound) => {
            format!("unable to locate image at `{}`: No such file or directory (os error 2)", path(failed, "path"))
        }
        ("read_file", code) if code.class() == ErrorClass::ToolExec => format!("failed to read file: {message}"),
        (_, ErrorCode::InvalidArgs) => message.clone(),
        (_, code) if code.class() == ErrorClass::Policy => {
            let command = ["cmd", "command"].iter().find_map(|name| failed.args.get(*name));
            let command = command.map(|command| command.as_str().map_or_else(|| command.to_string(), str::to_owned));
            let quoted = command.map_or_else(String::new, |command| format!("`/bin/bash -lc '{command}'` "));
            format!(
                "{} failed: CreateProcess {{ message: \"Rejected(\\\"{quoted}rejected: {message}\\\")\" }}",
                failed.tool
            )
        }
        _ => message.clone(),
    }
}

fn path(failed: &FailedCall<'_>, name: &str) -> String {
    let path = failed.args.get(name).and_then(Value::as_str).unwrap_or_default();
    failed.memory.absolute(&failed.memory.native(path))
}
