//! The one form of every result, and the names of decisions.

use serde_json::{Value, json};
use toolgate_contract::{ApprovalScope, Decision, ErrorClass, ErrorCode, Reply, ToolError, Verdict};

use crate::dialect::{EnterFault, FailedCall, Returned, ShownResult};
use crate::json_result::{hint, message, object, printed_streams};

pub(super) fn leave(returned: &mut Returned<'_>) -> ShownResult {
    let mut result = call_result(&returned.reply.tool_call_id, Some(returned.reply));
    result["payload"] = returned.reply.payload.clone().unwrap_or_default();
    object(result)
}

pub(super) fn failure(failed: &FailedCall<'_>) -> ShownResult {
    let mut result = call_result(failed.id, failed.reply);
    let code = match failed.fault {
        EnterFault::UnknownTool => ErrorCode::UnknownTool,
        EnterFault::Arguments(_) => ErrorCode::InvalidArgs,
        EnterFault::Refused(error) => error.code,
    };
    let mut error = json!({ "code": code, "message": message(failed) });
    match failed.fault {
        EnterFault::Refused(refused) => error["details"] = details(refused),
        _ => {
            if let Some(hint) = hint(failed) {
                error["details"] = json!({ "hint": hint });
            }
        }
    }
    for (stream, text) in printed_streams(failed) {
        error["details"][stream] = text.into();
    }
    result["error"] = error;
    object(result)
}

/// A result with neither payload nor error yet.
fn call_result(id: &str, reply: Option<&Reply>) -> Value {
    let mut result = json!({
        "tool_call_id": id,
        "ok": reply.is_some_and(|reply| reply.ok),
        "payload": null,
        "error": null,
    });
    if let Some(reply) = reply {
        result["artifacts"] = json!({
            "files_changed": reply.artifacts.files_changed, "commands_run": reply.artifacts.commands_run,
        });
        if let Some(stored) = reply.truncated.as_ref().and_then(|cut| cut.artifact.as_deref()) {
            result["artifacts"]["full_output"] = stored.into();
        }
    }
    result["duration_ms"] = reply.map_or(0, |reply| reply.duration_ms).into();
    result
}

/// What to do next, and what policy decided, if that is why the call failed.
fn details(error: &ToolError) -> Value {
    let mut details = json!({ "hint": error.hint });
    let given = |name: &str| error.details.as_ref().map(|details| details[name].clone()).unwrap_or_default();
    match error.code {
        ErrorCode::ApprovalRequired => {
            let scopes: Vec<Value> =
                given("scopes").as_array().into_iter().flatten().map(|option| option["scope"].clone()).collect();
            details["decision"] = "REQUIRE_CONFIRMATION".into();
            details["scopes"] = scopes.into();
            details["replay"] = given("replay");
        }
        code if code.class() == ErrorClass::Policy => details["decision"] = "DENY".into(),
        _ => {}
    }
    details
}

/// A verdict as this design writes it: `ALLOW`, `DENY(code, reason)` or `REQUIRE_CONFIRMATION(scope)`. The narrowest scope is named:
/// a person can approve for longer.
pub fn decision(verdict: &Verdict) -> String {
    let finding = &verdict.decided_by;
    match verdict.decision {
        Decision::Allow => "ALLOW".to_owned(),
        Decision::Deny => format!("DENY({}, {})", finding.code.unwrap_or(ErrorCode::PolicyDenied), finding.reason),
        Decision::Ask => format!("REQUIRE_CONFIRMATION({})", json!(ApprovalScope::Call).as_str().unwrap_or_default()),
    }
}
