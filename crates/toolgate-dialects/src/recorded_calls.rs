//! The calls of a run, from its events, for dialects that write the record in a form of their own.

use std::collections::HashMap;

use serde_json::Value;
use toolgate_contract::{
    ApprovalScope, CallEnding, Decision, ErrorClass, Event, EventPayload, Risk, ToolError, Verdict,
};

/// A call that has ended.
pub(crate) struct RecordedCall<'a> {
    pub(crate) started: &'a Event,
    pub(crate) ended: &'a Event,
    pub(crate) tool: &'a str,
    pub(crate) version: Option<&'a str>,
    pub(crate) args: &'a Value,
    pub(crate) verdict: Option<&'a Verdict>,
    pub(crate) approval: Option<ApprovalScope>,
    pub(crate) risk: Option<Risk>,
    pub(crate) ending: &'a CallEnding,
    pub(crate) error: Option<(&'a ToolError, ErrorClass)>,
}

impl RecordedCall<'_> {
    /// Whether policy allowed it, or a person did.
    pub(crate) fn is_approved(&self) -> bool {
        self.approval.is_some() || self.verdict.is_some_and(|verdict| verdict.decision == Decision::Allow)
    }
}

/// The calls that have ended, in the order of their ends.
pub(crate) fn recorded_calls(events: &[Event]) -> Vec<RecordedCall<'_>> {
    let mut open: HashMap<&str, &Event> = HashMap::new();
    let mut calls = Vec::new();
    for event in events {
        let Some(id) = event.tool_call_id.as_deref() else { continue };
        let (ending, error) = match &event.payload {
            EventPayload::CallStarted { .. } => {
                open.insert(id, event);
                continue;
            }
            EventPayload::CallCompleted(ending) => (ending, None),
            EventPayload::CallFailed { error, class, ending } => (ending, Some((error, *class))),
            _ => continue,
        };
        let Some(started) = open.remove(id) else { continue };
        if let EventPayload::CallStarted { tool, version, args, verdict, approval, risk, .. } = &started.payload {
            calls.push(RecordedCall {
                started,
                ended: event,
                tool,
                version: version.as_deref(),
                args,
                verdict: verdict.as_ref(),
                approval: *approval,
                risk: *risk,
                ending,
                error,
            });
        }
    }
    calls
}
