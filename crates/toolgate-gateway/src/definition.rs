//! The definition of a server's tool: as the server wrote it, for the pin, and cleaned, for the model.

use std::fmt;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value, json};
use toolgate_contract::sha256;

use crate::foreign_text::{cleaned, visible};

/// Bytes of a definition.
const LARGEST: usize = 128 * 1024;

/// Levels of a definition.
const DEEPEST: usize = 32;

/// Characters of a tool's own name.
const LONGEST_NAME: usize = 128;

/// Characters of a description that a model is told.
const LONGEST_DESCRIPTION: usize = 2000;

/// The definition of a tool, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    raw: Value,
    hash: String,
}

/// Why a tool can't be offered. It costs that tool alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionFault {
    /// The tool's name, made visible; what stands for it if it has none.
    pub tool: String,
    /// The reason, as the end of a sentence about it.
    pub reason: String,
}

impl fmt::Display for DefinitionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The tool `{}` isn't offered: {}.", self.tool, self.reason)
    }
}

impl Definition {
    /// Checks a definition as a server wrote it.
    pub fn read(raw: Value) -> Result<Self, DefinitionFault> {
        let name = raw.get("name").and_then(Value::as_str).unwrap_or("(no name)");
        let fault =
            |reason: String| DefinitionFault { tool: visible(&name.chars().take(80).collect::<String>()), reason };
        if !raw["name"].is_string() || name.is_empty() || name.chars().count() > LONGEST_NAME || cleaned(name) != name {
            return Err(fault(format!("its name has to be 1 to {LONGEST_NAME} visible characters")));
        }
        if depth(&raw) > DEEPEST {
            return Err(fault(format!("its definition is nested more than {DEEPEST} levels deep")));
        }
        let canonical = canonical(&raw).to_string();
        if canonical.len() > LARGEST {
            return Err(fault(format!("its definition has more than {LARGEST} bytes")));
        }
        check_schema(&raw["inputSchema"]).map_err(fault)?;
        let read = Self { hash: sha256(canonical), raw };
        // What is cleaned may mean something else.
        check_schema(&read.args_schema()).map_err(|reason| DefinitionFault { tool: visible(read.name()), reason })?;
        Ok(read)
    }

    /// A definition that was checked before. Listing many tools checks nothing twice; what is called is validated anyway.
    pub(crate) fn checked_before(raw: Value) -> Self {
        Self { hash: Self::hash_of(&raw), raw }
    }

    /// The hash of a definition as a server wrote it, whether it can be offered or not.
    pub fn hash_of(raw: &Value) -> String {
        sha256(canonical(raw).to_string())
    }

    /// The tool as the server calls it.
    pub fn name(&self) -> &str {
        self.raw["name"].as_str().unwrap_or_default()
    }

    /// The hash of everything that the server says of the tool.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Everything that the server says of the tool.
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    /// What a model is told that the tool does.
    pub fn description(&self) -> String {
        let text = self.raw.get("description").or_else(|| self.raw.get("title")).and_then(Value::as_str);
        shortened(cleaned(text.unwrap_or_default()))
    }

    /// The schema of the arguments: cleaned, and closed against arguments that it doesn't have, unless it says otherwise.
    pub fn args_schema(&self) -> Value {
        const OPENING: [&str; 6] = ["additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref"];
        let mut schema = clean_value(&self.raw["inputSchema"]);
        shorten_descriptions(&mut schema);
        if let Some(fields) = schema.as_object_mut() {
            if !OPENING.iter().any(|name| fields.contains_key(*name)) {
                fields.insert("additionalProperties".into(), Value::Bool(false));
            }
            fields.entry("properties").or_insert_with(|| json!({}));
            fields.remove("$schema");
        }
        schema
    }

    /// What the server says of the tool's harm. It may lie, so this is only shown.
    pub fn hint(&self, name: &str) -> Option<bool> {
        self.raw["annotations"].get(name)?.as_bool()
    }
}

/// Refuses a schema that isn't one, or that leads elsewhere.
fn check_schema(schema: &Value) -> Result<(), String> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("it has no schema for an object of arguments".into());
    }
    if let Some(reference) = remote_reference(schema) {
        return Err(format!("its schema refers to `{}`, which is elsewhere", visible(reference)));
    }
    let options = jsonschema::options().with_draft(Draft::Draft202012).with_pattern_options(PatternOptions::regex());
    let built = options.build(schema);
    built.map(drop).map_err(|fault| format!("its schema is not a JSON Schema: {}", cleaned(&fault.to_string())))
}

/// What checks data by a server's own schema; none if that can't be used.
pub(crate) fn validator(schema: &Value) -> Option<Validator> {
    let is_usable = depth(schema) <= DEEPEST && remote_reference(schema).is_none();
    let options = jsonschema::options().with_draft(Draft::Draft202012).with_pattern_options(PatternOptions::regex());
    is_usable.then(|| options.build(schema).ok()).flatten()
}

/// A reference that leaves the schema.
fn remote_reference(value: &Value) -> Option<&str> {
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| match value {
            Value::String(target) if matches!(name.as_str(), "$ref" | "$dynamicRef" | "$schema") => {
                let is_known = target.starts_with('#') || target.contains("://json-schema.org/");
                (!is_known).then_some(target.as_str())
            }
            other => remote_reference(other),
        }),
        Value::Array(entries) => entries.iter().find_map(remote_reference),
        _ => None,
    }
}

