//! The audit log of the clude design: one line for each call.

use serde_json::{Value, json};
use toolgate_contract::Event;

use crate::recorded_calls::{RecordedCall, recorded_calls};

pub(super) fn record(events: &[Event]) -> Vec<Value> {
    recorded_calls(events).iter().map(log_line).collect()
}

fn log_line(call: &RecordedCall<'_>) -> Value {
    json!({
        "trace_id": call.started.trace_id,
        "tool_call_id": call.started.tool_call_id,
        "name": super::TOOLS.iter().find(|tool| tool.native == call.tool).map_or(call.tool, |tool| tool.name),
        "version": call.version,
        "args": call.args,
        "result": { "ok": call.error.is_none() },
        "error": call.error.map(|(error, _)| json!({ "code": error.code })),
        "duration_ms": call.ending.duration_ms,
        "artifacts": { "files_changed": call.ending.files_changed, "commands_run": call.ending.commands_run },
    })
}
