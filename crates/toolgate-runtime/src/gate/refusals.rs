//! The gate's own refusals, in words for the model and the person.

use serde_json::json;
use toolgate_contract::{Declaration, Effect, ErrorCode, LocatedEffect, ToolError, Verdict};

use crate::approval::ApprovalRequest;

/// Policy said no.
pub(super) fn denied(verdict: &Verdict) -> ToolError {
    let finding = &verdict.decided_by;
    let code = finding.code.unwrap_or(ErrorCode::PolicyDenied);
    ToolError::new(code, &finding.reason)
        .with_details(json!({ "rule": finding.name.rule, "layer": finding.name.layer, "effect": finding.effect }))
}

/// Nothing here could hold the call.
pub(super) fn unconfined(tool: &str) -> ToolError {
    let message = format!("This call of `{tool}` may only run in a sandbox, and there is none that holds here.");
    ToolError::new(ErrorCode::SandboxUnavailable, message)
}

/// A person said no.
pub(super) fn refused(tool: &str, by: &str, reason: Option<String>) -> ToolError {
    let words = reason.map(|reason| format!(" Their words: {reason}")).unwrap_or_default();
    ToolError::new(ErrorCode::ApprovalDenied, format!("{by} did not approve this call of `{tool}`.{words}"))
}

/// A person ended the run.
pub(super) fn aborted(by: &str, reason: Option<String>) -> ToolError {
    let words = reason.map(|reason| format!(" Their words: {reason}")).unwrap_or_default();
    ToolError::new(ErrorCode::Cancelled, format!("{by} aborted this run: no more calls are made in it.{words}"))
        .with_hint("Stop here. Only a new run can go on, and only the person begins one.")
}

/// Nobody was there to ask.
pub(super) fn unanswered(request: &ApprovalRequest) -> ToolError {
    let message =
        format!("This call of `{}` needs approval, and nobody could be asked. {}", request.tool, request.reason);
    let hint = match &request.replay {
        Some(replay) => format!("A person can approve and repeat this call with: {replay}"),
        None => "Only this session can make this call. A person can answer while it waits, with `toolgate approvals`; \
                 `approvals.wait_seconds` in their configuration says how long it does."
            .into(),
    };
    ToolError::new(ErrorCode::ApprovalRequired, message).with_hint(hint).with_details(json!(request))
}

/// Another call of the run has this id.
pub(super) fn repeated_id(id: &str, run: &str) -> ToolError {
    let id: String = id.chars().take(80).collect();
    let message = format!("A call with the id `{id}` was made before in this run, so this one was not made.");
    let hint = format!(
        "Give every call an id of its own, or none to get one. If you meant to repeat the request, look at how the first \
         call ended: `toolgate runs tree {run}`, or GET /v1/runs/{run}/tree."
    );
    ToolError::invalid_args(message).with_hint(hint).with_details(json!({ "tool_call_id": id, "run": run }))
}

/// The record failed.
pub(super) fn unrecorded(fault: ToolError, has_run: bool) -> ToolError {
    let what = match has_run {
        false => "The record can't be written, so the call did not run",
        true => "The call ran, but how it ended couldn't be recorded",
    };
    ToolError::new(ErrorCode::IoError, format!("{what}: {}", fault.message))
        .with_hint("Ask the person to free disk space or fix the run's directory, then try again.")
        .with_details(json!({ "ran": has_run }))
}

/// A tool whose effects go beyond the permissions it declares is broken or lying: it doesn't run.
pub(super) fn only_declared(effects: Vec<Effect>, tool: &Declaration) -> Result<Vec<Effect>, ToolError> {
    match effects.iter().find(|effect| !tool.required_permissions.contains(&effect.permission())) {
        None => Ok(effects),
        Some(effect) => Err(ToolError::internal(format!(
            "`{}` wants to {effect}, but doesn't declare the permission `{}`.",
            tool.name,
            effect.permission()
        ))),
    }
}

/// What a preview may do: look at the very files that the call would change, and at the skill that it would use.
pub(super) fn readable(effects: &[LocatedEffect]) -> Vec<LocatedEffect> {
    let looking = |located: &LocatedEffect| match (&located.effect, located.effect.path()) {
        (_, Some((_, path))) => Some(LocatedEffect { effect: Effect::read(path), ..located.clone() }),
        (Effect::Skill { .. }, None) => Some(located.clone()),
        (_, None) => None,
    };
    effects.iter().filter_map(looking).collect()
}