/// The value with the keys of every object in order, so that equal definitions have equal hashes.
pub(crate) fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            sorted.into_iter().map(|(name, value)| (name.clone(), canonical(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(entries) => entries.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

/// The value with all its text cleaned, names of fields included.
pub(crate) fn clean_value(value: &Value) -> Value {
    match value {
        Value::String(text) => cleaned(text).into(),
        Value::Array(entries) => entries.iter().map(clean_value).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (cleaned(name), clean_value(value))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// A description without what is too much for a model.
fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST_DESCRIPTION) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Shortens what a schema says of its parts. Values that arguments are compared with stay as they are.
fn shorten_descriptions(schema: &mut Value) {
    match schema {
        Value::Array(entries) => entries.iter_mut().for_each(shorten_descriptions),
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("const" | "default" | "enum" | "examples", _) => {}
                    ("description" | "title" | "$comment", Value::String(text)) => {
                        *text = shortened(std::mem::take(text));
                    }
                    // Here the names of fields are those of arguments.
                    ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(parts)) => {
                        parts.values_mut().for_each(shorten_descriptions);
                    }
                    (_, value) => shorten_descriptions(value),
                }
            }
        }
        _ => {}
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(entries) => 1 + entries.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(schema: Value) -> Value {
        json!({ "name": "t", "description": "d\u{200b}o", "inputSchema": schema })
    }

    #[test]
    fn a_hash_is_about_everything_but_the_order_of_fields() {
        let hash = |raw: &str| Definition::read(serde_json::from_str(raw).unwrap()).unwrap().hash;
        let one = hash(r#"{"name":"t","inputSchema":{"type":"object","properties":{}},"description":"d"}"#);
        assert_eq!(one, hash(r#"{"description":"d","inputSchema":{"properties":{},"type":"object"},"name":"t"}"#));
        for other in [
            r#"{"name":"t","inputSchema":{"type":"object","properties":{}},"description":"d "}"#,
            r#"{"name":"t","inputSchema":{"type":"object","properties":{"x":{}}},"description":"d"}"#,
            r#"{"name":"t","inputSchema":{"type":"object","properties":{}},"description":"d","_meta":{"x":1}}"#,
        ] {
            assert_ne!(one, hash(other), "{other}");
        }
    }

    #[test]
    fn what_a_model_is_told_is_clean_and_closed() {
        let read = Definition::read(tool(
            json!({ "type": "object", "properties": { "a": { "description": "\u{1b}[31mx" } } }),
        ));
        let read = read.unwrap();
        assert_eq!(
            (read.description().as_str(), read.args_schema()["properties"]["a"]["description"].as_str()),
            ("do", Some("x"))
        );
        assert_eq!(read.args_schema()["additionalProperties"], false);
        let open = Definition::read(tool(
            json!({ "type": "object", "anyOf": [{ "required": ["a"] }], "properties": { "a": {} } }),
        ));
        assert_eq!(open.unwrap().args_schema().get("additionalProperties"), None);
        let long = json!({ "name": "t", "description": "é".repeat(50_000), "inputSchema": { "type": "object" } });
        assert_eq!(Definition::read(long).unwrap().description().chars().count(), LONGEST_DESCRIPTION + 1);
        let argument = json!({ "description": "é".repeat(50_000), "enum": ["x".repeat(3000)] });
        let long = Definition::read(tool(json!({ "type": "object", "properties": { "default": argument } }))).unwrap();
        let schema = long.args_schema();
        let argument = &schema["properties"]["default"];
        assert_eq!(argument["description"].as_str().unwrap().chars().count(), LONGEST_DESCRIPTION + 1);
        assert_eq!(argument["enum"][0].as_str().unwrap().len(), 3000, "what arguments are compared with is whole");
    }

    #[test]
    fn one_bad_definition_is_refused_with_its_reason() {
        let mut deep = json!({ "type": "object" });
        for _ in 0..40 {
            deep = json!({ "type": "object", "properties": { "x": deep } });
        }
        for (raw, expected) in [
            (json!({ "inputSchema": { "type": "object" } }), "visible characters"),
            (json!({ "name": "a\u{200b}", "inputSchema": { "type": "object" } }), "visible characters"),
            (json!({ "name": "t" }), "no schema"),
            (tool(json!({ "type": "string" })), "no schema"),
            (tool(json!({ "type": "object", "properties": { "x": { "type": "strinng" } } })), "not a JSON Schema"),
            (
                tool(json!({ "type": "object", "properties": { "x": { "$ref": "http://evil.example/s" } } })),
                "elsewhere",
            ),
            (tool(json!({ "type": "object", "properties": { "x": { "pattern": "(a+" } } })), "not a JSON Schema"),
            (
                tool(json!({ "type": "object", "properties": { "x": { "$r\u{200b}ef": "http://evil.example/s" } } })),
                "elsewhere",
            ),
            (tool(deep), "levels deep"),
            (tool(json!({ "type": "object", "description": "x".repeat(200_000) })), "bytes"),
        ] {
            let fault = Definition::read(raw).unwrap_err();
            assert!(fault.reason.contains(expected), "{fault}");
        }
        let recursive = json!({ "type": "object", "properties": { "x": { "$ref": "#" } } });
        assert!(Definition::read(tool(recursive)).is_ok(), "a schema may refer to itself");
    }
}
