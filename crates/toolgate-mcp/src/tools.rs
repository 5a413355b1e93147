//! The list of tools: what policy offers, each with its schemas and with hints that are derived from its declaration.

use serde_json::{Value, json};
use toolgate_contract::Declaration;
use toolgate_dialects::{Dialect, definition};

use crate::json_rpc_error::JsonRpcError;
use crate::methods::{RequestContext, page};

/// Rights beyond what a tool states. They are no argument of the tool, but MCP has no other place that models can fill. Only
/// tools that tell what was kept from them show it.
pub(crate) const REQUESTED: &str = "requested_permissions";

/// Answers `tools/list`.
pub(crate) fn list(asking: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let host = &asking.client.server.host;
    let ceilings = asking.client.ceilings();
    let offered = host.gate().offered(&ceilings);
    let tools: Vec<Value> = offered.map(|tool| described(tool, asking.profile.is_structured())).collect();
    page(asking, "tools", &tools)
}

/// A tool as clients take it.
fn described(tool: &Declaration, is_structured: bool) -> Value {
    let mut described = definition(tool, Dialect::Mcp);
    without(&mut described, &|name, value| name == "format" && value.as_str().is_some_and(is_width));
    if let Some(schema) = described.get_mut("outputSchema") {
        // What a result's fields mean is told by their names, and that none is negative is of no use; the list is read by
        // models, and has to be short.
        without(schema, &|name, value| match name {
            "description" => value.is_string(),
            "minimum" => value == 0,
            _ => false,
        });
    }
    if let Some(fields) = described.as_object_mut() {
        let is_object = tool.return_schema.get("type").is_some_and(|kind| kind == "object");
        if !is_structured || !is_object {
            fields.remove("outputSchema");
        }
        fields.insert("title".into(), title(&tool.name).into());
    }
    if tool.return_schema.pointer("/properties/denied").is_some() {
        described["inputSchema"]["properties"][REQUESTED] = json!({
            "type": "array",
            "items": { "type": "string" },
            "description": "The `request` of what a reply says was denied; a person is asked.",
        });
    }
    described
}

/// How wide a number is here: clients don't know these formats, and complain of each.
fn is_width(format: &str) -> bool {
    ["int", "uint", "float", "double"].iter().any(|kind| format.starts_with(kind))
}

/// Takes keywords out of a schema.
fn without(schema: &mut Value, is_out: &dyn Fn(&str, &Value) -> bool) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|name, value| !is_out(name, value));
            fields.values_mut().for_each(|value| without(value, is_out));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without(item, is_out)),
        _ => {}
    }
}

/// The name as a person would write it.
fn title(name: &str) -> String {
    let words = name.replace(['_', '-', '.'], " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
