//! The audit records of the skills-agent design: one for each call, with both of its times.

use serde_json::{Map, Value, json};
use toolgate_contract::Event;

use crate::recorded_calls::{RecordedCall, recorded_calls};

pub(super) fn record(events: &[Event]) -> Vec<Value> {
    recorded_calls(events).iter().map(audit_record).collect()
}

fn audit_record(call: &RecordedCall<'_>) -> Value {
    let mut result = json!({ "ok": call.error.is_none() });
    if let Some(code) = call.ending.exit_code {
        result["exit_code"] = code.into();
    }
    if let Some((error, _)) = call.error {
        result["error"] = json!({ "type": super::failure::kind_of(error), "message": error.message });
    }
    let mut hashes = Map::new();
    for stored in &call.ending.refs {
        let name = stored.field.as_deref().unwrap_or_default().trim_start_matches('/').replace('/', "_");
        let name = if name.is_empty() { "output".to_owned() } else { name };
        result[format!("{name}_ref")] = stored.id.as_str().into();
        hashes.insert(format!("{name}_sha256"), stored.sha256.as_str().into());
    }
    json!({
        "tool": super::TOOLS.iter().find(|tool| tool.native == call.tool).map_or(call.tool, |tool| tool.name),
        "risk": call.risk,
        "ts_start": call.started.time.to_string(),
        "ts_end": call.ended.time.to_string(),
        "params": call.args,
        "result": result,
        "policy": { "approved": call.is_approved(), "approval_scope": call.approval },
        "hashes": hashes,
    })
}
