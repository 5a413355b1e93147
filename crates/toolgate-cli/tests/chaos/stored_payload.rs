//! A payload as it was before it was cut: what a reply leaves out is in the artifacts that it names.

use std::path::Path;

use serde_json::Value;

/// Texts that are longer may be cut.
const SHORT: usize = 64;

/// The artifacts that a reply names: the JSON pointer of the field, empty for the entire payload, and the id.
pub(crate) fn named(reply: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let refs = entries(&reply["artifacts"]["refs"]).into_iter().map(|one| (text(&one["field"]), text(&one["id"])));
    // A server links them, and says in words which field it is.
    let is_link = |block: &Value| block["type"] == "resource_link";
    let linked = entries(&reply["content"]).into_iter().filter(is_link).map(|link| {
        let words = text(&link["description"]);
        let field =
            words.strip_prefix("The full text of ").and_then(|rest| rest.strip_suffix(", which was truncated."));
        (field.filter(|field| field.starts_with('/')).unwrap_or_default().to_owned(), text(&link["name"]))
    });
    refs.chain(linked).collect()
}

/// The payload with everything that was cut from it. What isn't in a list and isn't long has to be in the reply itself.
pub(crate) fn restored(shown: Value, reply: &Value, runs: &Path) -> Value {
    let named = named(reply);
    let mut payload = shown.clone();
    if let Some((_, id)) = named.iter().find(|(field, _)| field.is_empty()).filter(|_| is_json(&named, runs)) {
        payload = serde_json::from_slice(&artifact(runs, id)).unwrap();
        assert_fields(&payload, &shown, &mut String::new());
    }
    for (field, id) in named.iter().filter(|(field, _)| !field.is_empty()) {
        if let Some(text) = payload.pointer_mut(field) {
            *text = String::from_utf8_lossy(&artifact(runs, id)).into_owned().into();
        }
    }
    payload
}

/// Whether the artifact without a field is a payload, and not an image or a file.
fn is_json(named: &[(String, String)], runs: &Path) -> bool {
    let whole = named.iter().find(|(field, _)| field.is_empty());
    whole.is_some_and(|(_, id)| {
        serde_json::from_slice::<Value>(&artifact(runs, id)).is_ok_and(|value| value.is_object())
    })
}

fn assert_fields(full: &Value, shown: &Value, pointer: &mut String) {
    match full {
        Value::Object(fields) => {
            for (name, field) in fields {
                let length = pointer.len();
                pointer.push_str(&format!("/{name}"));
                assert_fields(field, &shown[name], pointer);
                pointer.truncate(length);
            }
        }
        Value::Array(_) => {}
        Value::String(text) if text.len() > SHORT => {}
        value => assert_eq!(shown, value, "A reply that was cut lost the field {pointer}"),
    }
}

fn artifact(runs: &Path, id: &str) -> Vec<u8> {
    let runs = std::fs::read_dir(runs).unwrap().flatten();
    let mut found = runs.filter_map(|run| std::fs::read(run.path().join("artifacts").join(id)).ok());
    found.next().unwrap_or_else(|| panic!("A reply names the artifact {id}, which no run has"))
}
