//! Redaction of JSON. A field's name is better evidence than any pattern: what stands under `password` is replaced
//! whole. Names of fields are texts too and may hold a secret themselves.

use std::borrow::Cow;
use std::mem;

use serde_json::{Map, Value};

use crate::secret_names::names_a_secret;
use crate::{REDACTED, Redactor};

/// Redacts `value` in place. Returns whether it changed.
pub(crate) fn redact(redactor: &Redactor, value: &mut Value) -> bool {
    match value {
        Value::String(text) => match redactor.text(text) {
            Cow::Borrowed(_) if redactor.encodes_secret(text.as_bytes()) => {
                REDACTED.clone_into(text);
                true
            }
            Cow::Borrowed(_) => false,
            Cow::Owned(clean) => {
                *text = clean;
                true
            }
        },
        Value::Array(items) => items.iter_mut().fold(false, |changed, item| redact(redactor, item) | changed),
        Value::Object(fields) => fields_of(redactor, fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn fields_of(redactor: &Redactor, fields: &mut Map<String, Value>) -> bool {
    let mut changed = false;
    for (name, value) in fields.iter_mut() {
        changed |= match value {
            Value::String(text) if !text.is_empty() && names_a_secret(name) => {
                let differs = text != REDACTED;
                REDACTED.clone_into(text);
                differs
            }
            _ => redact(redactor, value),
        };
    }
    changed | names_of(redactor, fields)
}

/// Rewrites the object only if a name holds a secret; two such names stay two fields.
fn names_of(redactor: &Redactor, fields: &mut Map<String, Value>) -> bool {
    if fields.keys().all(|name| matches!(redactor.text(name), Cow::Borrowed(_))) {
        return false;
    }
    for (name, value) in mem::take(fields) {
        let clean = redactor.text(&name).into_owned();
        let mut free = clean.clone();
        let mut number = 2;
        while fields.contains_key(&free) {
            free = format!("{clean} ({number})");
            number += 1;
        }
        fields.insert(free, value);
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_names_a_secret_is_replaced_whole() {
        let mut value = json!({
            "user": "me",
            "password": "letmein",
            "headers": {"Authorization": "Basic anything at all", "X-Api-Key": ""},
            "items": [{"nextPageToken": "abc123def"}, "export DB_PASSWORD=hunter2", 7, null],
            "secret": {"name": "my-secret"},
        });
        assert!(Redactor::default().json(&mut value));
        let expected = json!({
            "user": "me",
            "password": REDACTED,
            "headers": {"Authorization": REDACTED, "X-Api-Key": ""},
            "items": [{"nextPageToken": "abc123def"}, "export DB_PASSWORD=***REDACTED***", 7, null],
            "secret": {"name": "my-secret"},
        });
        assert_eq!(value, expected);
        assert!(!Redactor::default().json(&mut value), "a second time changes nothing");
    }

    #[test]
    fn a_secret_in_a_name_is_replaced_and_no_field_is_lost() {
        let redactor = Redactor::new([("A_TOKEN".into(), "0pen-sesame".into()), ("B_TOKEN".into(), "xyzzy-42".into())]);
        let mut value = json!({"0pen-sesame": 1, "plain": 2, "xyzzy-42": 3});
        assert!(redactor.json(&mut value));
        assert_eq!(value, json!({"***REDACTED***": 1, "plain": 2, "***REDACTED*** (2)": 3}));
    }

    #[test]
    fn base64_of_a_secret_is_replaced_whole() {
        // `DB_PASSWORD=hunter2`, and `DB_PASS_WORDS=many`.
        let mut value = json!({"content": "REJfUEFTU1dPUkQ9\naHVudGVyMg==\n", "other": "REJfUEFTU19XT1JEUz1tYW55"});
        assert!(Redactor::default().json(&mut value));
        assert_eq!(value, json!({"content": REDACTED, "other": "REJfUEFTU19XT1JEUz1tYW55"}));
    }

    #[test]
    fn a_value_without_secrets_stays_as_it_is() {
        let mut value = json!({"content": "fn main() {}", "lines": [1, 2, 3]});
        let before = value.clone();
        assert!(!Redactor::default().json(&mut value));
        assert_eq!(value, before);
    }
}
