//! How opencode says that a call failed.

use toolgate_contract::{ErrorClass, ErrorCode, ToolError};

use super::commands::METADATA;
use crate::dialect::{EnterFault, FailedCall, ShownResult};
use crate::fence::without_tags;
use crate::parameter::ArgumentError;
use crate::shell::printed_until_stopped;

pub(super) fn failure(failed: &FailedCall<'_>) -> ShownResult {
    let tool = failed.tool;
    ShownResult::error(match failed.fault {
        EnterFault::UnknownTool => format!(
            "The arguments provided to the tool are invalid: Model tried to call unavailable tool '{tool}'. Available tools: {}.",
            failed.known.join(", ")
        ),
        EnterFault::Arguments(faults) => {
            let lines: Vec<String> = faults.iter().map(fault).collect();
            format!(
                "The {tool} tool was called with invalid arguments: SchemaError({}).\nPlease rewrite the input so that it fits.",
                lines.join("\n")
            )
        }
        EnterFault::Refused(error) => refused(failed, error),
    })
}

fn fault(fault: &ArgumentError) -> String {
    match fault {
        ArgumentError::Missing { at } => format!("Missing key\n  at [\"{at}\"]"),
        ArgumentError::Unexpected { at } => format!("Unexpected key\n  at [\"{at}\"]"),
        ArgumentError::Wrong { at, expected, given } => {
            format!("Expected {expected}, actual {given}\n  at [\"{at}\"]")
        }
    }
}

fn refused(failed: &FailedCall<'_>, error: &ToolError) -> String {
    let message = &error.message;
    match error.code {
        ErrorCode::InvalidArgs if failed.tool == "apply_patch" => {
            format!("apply_patch verification failed: Error: {message}")
        }
        ErrorCode::PatchMismatch => {
            format!("apply_patch verification failed: Error: Failed to find expected lines: {message}")
        }
        ErrorCode::NotFound if !failed.text("filePath").is_empty() => {
            let path = failed.memory.absolute(&failed.memory.native(failed.text("filePath")));
            match failed.tool {
                "edit" => format!("File {path} not found"),
                _ => format!("File not found: {path}"),
            }
        }
        ErrorCode::NoMatch => format!("Could not find oldString in the file. {message}"),
        ErrorCode::AmbiguousMatch => format!("Found multiple matches for oldString. {message}"),
        ErrorCode::NotFound if failed.tool == "skill" => {
            format!("Skill \"{}\" not found. {message}", failed.text("name"))
        }
        ErrorCode::Timeout if failed.tool == "bash" => {
            let printed = without_tags(&printed_until_stopped(error), &[METADATA]);
            format!("{printed}\n\n<{METADATA}>\nshell tool terminated command: {message}\n</{METADATA}>")
        }
        ErrorCode::ApprovalDenied => format!("The user rejected permission to use this specific tool call. {message}"),
        code if code.class() == ErrorClass::Policy => {
            format!("The user has specified a rule which prevents you from using this specific tool call. {message}")
        }
        _ => message.clone(),
    }
}
