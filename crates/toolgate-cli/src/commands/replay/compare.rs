//! Compares two replies to the same call, ignoring what naturally differs from run to run.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};
use toolgate_contract::{ErrorCode, ToolError};

/// Fields that hold times, durations or ids.
const VOLATILE_FIELDS: &[&str] =
    &["duration_ms", "started", "ended", "time", "timestamp", "modified", "pid", "cursor", "next_cursor", "replay"];

/// Patterns of times, durations and ids inside texts, and their placeholders.
static VOLATILE_TEXTS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let table = [
        (r"\b(call|run|trace|art|proc|agent)_[0-9a-f]{16,}\b", "<$1>"),
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?", "<time>"),
        (r"\b\d\d:\d\d:\d\d(\.\d+)?\b", "<time>"),
        (r"\b\d+(\.\d+)? ?(ns|µs|us|ms|s|sec|seconds)\b", "<duration>"),
        (r"/tmp/[A-Za-z0-9._-]+", "<temporary>"),
    ];
    table.into_iter().map(|(pattern, word)| (Regex::new(pattern).expect("the table is right"), word)).collect()
});

/// The first place where two replies differ.
#[derive(Debug, PartialEq)]
pub(super) struct ReplayDifference {
    /// A JSON pointer.
    pub(super) at: String,
    pub(super) was: Option<Value>,
    pub(super) now: Option<Value>,
}

/// The end of a call, as one comparable value.
pub(super) fn comparable_answer(
    payload: Option<&Value>,
    error: Option<&ToolError>,
    changed: &BTreeMap<String, Option<String>>,
) -> Value {
    // The person who answers an approval has another name in the replay.
    let words = |error: &ToolError| match error.code {
        ErrorCode::ApprovalDenied | ErrorCode::ApprovalRequired => Value::Null,
        _ => Value::String(error.message.clone()),
    };
    let error = error.map(|error| json!({ "code": error.code, "message": words(error) }));
    json!({ "error": error, "payload": payload, "changed": changed })
}

/// Where two replies differ first, if they do.
pub(super) fn compare(was: &Value, now: &Value) -> Option<ReplayDifference> {
    differ("", Some(&normalized(was)), Some(&normalized(now)))
}

/// A value without what naturally differs.
pub(super) fn normalized(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !VOLATILE_FIELDS.contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name.clone(), normalized(value))).collect())
        }
        Value::Array(items) => items.iter().map(normalized).collect(),
        Value::String(text) => Value::String(normalized_text(text)),
        other => other.clone(),
    }
}

fn normalized_text(text: &str) -> String {
    VOLATILE_TEXTS.iter().fold(text.to_owned(), |text, (pattern, word)| pattern.replace_all(&text, *word).into_owned())
}

fn differ(at: &str, was: Option<&Value>, now: Option<&Value>) -> Option<ReplayDifference> {
    match (was, now) {
        (Some(Value::Object(was)), Some(Value::Object(now))) => {
            let names = was.keys().chain(now.keys().filter(|name| !was.contains_key(*name)));
            let field = |fields: &'_ Map<String, Value>, name: &str| fields.get(name).cloned();
            names.into_iter().find_map(|name| {
                let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                differ(&place, field(was, name).as_ref(), field(now, name).as_ref())
            })
        }
        (Some(Value::Array(was)), Some(Value::Array(now))) => (0..was.len().max(now.len()))
            .find_map(|index| differ(&format!("{at}/{index}"), was.get(index), now.get(index))),
        (Some(Value::String(was)), Some(Value::String(now))) if was != now => Some(in_text(at, was, now)),
        (was, now) if was == now => None,
        (was, now) => Some(ReplayDifference { at: at.into(), was: was.cloned(), now: now.cloned() }),
    }
}

/// For long texts, the first line that differs.
fn in_text(at: &str, was: &str, now: &str) -> ReplayDifference {
    let (mut was_lines, mut now_lines) = (was.lines(), now.lines());
    for line in 1.. {
        let (was_line, now_line) = (was_lines.next(), now_lines.next());
        if was_line != now_line {
            let value = |line: Option<&str>| line.map(|line| Value::String(line.to_owned()));
            let at = if was.lines().nth(1).is_some() { format!("{at} line {line}") } else { at.to_owned() };
            return ReplayDifference { at, was: value(was_line), now: value(now_line) };
        }
        if was_line.is_none() {
            break;
        }
    }
    // Only the end of the last line differs.
    ReplayDifference { at: at.into(), was: Some(was.into()), now: Some(now.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_does_not_count() {
        for (was, now) in [
            (json!({"duration_ms": 1, "a": 1}), json!({"a": 1, "duration_ms": 2})),
            (json!("took 1.25s"), json!("took 900 ms")),
            (json!("at 2026-01-02T03:04:05Z"), json!("at 2027-01-02 03:04")),
            (json!("see call_0123456789abcdef0"), json!("see call_fedcba98765432100")),
            (json!(["/tmp/.tmpAbC/x"]), json!(["/tmp/.tmpXyZ/x"])),
        ] {
            assert_eq!(compare(&was, &now), None, "{was} {now}");
        }
    }

    #[test]
    fn the_first_difference_is_named() {
        let spot = |was: Value, now: Value| compare(&was, &now).unwrap();
        let differ = |at: &str, was: Option<Value>, now: Option<Value>| ReplayDifference { at: at.into(), was, now };
        assert_eq!(
            spot(json!({"a": {"b/c": [1, 2]}}), json!({"a": {"b/c": [1, 3]}})),
            differ("/a/b~1c/1", Some(json!(2)), Some(json!(3)))
        );
        assert_eq!(spot(json!({"a": 1}), json!({"a": 1, "b": 2})), differ("/b", None, Some(json!(2))));
        assert_eq!(spot(json!([1]), json!([])), differ("/0", Some(json!(1)), None));
        assert_eq!(spot(json!("one\ntwo"), json!("one\n2")), differ(" line 2", Some(json!("two")), Some(json!("2"))));
        assert_eq!(spot(json!("one\n"), json!("one")), differ("", Some(json!("one\n")), Some(json!("one"))));
    }
}
