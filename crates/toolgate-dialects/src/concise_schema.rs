//! The schema of a tool's arguments as a model is told it: everything that helps to write a call, in as few tokens as that
//! takes. What is left out is still checked, as the gate validates every call by the whole schema.

use serde_json::{Map, Value};

/// The schema without what a model can do without: widths of numbers, lengths, defaults that are the usual ones, `null` for an
/// argument that can be left out anyway, and descriptions of the arguments as a whole, of list items and of words to choose from.
pub(crate) fn concise_schema(schema: &Value) -> Value {
    let mut concise = schema.clone();
    shorten(&mut concise);
    without_description(&mut concise);
    concise
}

fn without_description(schema: &mut Value) {
    if let Some(fields) = schema.as_object_mut() {
        fields.shift_remove("description");
    }
}

fn shorten(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.retain(|keyword, value| match keyword.as_str() {
        "format" => !value.as_str().is_some_and(is_width),
        "minimum" => *value != 0,
        "default" => !is_usual(value),
        "minLength" | "maxLength" | "minItems" | "maxItems" => false,
        _ => true,
    });
    without_null(fields);
    with_enum(fields);
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    for (keyword, value) in fields {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(shorten),
            ("items", items) => {
                shorten(items);
                without_description(items);
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(choices)) => choices.iter_mut().for_each(shorten),
            _ => {}
        }
    }
}

/// The format of a number, by its width in Rust.
fn is_width(format: &str) -> bool {
    ["int", "uint", "float", "double"].iter().any(|kind| format.starts_with(kind))
}

/// A default that everybody expects of what is left out.
fn is_usual(default: &Value) -> bool {
    match default {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// An argument that may be `null` may also be left out: the other type is enough to say.
fn without_null(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            fields.shift_remove("anyOf");
            for (keyword, value) in only {
                fields.entry(keyword).or_insert(value);
            }
        }
    }
}

/// Words to choose from are a list. Their names say what they mean, or the description of the argument does.
fn with_enum(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(words)) = fields.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let Some(Value::Array(choices)) = fields.get("oneOf") else { return };
    let word = |choice: &Value| choice.get("const").cloned();
    let Some(words) = choices.iter().map(word).collect::<Option<Vec<_>>>() else { return };
    fields.shift_remove("oneOf");
    fields.insert("type".into(), "string".into());
    fields.insert("enum".into(), words.into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_model_is_told_what_it_needs_to_write_a_call() {
        let schema = json!({
            "type": "object",
            "description": "What to do.",
            "additionalProperties": false,
            "required": ["action"],
            "properties": {
                "action": {
                    "description": "What to do.",
                    "oneOf": [
                        { "type": "string", "const": "read", "description": "Shows it." },
                        { "type": "string", "const": "stop", "description": "Ends it." },
                    ],
                },
                "format": { "type": ["string", "null"], "description": "Long\ntext.", "default": null },
                "limit": { "type": "integer", "format": "uint32", "minimum": 0, "maximum": 9, "default": 5 },
                "signal": { "anyOf": [{ "type": "string", "enum": ["INT"] }, { "type": "null" }], "default": null },
                "kind": { "type": ["string", "null"], "enum": ["file", null], "default": null },
                "edits": {
                    "type": "array",
                    "maxItems": 9,
                    "default": [],
                    "items": { "type": "object", "description": "One.", "additionalProperties": false },
                },
            },
        });
        let expected = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["action"],
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["read", "stop"],
                    "description": "What to do.",
                },
                "format": { "type": "string", "description": "Long text." },
                "limit": { "type": "integer", "maximum": 9, "default": 5 },
                "signal": { "type": "string", "enum": ["INT"] },
                "kind": { "type": "string", "enum": ["file"] },
                "edits": { "type": "array", "items": { "type": "object", "additionalProperties": false } },
            },
        });
        assert_eq!(concise_schema(&schema), expected);
    }
}
