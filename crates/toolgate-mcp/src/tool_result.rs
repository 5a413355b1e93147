//! A reply as the result of `tools/call`. A failed call is a result too, marked as an error, because the model should
//! read it.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use toolgate_contract::{ArtifactRef, Artifacts, Reply, ResultForm, ToolError, counted};
use toolgate_dialects::ShownResult;
use toolgate_redact::Redactor;
use toolgate_workspace::CallCheck;

use crate::json_rpc::written;
use crate::protocol_version::ClientProfile;
use crate::resources::uri_of;

/// The largest image, in bytes, that is sent along; a larger one is only linked.
const MAX_IMAGE: u64 = 8 * 1024 * 1024;

/// The reply as this client's protocol version expects it.
///
/// Many clients give their model the structured content in place of the blocks, and it costs more tokens, since text is
/// escaped in it. So a result is structured only if its fields are all that matters; then it says everything that the
/// blocks say. A file's text or an image is sent as a block.
pub(crate) fn result(
    reply: &Reply,
    form: ResultForm,
    profile: &ClientProfile,
    artifacts: &dyn Artifacts,
    redactor: &Redactor,
) -> Value {
    let mut content = Vec::new();
    let mut result = json!({});
    let mut meta = about(reply);
    match (&reply.payload, &reply.error) {
        (_, Some(error)) => {
            result["isError"] = true.into();
            content.push(text(error_text(error)));
        }
        (Some(Value::Object(payload)), None) if form == ResultForm::Content => {
            let mut fields = payload.clone();
            if let Some(Value::String(words)) = fields.remove("content") {
                content.push(text(words));
            }
            if !fields.is_empty() || content.is_empty() {
                content.push(text(written(&json!(fields))));
                meta["toolgate/fields"] = fields.into();
            }
        }
        (Some(payload), None) => {
            content.push(text(written(payload)));
            if let Some(fields) = payload.as_object().filter(|_| profile.is_structured()) {
                result["structuredContent"] = with_notes(fields.clone(), reply).into();
            }
        }
        (None, None) => {}
    }
    content.extend(shown_artifacts(reply, artifacts, redactor));
    content.extend(notes(reply).into_iter().map(text));
    result["content"] = content.into();
    result["_meta"] = meta;
    result
}

/// What would become of a call, as the result of `tools/call`.
pub(crate) fn checked_result(checked: &CallCheck, profile: &ClientProfile) -> Value {
    let checked = json!(checked);
    let mut result = json!({ "content": [text(written(&checked))] });
    if profile.is_structured() {
        result["structuredContent"] = checked;
    }
    result
}

/// What a dialect shows, as the result of `tools/call`. Images and stored output come along as they do natively.
pub(crate) fn shown_result(
    shown: &ShownResult,
    reply: &Reply,
    artifacts: &dyn Artifacts,
    redactor: &Redactor,
) -> Value {
    let mut content = vec![text(shown.text.clone())];
    content.extend(shown_artifacts(reply, artifacts, redactor));
    content.extend(reply.redacted.then(|| text(REDACTED.into())));
    json!({ "isError": shown.is_error, "content": content, "_meta": about(reply) })
}

const REDACTED: &str = "Secrets were replaced by ***REDACTED***.";

/// The payload with what the reply says beside it: what is missing, how to get it, and that secrets were replaced.
fn with_notes(mut payload: Map<String, Value>, reply: &Reply) -> Map<String, Value> {
    let mut add = |name: &str, value: Value| {
        payload.entry(name).or_insert(value);
    };
    if let Some(cut) = &reply.truncated {
        if let Some(cursor) = &cut.next_cursor {
            add("next_cursor", json!(cursor));
        }
        if cut.lines > 0 || cut.bytes > 0 || cut.artifact.is_some() {
            add("truncated", json!({ "lines": cut.lines, "bytes": cut.bytes, "artifact": cut.artifact }));
        }
    }
    if reply.redacted {
        add("redacted", true.into());
    }
    payload
}

fn text(words: String) -> Value {
    json!({ "type": "text", "text": words })
}

