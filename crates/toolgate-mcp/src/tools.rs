//! `tools/list`: the tools that policy offers, each with its schemas and with hints derived from its declaration.

use serde_json::{Value, json};
use toolgate_contract::{Declaration, ResultForm};
use toolgate_dialects::{DefinitionFormat, definition};

use crate::json_rpc_error::JsonRpcError;
use crate::methods::{RequestContext, page};

/// The argument for rights beyond those that a tool declares. It is not the tool's own, but MCP has no other field that
/// models can fill. Only tools that report what they were denied show it.
pub(crate) const REQUESTED: &str = "requested_permissions";

/// The argument that tells the person why those rights are needed.
pub(crate) const JUSTIFICATION: &str = "justification";

/// Clients that find tools for a task by themselves among many, by the name that each announces. They are told of all tools.
const SEARCHING_CLIENTS: [&str; 2] = ["claude-code", "codex-mcp-client"];

/// Answers `tools/list`.
pub(crate) fn list(context: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let workspace = &context.client.server.workspace;
    let ceilings = context.client.ceilings();
    let is_structured = context.profile.is_structured();
    let dialects = context.client.server.options.dialects_for(&context.profile.client);
    let tools = match SEARCHING_CLIENTS.contains(&context.profile.client.as_str()) {
        true => dialects.declarations(workspace.gate.listed_for_searching_clients(&ceilings)),
        false => dialects.declarations(workspace.gate.listed_for_models(&ceilings)),
    };
    let tools: Vec<Value> = tools.iter().map(|tool| described(tool, is_structured)).collect();
    page(context, "tools", &tools)
}

/// A tool as `tools/list` describes it.
fn described(tool: &Declaration, is_structured: bool) -> Value {
    let mut described = definition(tool, DefinitionFormat::Mcp);
    without(&mut described, &|name, value| name == "format" && value.as_str().is_some_and(is_width));
    if let Some(schema) = described.get_mut("outputSchema") {
        // Models read the list, so it has to be short: field names explain a result well enough, and nobody has to check it.
        without(schema, &|name, value| match name {
            "description" => value.is_string(),
            "minimum" => value == 0,
            "minLength" | "maxLength" | "maxItems" => value.is_number(),
            "default" => !value.is_object(),
            "additionalProperties" => *value == false,
            _ => false,
        });
        with_enums(schema);
    }
    if let Some(fields) = described.as_object_mut() {
        let is_object = tool.return_schema.get("type").is_some_and(|kind| kind == "object");
        if !is_structured || !is_object || tool.result_form == ResultForm::Content {
            fields.remove("outputSchema");
        }
        fields.insert("title".into(), title(&tool.name).into());
    }
    if tool.return_schema.pointer("/properties/denied").is_some() {
        described["inputSchema"]["properties"][REQUESTED] = json!({
            "type": "array",
            "items": { "type": "string" },
            "description": "The `request` values of a reply's `denied`; a person is asked.",
        });
        described["inputSchema"]["properties"][JUSTIFICATION] =
            json!({ "type": "string", "description": "Why, for the person." });
    }
    described
}

/// Number formats of schemars. Clients don't know them and warn about each.
fn is_width(format: &str) -> bool {
    ["int", "uint", "float", "double"].iter().any(|kind| format.starts_with(kind))
}

/// Removes keywords from a schema.
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

/// Writes a choice of words without descriptions as an `enum`, which says the same in less.
fn with_enums(schema: &mut Value) {
    let word = |choice: &Value| match choice.as_object() {
        Some(fields) if fields.len() == 2 && choice["type"] == "string" => fields.get("const").cloned(),
        _ => None,
    };
    let words: Option<Vec<Value>> = schema["oneOf"].as_array().and_then(|choices| choices.iter().map(word).collect());
    match schema {
        Value::Object(fields) => {
            if let Some(words) = words {
                fields.shift_remove("oneOf");
                fields.insert("type".into(), "string".into());
                fields.insert("enum".into(), words.into());
            }
            fields.values_mut().for_each(with_enums);
        }
        Value::Array(items) => items.iter_mut().for_each(with_enums),
        _ => {}
    }
}

/// The name as a person would write it.
fn title(name: &str) -> String {
    let words = name.replace(['_', '-', '.'], " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
