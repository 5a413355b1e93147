//! How the coder design says that a call failed: `ok` is false, and `error` begins with what kind of fault it is.

use serde_json::{Value, json};
use toolgate_contract::{ErrorClass, ErrorCode};

use crate::dialect::{EnterFault, FailedCall, ShownResult};
use crate::json_result::{hint, message, object, printed_streams};
use crate::shell::TIMED_OUT;

pub(super) fn failure(failed: &FailedCall<'_>) -> ShownResult {
    let message = message(failed);
    let mut result = json!({
        "ok": false,
        "error": match kind(failed) {
            None => message,
            Some(kind) => format!("{kind}: {message}"),
        },
    });
    if let Some(hint) = hint(failed) {
        result["hint"] = hint.into();
    }
    if failed.tool == "bash" && is_timeout(failed.fault) {
        timed_out(failed, &mut result);
    }
    if failed.tool.starts_with("lsp_") {
        let status = match failed.fault {
            EnterFault::Refused(error) => error.details.as_ref().map(|details| details["server_status"].clone()),
            _ => None,
        };
        result["server_status"] = status.filter(Value::is_string).unwrap_or_else(|| "unavailable".into());
    }
    object(result)
}

fn is_timeout(fault: &EnterFault) -> bool {
    matches!(fault, EnterFault::Refused(error) if error.code == ErrorCode::Timeout)
}

/// A command that was stopped by the limit of its call still is the result of a command.
fn timed_out(failed: &FailedCall<'_>, result: &mut Value) {
    result["command"] = failed.text("command").into();
    result["exit_code"] = TIMED_OUT.into();
    for (stream, text) in [("stdout", ""), ("stderr", "")].into_iter().chain(printed_streams(failed)) {
        result[stream] = text.into();
    }
    result["truncated"] = failed.reply.is_some_and(|reply| reply.truncated.is_some()).into();
    result["duration_ms"] = failed.reply.map_or(0, |reply| reply.duration_ms).into();
}

fn kind(failed: &FailedCall<'_>) -> Option<&'static str> {
    match failed.fault {
        EnterFault::UnknownTool => None,
        EnterFault::Arguments(_) => Some("args"),
        EnterFault::Refused(error) => match error.code {
            ErrorCode::InvalidArgs => Some("args"),
            ErrorCode::PatchMismatch => Some("context mismatch"),
            ErrorCode::ToolNotAllowed if failed.reply.is_none() => None,
            code if code.class() == ErrorClass::Policy => Some("permission"),
            _ => None,
        },
    }
}
