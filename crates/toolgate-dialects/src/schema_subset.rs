//! Which part of JSON Schema a provider accepts for a tool's arguments, and how a schema is brought into it. What is left out
//! constrains the provider's model less; the gate checks every argument by the whole schema all the same.

use serde_json::{Map, Value, json};

/// Keywords that Gemini's `parametersJsonSchema` accepts.
const GEMINI: &[&str] = &[
    "$id",
    "$defs",
    "$ref",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
];

/// Keywords that OpenAI accepts where a schema is strict.
const STRICT: &[&str] = &[
    "$defs",
    "$ref",
    "type",
    "title",
    "description",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "pattern",
    "anyOf",
    "properties",
    "additionalProperties",
    "required",
];

/// The schema as Gemini accepts it.
pub(crate) fn gemini_schema(schema: &Value) -> Value {
    kept(schema, GEMINI)
}

/// The schema as a strict one: every object is closed and all its properties are required. An argument that could be left out
/// may be `null` instead, unless it has a default value, which the model then states. None if the schema has an object that
/// can't be closed.
pub(crate) fn strict_schema(schema: &Value) -> Option<Value> {
    let mut strict = schema.clone();
    make_strict(&mut strict).then(|| kept(&strict, STRICT))
}

/// Requires every property; false if that can't be done.
fn make_strict(schema: &mut Value) -> bool {
    let Value::Object(fields) = schema else { return false };
    if let Some(one_of) = fields.remove("oneOf") {
        fields.insert("anyOf".into(), one_of);
    }
    if fields.get("type").is_some_and(|kind| names_type(kind, "object")) && !close(fields) {
        return false;
    }
    let is_constrained = ["type", "enum", "const", "anyOf", "$ref"].iter().any(|keyword| fields.contains_key(*keyword));
    is_constrained && nested(fields).all(make_strict)
}

/// Closes an object.
fn close(fields: &mut Map<String, Value>) -> bool {
    // Names that nobody can list can't be required.
    if fields.get("additionalProperties").is_some_and(|more| *more != false) {
        return false;
    }
    let required = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = fields.get_mut("properties") else { return false };
    for (name, property) in properties.iter_mut() {
        if !required.iter().any(|required| required == name) && property.get("default").is_none_or(Value::is_null) {
            allow_null(property);
        }
    }
    let names: Vec<Value> = properties.keys().map(|name| name.as_str().into()).collect();
    fields.insert("required".into(), names.into());
    fields.insert("additionalProperties".into(), false.into());
    true
}

fn allow_null(property: &mut Value) {
    let has_null = property.get("anyOf").and_then(Value::as_array).is_some_and(|all| all.contains(&null()));
    match property.get_mut("type") {
        Some(kind) if names_type(kind, "null") => {}
        Some(Value::Array(kinds)) => kinds.push("null".into()),
        Some(kind) => *kind = json!([kind, "null"]),
        None if has_null => {}
        None => *property = json!({ "anyOf": [property.take(), { "type": "null" }] }),
    }
    if let Some(Value::Array(words)) = property.get_mut("enum") {
        words.push(Value::Null);
    }
}

fn null() -> Value {
    json!({ "type": "null" })
}

fn names_type(kind: &Value, name: &str) -> bool {
    kind == name || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == name))
}

/// The schemas inside of a schema.
fn nested(fields: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    fields.iter_mut().flat_map(|(keyword, value)| -> Vec<&mut Value> {
        match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => named.values_mut().collect(),
            ("anyOf" | "prefixItems", Value::Array(all)) => all.iter_mut().collect(),
            ("items", one) => vec![one],
            _ => Vec::new(),
        }
    })
}

/// The schema with these keywords alone.
fn kept(schema: &Value, keywords: &[&str]) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let mut fields = fields.clone();
    if let Some(constant) = fields.remove("const") {
        fields.insert("enum".into(), json!([constant]));
    }
    fields.retain(|keyword, _| keywords.contains(&keyword.as_str()));
    // Widths of numbers, as schemars names them, are nobody else's formats.
    if fields.get("type").is_some_and(|kind| names_type(kind, "integer") || names_type(kind, "number")) {
        fields.remove("format");
    }
    for (keyword, value) in &mut fields {
        match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => {
                named.values_mut().for_each(|value| *value = kept(value, keywords));
            }
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(all)) => {
                all.iter_mut().for_each(|value| *value = kept(value, keywords));
            }
            ("items", one) => *one = kept(one, keywords),
            _ => {}
        }
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strict_schema_requires_everything_and_null_stands_for_left_out() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "path": { "type": "string", "minLength": 1 },
                "limit": { "type": "integer", "format": "uint64", "minimum": 1 },
                "mode": { "type": "string", "enum": ["a", "b"] },
                "all": { "type": "boolean", "default": false },
                "edits": { "type": "array", "items": { "type": "object", "properties": { "old": { "const": "x" } } } },
            },
            "required": ["path"],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "limit": { "type": ["integer", "null"], "minimum": 1 },
                "mode": { "type": ["string", "null"], "enum": ["a", "b", null] },
                "all": { "type": "boolean" },
                "edits": {
                    "type": ["array", "null"],
                    "items": {
                        "type": "object",
                        "properties": { "old": { "anyOf": [{ "enum": ["x"] }, { "type": "null" }] } },
                        "required": ["old"],
                        "additionalProperties": false,
                    },
                },
            },
            "required": ["path", "limit", "mode", "all", "edits"],
            "additionalProperties": false,
        });
        assert_eq!(strict_schema(&schema), Some(expected));
    }

    #[test]
    fn what_cannot_be_closed_cannot_be_strict() {
        for open in [
            json!({ "type": "object", "additionalProperties": { "type": "string" }, "properties": {} }),
            json!({ "type": "object", "properties": { "any": {} }, "required": ["any"] }),
            json!({ "type": "object" }),
        ] {
            assert_eq!(strict_schema(&open), None, "{open}");
        }
    }

    #[test]
    fn gemini_gets_the_keywords_that_it_knows() {
        let schema = json!({
            "$schema": "x",
            "type": "object",
            "properties": { "n": { "type": "integer", "format": "uint", "default": 1, "maximum": 9 }, "c": { "const": 1 } },
            "additionalProperties": false,
        });
        let expected = json!({
            "type": "object",
            "properties": { "n": { "type": "integer", "maximum": 9 }, "c": { "enum": [1] } },
            "additionalProperties": false,
        });
        assert_eq!(gemini_schema(&schema), expected);
    }
}
