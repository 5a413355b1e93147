//! A reply as text for a model: the result, what is missing and where it is stored, images, and after an error what to
//! do next.

use std::fmt::Write;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use toolgate_contract::{ArtifactRef, Artifacts, Reply, ToolError, Truncated, counted};
use toolgate_dialects::{ShownResult, ToolCall};
use toolgate_redact::Redactor;

use crate::model::{InlineImage, Observation};

/// The image types that every provider accepts.
const IMAGE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];
/// The largest image that is shown, in bytes; providers refuse larger ones.
const MAX_IMAGE_BYTES: u64 = 3_750_000;
/// The longest reply that a model is shown, in bytes. The gate's own limits are lower; this one is a safeguard.
const MAX_REPLY_BYTES: usize = 120_000;

/// The result of a call, for the model that asked for it: as its dialect shows it, or natively.
pub(crate) fn observation(
    call: &ToolCall,
    shown: Option<&ShownResult>,
    reply: &Reply,
    artifacts: &dyn Artifacts,
    redactor: &Redactor,
) -> Observation {
    Observation {
        id: call.id.clone(),
        shape: call.shape,
        name: call.name.clone(),
        text: shown.map_or_else(|| as_text(reply), |shown| shown_text(shown, reply)),
        ok: shown.map_or(reply.ok, |shown| !shown.is_error),
        artifact: None,
        images: reply.artifacts.refs.iter().filter_map(|stored| image(stored, artifacts, redactor)).collect(),
    }
}

/// The image in an artifact, if a model can be shown it. An artifact that can't be read any more, or with a secret in its
/// metadata, is still named in the text.
fn image(stored: &ArtifactRef, artifacts: &dyn Artifacts, redactor: &Redactor) -> Option<InlineImage> {
    if !IMAGE_TYPES.contains(&stored.mime.as_str()) || stored.bytes > MAX_IMAGE_BYTES {
        return None;
    }
    let (_, file) = artifacts.open(&stored.id).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_IMAGE_BYTES).read_to_end(&mut bytes).ok()?;
    if redactor.finds_secret(&bytes) {
        return None;
    }
    Some(InlineImage { mime: stored.mime.clone(), data: STANDARD.encode(bytes) })
}

/// What a dialect shows, with the notes that it doesn't have yet.
fn shown_text(shown: &ShownResult, reply: &Reply) -> String {
    let is_named = |cut: &Truncated| cut.artifact.as_ref().is_some_and(|artifact| shown.text.contains(artifact));
    let mut rest = reply.clone();
    // Cursors are arguments of native tools, and a dialect says in its own way that there is more.
    rest.truncated = rest.truncated.filter(|cut| !is_named(cut)).map(|cut| Truncated { next_cursor: None, ..cut });
    with_notes(shown.text.clone(), &rest)
}

/// A reply as text.
fn as_text(reply: &Reply) -> String {
    let text = match (&reply.error, &reply.payload) {
        (Some(error), _) => error_text(error),
        (None, Some(payload)) => payload_text(payload),
        (None, None) => "done".into(),
    };
    with_notes(text, reply)
}

fn with_notes(mut text: String, reply: &Reply) -> String {
    if text.len() > MAX_REPLY_BYTES {
        let cut = text.floor_char_boundary(MAX_REPLY_BYTES);
        let missing = text.len() - cut;
        text.truncate(cut);
        let _ = write!(text, "\n[not shown: {}]", counted(missing, "more byte"));
    }
    for note in notes(reply) {
        let _ = write!(text, "\n[{note}]");
    }
    text
}

fn error_text(error: &ToolError) -> String {
    let mut text = format!("error[{}]: {}", error.code, error.message);
    if let Some(faults) = error.details.as_ref().and_then(|details| details.get("faults")) {
        let _ = write!(text, "\nfaults: {faults}");
    }
    if let Some(hint) = &error.hint {
        let _ = write!(text, "\nnext: {hint}");
    }
    // What a command wrote until it was stopped.
    for name in ["stdout", "stderr"] {
        if let Some(output) = error.details.as_ref().and_then(|details| details.get(name)?.as_str()) {
            let _ = write!(text, "\n{name}:\n{}", output.trim_end_matches('\n'));
        }
    }
    text
}

/// Short fields first, one on each line; then multi-line texts, unescaped. A model reads that more easily than JSON.
fn payload_text(payload: &Value) -> String {
    let Value::Object(fields) = payload else { return payload.to_string() };
    let is_text = |value: &Value| value.as_str().is_some_and(|text| text.contains('\n'));
    let (texts, short): (Vec<_>, Vec<_>) = fields.iter().partition(|(_, value)| is_text(value));
    let mut words = String::new();
    for (name, value) in short {
        match value {
            Value::String(text) => _ = writeln!(words, "{name}: {text}"),
            other => _ = writeln!(words, "{name}: {other}"),
        }
    }
    for (name, value) in texts {
        let _ = writeln!(words, "{name}:\n{}", value.as_str().unwrap_or_default().trim_end_matches('\n'));
    }
    words.truncate(words.trim_end_matches('\n').len());
    words
}

fn notes(reply: &Reply) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(cut) = &reply.truncated {
        if let Some(artifact) = &cut.artifact {
            let (lines, bytes) = (counted(cut.lines, "line"), counted(cut.bytes, "byte"));
            notes.push(format!("{lines}, {bytes} were cut; all of it: artifact {{\"id\":\"{artifact}\"}}"));
        }
        if let Some(cursor) = &cut.next_cursor {
            notes.push(format!("there is more; continue with \"cursor\": {}", Value::from(cursor.as_str())));
        }
    }
    if reply.redacted {
        notes.push("secrets were replaced by ***REDACTED***; work without them".into());
    }
    notes
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_contract::{Enforced, ErrorCode, ReplyArtifacts};

    use super::*;

    fn reply(payload: Option<Value>, error: Option<ToolError>) -> Reply {
        Reply {
            tool_call_id: "c".into(),
            ok: error.is_none(),
            payload,
            error,
            artifacts: ReplyArtifacts::default(),
            enforced: Enforced::default(),
            truncated: None,
            redacted: false,
            duration_ms: 0,
        }
    }

    #[test]
    fn texts_stand_as_they_are_beneath_what_is_short() {
        let payload = json!({ "stdout": "a \"b\"\nc\n", "exit_code": 1, "stderr": "" });
        assert_eq!(as_text(&reply(Some(payload), None)), "exit_code: 1\nstderr: \nstdout:\na \"b\"\nc");
    }

    #[test]
    fn an_error_says_what_to_do_next() {
        let error = ToolError::new(ErrorCode::SensitivePath, "Environment files hold passwords.");
        assert_eq!(
            as_text(&reply(None, Some(error))),
            "error[sensitive_path]: Environment files hold passwords.\n\
             next: Work without this file; it is never opened for tools."
        );
    }

    #[test]
    fn what_is_missing_is_named_with_where_it_is() {
        let mut cut = reply(Some(json!({ "content": "a" })), None);
        cut.truncated = Some(Truncated { lines: 3, bytes: 9, next_cursor: None, artifact: Some("art_1".into()) });
        cut.redacted = true;
        let text = as_text(&cut);
        assert!(text.contains(r#"artifact {"id":"art_1"}"#) && text.contains("***REDACTED***"), "{text}");
        let huge = as_text(&reply(Some(json!({ "content": "é".repeat(MAX_REPLY_BYTES) })), None));
        assert!(huge.len() < MAX_REPLY_BYTES + 100 && huge.contains(" more bytes]"));
    }
}
