//! The events of the autonous design: every event of a call names its tool, and long arguments are truncated.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolgate_contract::{CallEnding, Event, EventPayload};

/// Bytes of arguments that an event holds.
const MOST_ARGUMENT_BYTES: usize = 2048;

pub(super) fn record(events: &[Event]) -> Vec<Value> {
    let mut tools: HashMap<&str, &str> = HashMap::new();
    let mut recorded = Vec::new();
    for event in events {
        let id = event.tool_call_id.as_deref().unwrap_or_default();
        if let EventPayload::CallStarted { tool, .. } = &event.payload {
            tools.insert(id, tool);
        }
        let tool = tools.get(id).copied().unwrap_or_default();
        let tool = super::TOOLS.iter().find(|known| known.native == tool).map_or(tool, |known| known.name);
        if let Some((kind, payload)) = described(&event.payload, tool) {
            recorded
                .push(json!({ "type": kind, "time": event.time.to_string(), "tool_call_id": id, "payload": payload }));
        }
    }
    recorded
}

/// An event's name and payload; none for events that the design doesn't have.
fn described(payload: &EventPayload, tool: &str) -> Option<(&'static str, Value)> {
    Some(match payload {
        EventPayload::AgentStarted { .. } => ("agent.started", json!({})),
        EventPayload::AgentEnded { finish, turns, .. } => {
            ("agent.completed", json!({ "finish": finish, "turns": turns }))
        }
        EventPayload::CallStarted { args, .. } => {
            ("tool_call.started", json!({ "tool_name": tool, "arguments": truncated(args) }))
        }
        EventPayload::CallCompleted(ending) => ("tool_call.completed", completed(tool, ending)),
        EventPayload::CallFailed { error, class, ending } => (
            "tool_call.failed",
            json!({
                "tool_name": tool,
                "error": error.message,
                "error_class": class,
                "redacted": ending.redacted,
            }),
        ),
        _ => return None,
    })
}

fn completed(tool: &str, ending: &CallEnding) -> Value {
    let cut = ending.truncated.clone().unwrap_or_default();
    json!({
        "tool_name": tool,
        "latency_ms": ending.duration_ms,
        "exit_code": ending.exit_code.unwrap_or(0),
        "truncated_lines": cut.lines > 0,
        "truncated_bytes": cut.bytes > 0,
    })
}

/// The arguments; long ones as the beginning of their text.
fn truncated(args: &Value) -> Value {
    let mut text = args.to_string();
    if text.len() <= MOST_ARGUMENT_BYTES {
        return args.clone();
    }
    text.truncate(text.floor_char_boundary(MOST_ARGUMENT_BYTES));
    (text + "…").into()
}