/// An error as text: what happened, which rule decided, and what to do next.
pub(crate) fn error_text(error: &ToolError) -> String {
    let mut words = format!("error[{}]: {}", error.code, error.message);
    let detail = |name: &str| error.details.as_ref()?.get(name)?.as_str();
    if let Some(rule) = detail("rule") {
        words += &format!("\nrule: {rule} ({})", detail("layer").unwrap_or_default());
    }
    if let Some(hint) = &error.hint {
        words += &format!("\nnext: {hint}");
    }
    // What a command wrote until it was stopped.
    for name in ["stdout", "stderr"] {
        words.extend(detail(name).map(|output| format!("\n{name}:\n{}", output.trim_end_matches('\n'))));
    }
    words
}

/// What a call stored, but for what stands for links of other servers: the payload names those, and reading one shows nothing.
fn shown_artifacts(reply: &Reply, artifacts: &dyn Artifacts, redactor: &Redactor) -> Vec<Value> {
    let shown = reply.artifacts.refs.iter().filter(|artifact| !artifact.is_server_link());
    shown.map(|artifact| stored(artifact, artifacts, redactor)).collect()
}

/// Stored output: an image is embedded, anything else is linked. An image with a secret in its metadata is neither: a
/// replacement would damage it.
fn stored(artifact: &ArtifactRef, artifacts: &dyn Artifacts, redactor: &Redactor) -> Value {
    if artifact.mime.starts_with("image/")
        && artifact.bytes <= MAX_IMAGE
        && let Some(data) = bytes_of(artifact, artifacts)
    {
        return match redactor.finds_secret(&data) {
            true => text(format!("The image `{}` isn't shown: it contains a secret.", artifact.id)),
            false => json!({ "type": "image", "data": encoded(&data), "mimeType": artifact.mime }),
        };
    }
    link(artifact)
}

/// A link to stored output.
pub(crate) fn link(artifact: &ArtifactRef) -> Value {
    let what = artifact.field.as_deref().filter(|field| !field.is_empty()).unwrap_or("the whole payload");
    let description = match artifact.mime.starts_with("image/") {
        true => "An image.".to_owned(),
        false => format!("The full text of {what}, which was truncated."),
    };
    json!({
        "type": "resource_link",
        "uri": uri_of(&artifact.id),
        "name": artifact.id,
        "description": description,
        "mimeType": artifact.mime,
        "size": artifact.bytes,
    })
}

/// The bytes of stored output.
pub(crate) fn bytes_of(artifact: &ArtifactRef, artifacts: &dyn Artifacts) -> Option<Vec<u8>> {
    let (_, mut file) = artifacts.open(&artifact.id).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Bytes in base64.
pub(crate) fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Notes for the model beside the payload.
fn notes(reply: &Reply) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(cut) = &reply.truncated {
        if cut.lines > 0 || cut.bytes > 0 {
            let (lines, bytes) = (counted(cut.lines, "line"), counted(cut.bytes, "byte"));
            notes.push(format!("{lines}, {bytes} are not shown."));
        }
        if let Some(artifact) = &cut.artifact {
            notes.push(format!("Full output: call the tool `artifact` with {}.", json!({ "id": artifact })));
        }
        if let Some(cursor) = &cut.next_cursor {
            notes.push(format!("There is more: repeat the call with {}.", json!({ "cursor": cursor })));
        }
    }
    if reply.redacted {
        notes.push(REDACTED.into());
    }
    notes
}

/// The rest of the reply, for programs.
fn about(reply: &Reply) -> Value {
    let mut about = json!({ "toolgate/call": reply.tool_call_id, "toolgate/duration_ms": reply.duration_ms });
    let mut add = |name: &str, value: Value| about[format!("toolgate/{name}")] = value;
    if let Some(error) = &reply.error {
        add("error", json!(error));
    }
    if !reply.enforced.0.is_empty() {
        add("enforced", json!(reply.enforced));
    }
    if let Some(truncated) = &reply.truncated {
        add("truncated", json!(truncated));
    }
    if !reply.artifacts.files_changed.is_empty() {
        add("files_changed", json!(reply.artifacts.files_changed));
    }
    if reply.artifacts.more_files_changed > 0 {
        add("more_files_changed", json!(reply.artifacts.more_files_changed));
    }
    if !reply.artifacts.folded.is_empty() {
        add("folded", json!(reply.artifacts.folded));
    }
    about
}
