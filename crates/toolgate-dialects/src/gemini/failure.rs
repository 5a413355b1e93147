//! How Gemini CLI says that a call failed.

use toolgate_contract::{ErrorCode, ToolError};

use super::commands::untrusted;
use crate::dialect::{EnterFault, FailedCall, ShownResult};
use crate::nearest::nearest_names;
use crate::parameter::ArgumentError;
use crate::shell::printed_until_stopped;

pub(super) fn failure(failed: &FailedCall<'_>) -> ShownResult {
    ShownResult::error(match failed.fault {
        EnterFault::UnknownTool => {
            let near: Vec<String> =
                nearest_names(failed.tool, failed.known, 3).iter().map(|name| format!("\"{name}\"")).collect();
            format!("Tool \"{}\" not found. Did you mean one of: {}?", failed.tool, near.join(", "))
        }
        EnterFault::Arguments(faults) => faults.iter().map(fault).collect::<Vec<_>>().join("; "),
        EnterFault::Refused(error) => refused(failed, error),
    })
}

fn fault(fault: &ArgumentError) -> String {
    match fault {
        ArgumentError::Missing { at } => match at.rsplit_once('.') {
            None => format!("params must have required property '{at}'"),
            Some((place, name)) => format!("params/{place} must have required property '{name}'"),
        },
        ArgumentError::Unexpected { at } => format!("params must NOT have additional property '{at}'"),
        ArgumentError::Wrong { at, expected, given } => format!("params/{at} must be {expected}, not {given}"),
    }
}

fn refused(failed: &FailedCall<'_>, error: &ToolError) -> String {
    let message = &error.message;
    let path = || ["file_path", "dir_path"].map(|name| failed.text(name)).concat();
    let absolute = || failed.memory.absolute(&failed.memory.native(&path()));
    match error.code {
        ErrorCode::NotFound if failed.tool == "list_directory" => {
            format!("Error listing directory: ENOENT: no such directory '{}'", absolute())
        }
        ErrorCode::NotFound if !path().is_empty() => format!("File not found: {}", absolute()),
        ErrorCode::NotAFile => format!("Path is a directory, not a file: {}", absolute()),
        ErrorCode::PathOutsideWorkspace if !path().is_empty() => format!(
            "Path not in workspace: Attempted path \"{}\" resolves outside the allowed workspace directories: {}\n{message}",
            path(),
            failed.memory.workspace
        ),
        ErrorCode::NoMatch => format!("Could not find an exact match for 'old_string' in '{}'. {message}", path()),
        ErrorCode::Timeout if failed.tool == "run_shell_command" => match printed_until_stopped(error) {
            printed if printed.is_empty() => message.clone(),
            printed => format!("{message}\n{}", untrusted(&format!("Output: {}", printed.trim_end()))),
        },
        ErrorCode::AmbiguousMatch => format!(
            "Failed to edit, Expected 1 occurrence but found {} for old_string in file: {}. If you intended to replace all of them, \
             set 'allow_multiple' to true. {message}",
            places(error),
            path()
        ),
        _ => message.clone(),
    }
}

/// In how many places a text was found.
fn places(error: &ToolError) -> String {
    let details = error.details.clone().unwrap_or_default();
    let more = if details["more"] == true { "more than " } else { "" };
    details["places"].as_u64().map_or_else(|| "several".to_owned(), |places| format!("{more}{places}"))
}
