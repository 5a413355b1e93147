//! How each client's hooks speak, one file each.

pub(crate) mod claude;
pub(crate) mod codex;
pub(crate) mod copilot;
pub(crate) mod cursor;
pub(crate) mod gemini;
pub(crate) mod goose;
pub(crate) mod opencode;

use serde_json::Value;
use toolgate_contract::ToolError;

use crate::event::ClientCall;

/// A text of an event; none if it isn't there.
fn text<'v>(event: &'v Value, name: &str) -> Option<&'v str> {
    event.get(name).and_then(Value::as_str)
}

/// A call in the form that most clients share.
fn usual_call(event: &Value, can_ask: bool) -> Result<ClientCall, ToolError> {
    Ok(ClientCall {
        id: text(event, "tool_use_id").map(str::to_owned),
        tool: needed(event, "tool_name")?.to_owned(),
        input: event.get("tool_input").cloned().unwrap_or(Value::Null),
        can_ask,
    })
}

/// A text that an event can't do without.
fn needed<'v>(event: &'v Value, name: &str) -> Result<&'v str, ToolError> {
    text(event, name).ok_or_else(|| ToolError::invalid_args(format!("The event has no `{name}`.")))
}

/// No tool of the hook has another name in the dialect.
fn same_names(_: &str, _: &Value) -> Option<(&'static str, Value)> {
    None
}

/// `mcp__SERVER__TOOL`.
fn double_underscores(name: &str) -> Option<(String, String)> {
    let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    Some((server.to_owned(), tool.to_owned()))
}
