//! The schema of a tool's arguments as a model is told it: everything that helps to write a call, in as few tokens as that
//! takes. What is left out is still checked, as the gate validates every call by the whole schema.

use serde_json::{Map, Value};

/// The schema without what a model can do without: widths of numbers, lengths, a minimum of 0 or 1, defaults that are the usual
/// ones, `null` for an argument that can be left out anyway, that there are no other arguments, and descriptions that only repeat
/// a name, or are of the arguments as a whole, of list items and of words to choose from.
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
        "minimum" => *value != 0 && *value != 1,
        "default" => !is_usual(value),
        "additionalProperties" => *value != false,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "title" | "$schema" => false,
        _ => true,
    });
    without_null(fields);
    with_enum(fields);
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    for (keyword, value) in fields {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    shorten(property);
                    without_repetition(name, property);
                }
            }
            ("items", items) => {
                shorten(items);
                without_description(items);
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(choices)) => choices.iter_mut().for_each(shorten),
            _ => {}
        }
    }
}

/// Takes away a description that says no more than the argument's name or the words to choose from.
fn without_repetition(name: &str, property: &mut Value) {
    let Some(description) = property["description"].as_str() else { return };
    let is_short_beside_choices = property.get("enum").is_some() && description.split(' ').count() <= 4;
    if is_short_beside_choices || repeats(name, description) {
        without_description(property);
    }
}

/// Whether every word that says something is one of the name's: "Whether to ignore case." of `ignore_case`.
fn repeats(name: &str, description: &str) -> bool {
    const SAYS_NOTHING: [&str; 6] = ["the", "a", "its", "whether", "to", "of"];
    let stem =
        |word: &str| word.chars().filter(|letter| letter.is_alphabetic()).take(5).collect::<String>().to_lowercase();
    let parts: Vec<String> = name.split('_').map(stem).collect();
    let words = description.split(' ').map(str::to_lowercase).filter(|word| !SAYS_NOTHING.contains(&word.as_str()));
    words.map(|word| stem(&word)).all(|word| parts.contains(&word))
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
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Args",
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
                "recursive": { "type": "boolean", "description": "Whether to recurse.", "default": false },
                "format": { "type": ["string", "null"], "description": "Long\ntext.", "default": null },
                "limit": { "type": "integer", "format": "uint32", "minimum": 1, "maximum": 9, "default": 5 },
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
            "required": ["action"],
            "properties": {
                "action": { "type": "string", "enum": ["read", "stop"] },
                "recursive": { "type": "boolean" },
                "format": { "type": "string", "description": "Long text." },
                "limit": { "type": "integer", "maximum": 9, "default": 5 },
                "signal": { "type": "string", "enum": ["INT"] },
                "kind": { "type": "string", "enum": ["file"] },
                "edits": { "type": "array", "items": { "type": "object" } },
            },
        });
        assert_eq!(concise_schema(&schema), expected);
    }
}
