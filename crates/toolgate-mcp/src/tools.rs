//! The list of tools: what policy offers, each with its schemas and with hints that are derived from its declaration.

use serde_json::Value;
use toolgate_contract::Declaration;
use toolgate_dialects::{Format, definition};

use crate::fault::Fault;
use crate::methods::{Asking, page};

/// Answers `tools/list`.
pub(crate) fn list(asking: &Asking<'_>) -> Result<Value, Fault> {
    let host = &asking.client.server.host;
    let offered = host.gate().offered(host.ceilings());
    let tools: Vec<Value> = offered.map(|tool| described(tool, asking.manner.is_structured())).collect();
    page(asking, "tools", &tools)
}

/// A tool as clients take it.
fn described(tool: &Declaration, is_structured: bool) -> Value {
    let mut described = definition(tool, Format::Mcp);
    if let Some(fields) = described.as_object_mut() {
        let is_object = tool.return_schema.get("type").is_some_and(|kind| kind == "object");
        if !is_structured || !is_object {
            fields.remove("outputSchema");
        }
        fields.insert("title".into(), title(&tool.name).into());
    }
    described
}

/// The name as a person would write it.
fn title(name: &str) -> String {
    let words = name.replace(['_', '-', '.'], " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
