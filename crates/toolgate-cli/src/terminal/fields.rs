//! Prints a result without a format of its own: one line for each field.

use serde_json::Value;

use crate::output::outln;

use super::{DIM, paint, plain};

/// Prints every field on a line of its own.
pub(super) fn show_fields(value: &Value) {
    lines(value, "").iter().for_each(|line| outln!("{line}"));
}

/// A value as lines with this indent.
fn lines(value: &Value, indent: &str) -> Vec<String> {
    match value {
        Value::Object(fields) => fields.iter().flat_map(|(name, value)| field(name, value, indent)).collect(),
        Value::Array(items) => items.iter().flat_map(|item| item_lines(item, indent)).collect(),
        Value::String(text) => plain(text).lines().map(|line| format!("{indent}{line}")).collect(),
        other => vec![format!("{indent}{}", word(other))],
    }
}

/// A field on one line, or indented below its name where it takes more.
fn field(name: &str, value: &Value, indent: &str) -> Vec<String> {
    let name = paint(DIM, format!("{}:", plain(name).replace('_', " ")));
    let short = match value {
        Value::String(text) if text.contains('\n') => None,
        Value::String(text) => Some(plain(text)),
        Value::Array(items) if items.is_empty() => Some("none".into()),
        Value::Array(_) | Value::Object(_) => None,
        other => Some(word(other)),
    };
    match short {
        Some(text) => vec![format!("{indent}{name} {text}")],
        None => [vec![format!("{indent}{name}")], lines(value, &format!("{indent}  "))].concat(),
    }
}

/// An item of a list, with a dash before its first line.
fn item_lines(item: &Value, indent: &str) -> Vec<String> {
    let set_in = format!("{indent}  ");
    let mut lines = lines(item, &set_in);
    if let Some(first) = lines.first_mut() {
        first.replace_range(..set_in.len(), &format!("{indent}- "));
    }
    lines
}

fn word(value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Null => "none".into(),
        other => plain(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_is_lines_that_a_person_can_read() {
        let value = json!({
            "path": "a\u{1b}[2J", "is_new": false, "left": [], "text": "one\ntwo",
            "processes": [{ "process": "p1", "exit_code": 0, "more": ["x", "y"] }, { "process": "p2" }],
        });
        let text = anstream::adapter::strip_str(&lines(&value, "").join("\n")).to_string();
        let expected = "path: a\\u{1b}[2J\nis new: no\nleft: none\ntext:\n  one\n  two\nprocesses:\n  - process: p1\n    \
                        exit code: 0\n    more:\n      - x\n      - y\n  - process: p2";
        assert_eq!(text, expected);
    }
}
