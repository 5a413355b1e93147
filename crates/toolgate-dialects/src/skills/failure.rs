//! How the skills-agent design says that a call failed: an error of one of its types, and what could be approved.

use serde_json::{Value, json};
use toolgate_contract::{ErrorClass, ErrorCode, ToolError};

use crate::dialect::{EnterFault, FailedCall, ShownResult};
use crate::json_result::{hint, message, object, printed_streams};

pub(super) fn failure(failed: &FailedCall<'_>) -> ShownResult {
    let kind = kind(failed.fault);
    let mut error = json!({ "type": kind, "message": message(failed) });
    if let Some(hint) = hint(failed) {
        error["hint"] = hint.into();
    }
    let mut result = json!({ "ok": false, "error": error });
    if kind == "Timeout" {
        result["timeout"] = true.into();
        for (stream, text) in printed_streams(failed) {
            result[stream] = text.into();
        }
    }
    if let Some(request) = approval_request(failed) {
        result["approval"] = request;
    }
    object(result)
}

fn kind(fault: &EnterFault) -> &'static str {
    match fault {
        EnterFault::UnknownTool => "ToolNotAllowed",
        EnterFault::Arguments(_) => "InvalidArguments",
        EnterFault::Refused(error) => kind_of(error),
    }
}

/// The type of an error.
pub(super) fn kind_of(error: &ToolError) -> &'static str {
    match error.code {
        ErrorCode::InvalidArgs | ErrorCode::UnsupportedVersion => "InvalidArguments",
        ErrorCode::ApprovalRequired => "ApprovalRequired",
        ErrorCode::ApprovalDenied => "ApprovalDenied",
        ErrorCode::PathOutsideWorkspace => "PathTraversalBlocked",
        ErrorCode::FileTooLarge => "FileTooLarge",
        ErrorCode::ExitNonzero => "ExitNonZero",
        code if code.class() == ErrorClass::Timeout => "Timeout",
        code if code.class() == ErrorClass::Policy || code == ErrorCode::UnknownTool => "ToolNotAllowed",
        _ => "IOError",
    }
}

/// What a person would have to approve: the call in this dialect's words, and a command that repeats it with approval.
fn approval_request(failed: &FailedCall<'_>) -> Option<Value> {
    let EnterFault::Refused(error) = failed.fault else { return None };
    let request = error.details.as_ref().filter(|_| error.code == ErrorCode::ApprovalRequired)?;
    let reason = request["justification"].as_str().unwrap_or_else(|| request["reason"].as_str().unwrap_or_default());
    Some(json!({
        "tool": failed.tool,
        "risk": request["risk"],
        "reason": reason,
        "params": failed.args,
        "replay": request["replay"],
    }))
}
