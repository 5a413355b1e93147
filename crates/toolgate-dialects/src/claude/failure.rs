//! How Claude Code says that a call failed.

use toolgate_contract::{ErrorCode, ToolError};

use super::files::REMINDER;
use crate::dialect::{EnterFault, FailedCall, ShownResult};
use crate::fence::without_tags;
use crate::parameter::ArgumentError;
use crate::shell::printed_until_stopped;

pub(super) fn failure(failed: &FailedCall<'_>) -> ShownResult {
    ShownResult::error(match failed.fault {
        EnterFault::UnknownTool => use_error(&format!("Error: No such tool available: {}", failed.tool)),
        EnterFault::Arguments(faults) => {
            let issues = if faults.len() == 1 { "issue" } else { "issues" };
            let lines: Vec<String> = faults.iter().map(fault).collect();
            let tool = failed.tool;
            use_error(&format!(
                "InputValidationError: {tool} failed due to the following {issues}:\n{}",
                lines.join("\n")
            ))
        }
        EnterFault::Refused(error) => refused(failed, error),
    })
}

fn use_error(text: &str) -> String {
    format!("<tool_use_error>{text}</tool_use_error>")
}

fn fault(fault: &ArgumentError) -> String {
    match fault {
        ArgumentError::Missing { at } => format!("The required parameter `{at}` is missing"),
        ArgumentError::Unexpected { at } => format!("An unexpected parameter `{at}` was provided"),
        ArgumentError::Wrong { at, expected, given } => {
            format!("The parameter `{at}` type is expected as `{expected}` but provided as `{given}`")
        }
    }
}

fn refused(failed: &FailedCall<'_>, error: &ToolError) -> String {
    let message = &error.message;
    match error.code {
        ErrorCode::NotFound if message.contains("has no cell") => {
            use_error(&format!("Cell with ID \"{}\" not found in notebook.", failed.text("cell_id")))
        }
        ErrorCode::NotFound if is_file(failed) => {
            format!("File does not exist. Note: your current working directory is {}.", failed.memory.absolute(&failed.memory.directory))
        }
        ErrorCode::NotAFile => format!("EISDIR: illegal operation on a directory, read '{}'", failed.text("file_path")),
        ErrorCode::NoMatch => {
            // Of several replacements, the native message says which one it was.
            let old = if failed.tool == "MultiEdit" { message.as_str() } else { failed.text("old_string") };
            use_error(&format!("String to replace not found in file.\nString: {old}"))
        }
        ErrorCode::AmbiguousMatch => {
            let (count, old) = (places(message), failed.text("old_string"));
            let found = format!("Found {count} matches of the string to replace, but replace_all is false.");
            use_error(&format!("{found}\nString: {old}")) + "\n" + message
        }
        ErrorCode::NotFound if ["TaskStop", "KillShell", "BashOutput", "TaskOutput"].contains(&failed.tool) => {
            let id = ["task_id", "shell_id", "bash_id"].iter().map(|name| failed.text(name)).find(|id| !id.is_empty());
            use_error(&format!("No task found with ID: {}", id.unwrap_or_default()))
        }
        ErrorCode::Timeout if failed.tool == "Bash" => {
            let printed = without_tags(&printed_until_stopped(error), &[REMINDER]);
            let limit = message.trim_end_matches('.').rsplit(' ').next().unwrap_or_default();
            format!("Exit code 143\nCommand timed out after {limit}\n{printed}").trim_end().to_owned()
        }
        ErrorCode::InvalidArgs if message.starts_with(NO_CHANGES) => use_error(message),
        ErrorCode::StaleFile if is_unread(error) => use_error(message),
        ErrorCode::StaleFile => {
            "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it."
                .to_owned()
        }
        ErrorCode::ApprovalRequired => {
            format!("Claude requested permissions to {}, but you haven't granted it yet.\n{message}", asked(failed))
        }
        ErrorCode::ApprovalDenied => format!("The user doesn't want to proceed with this tool use. {message}"),
        ErrorCode::SensitivePath | ErrorCode::PathOutsideWorkspace if is_file(failed) => {
            use_error(&format!("File is in a directory that is denied by your permission settings.\n{message}"))
        }
        code if code.class() == toolgate_contract::ErrorClass::Policy => {
            let command = match failed.text("command") {
                "" => String::new(),
                command => format!(" with command {command}"),
            };
            format!("Permission to use {}{command} has been denied.\n{message}", failed.tool)
        }
        ErrorCode::InvalidArgs => use_error(&format!("InputValidationError: {message}")),
        _ => message.clone(),
    }
}

/// What a call asks to do: with a file, or at all.
fn asked(failed: &FailedCall<'_>) -> String {
    let path = ["file_path", "notebook_path"].iter().map(|name| failed.text(name)).find(|path| !path.is_empty());
    match path.map(|path| failed.memory.absolute(&failed.memory.native(path))) {
        Some(path) if failed.tool.ends_with("Read") => format!("read from {path}"),
        Some(path) => format!("write to {path}"),
        None => format!("use {}", failed.tool),
    }
}

/// What a message begins with where nothing would change.
pub(super) const NO_CHANGES: &str = "No changes to make: ";

/// How many places a message about several matches names.
fn places(message: &str) -> &str {
    message.split_whitespace().find(|word| word.parse::<u64>().is_ok()).unwrap_or("several")
}

fn is_file(failed: &FailedCall<'_>) -> bool {
    ["file_path", "notebook_path"].iter().any(|name| failed.args.get(name).is_some())
}

fn is_unread(error: &ToolError) -> bool {
    error.details.as_ref().is_some_and(|details| details["unread"] == true)
}
