//! An event in short: what a list or a live view shows of it. The event itself is one request away.

use serde_json::{Map, Value, json};
use toolgate_contract::{Event, EventPayload};

/// The longest text in a summary, in characters.
const MAX_TEXT: usize = 300;

/// The event in short.
pub(crate) fn summarize(event: &Event, seq: Option<u64>) -> Value {
    let kind = json!(&event.payload)["kind"].clone();
    let mut summary = Map::new();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            summary.insert(name.to_owned(), value);
        }
    };
    set("kind", kind);
    set("run", json!(event.run));
    set("seq", json!(seq));
    set("time", json!(event.time));
    set("call", json!(event.tool_call_id));
    set("turn", json!(event.turn));
    set("agent", json!(event.trace_id));
    match &event.payload {
        EventPayload::RunStarted(facts) => {
            set("session", json!(facts.session));
            set("front_end", json!(facts.front_end));
        }
        EventPayload::CallStarted { tool, args, verdict, risk, .. } => {
            set("tool", json!(tool));
            set("text", json!(call_text(args)));
            set("decision", json!(verdict.as_ref().map(|verdict| verdict.decision)));
            set("risk", json!(risk));
        }
        EventPayload::CallCompleted(ending) => {
            set("duration_ms", json!(ending.duration_ms));
            set("exit_code", json!(ending.exit_code));
            set("changed", json!(ending.files_changed.len() + ending.more_files_changed));
        }
        EventPayload::CallFailed { error, ending, .. } => {
            set("duration_ms", json!(ending.duration_ms));
            set("code", json!(error.code));
            set("text", json!(short(&error.message)));
        }
        EventPayload::FilesChanging { changes, .. } => set("changed", json!(changes.len())),
        EventPayload::ApprovalRequired { tool, reason, .. } => {
            set("tool", json!(tool));
            set("text", json!(short(reason)));
        }
        EventPayload::ApprovalGranted { scope, by } => {
            set("by", json!(by));
            set("scope", json!(scope));
        }
        EventPayload::ApprovalDenied { by, reason } | EventPayload::RunAborted { by, reason } => {
            set("by", json!(by));
            set("text", json!(reason.as_deref().map(short)));
        }
        EventPayload::QuestionAnswered { by } => set("by", json!(by)),
        EventPayload::QuestionAsked(question) => set("text", json!(short(&question.question))),
        EventPayload::Display(message) => {
            set("level", json!(message.level));
            set("title", json!(message.title.as_deref().map(short)));
            set("text", json!(short(&message.content)));
        }
        EventPayload::ProcessOutput(output) => {
            set("process", json!(output.process));
            set("stream", json!(output.stream));
            set("text", json!(output.text));
            set("skipped", json!(output.skipped));
        }
        EventPayload::ProcessEnded { process, exit_code, .. } => {
            set("process", json!(process));
            set("exit_code", json!(exit_code));
        }
        EventPayload::AgentStarted { agent, model, objective, .. } => {
            set("name", json!(agent));
            set("model", json!(model));
            set("text", json!(short(objective)));
        }
        EventPayload::AgentEnded { finish, summary: text, .. } => {
            set("finish", json!(finish));
            set("text", json!(short(text)));
        }
        EventPayload::ModelSaid { text, .. } => set("text", json!(short(text))),
        EventPayload::ModelFailed { reason, .. } | EventPayload::ModelMisunderstood { reason } => {
            set("text", json!(short(reason)));
        }
        _ => {}
    }
    Value::Object(summary)
}

/// What a call is about, in one line: its command, its path, or its arguments.
pub(crate) fn call_text(args: &Value) -> String {
    const NAMES: &[&str] = &[
        "command",
        "path",
        "paths",
        "pattern",
        "url",
        "query",
        "question",
        "content",
        "process",
        "task",
        "objective",
        "from",
        "action",
    ];
    // A plan has a view of its own.
    let count = |name: &str| args.get(name)?.as_array().map(|items| format!("{} {name}", items.len()));
    if let Some(plan) = count("todos").or_else(|| count("steps")) {
        return plan;
    }
    let named = NAMES.iter().find_map(|name| args.get(name));
    match named.unwrap_or(args) {
        Value::String(text) => short(text),
        Value::Object(fields) if fields.is_empty() => String::new(),
        Value::Array(items) => short(&items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        other => short(&other.to_string()),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The beginning of a text, in one line.
pub(crate) fn short(text: &str) -> String {
    let mut characters = text.trim().chars();
    let mut shown: String = characters
        .by_ref()
        .take(MAX_TEXT)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_by_what_it_is_about() {
        for (args, expected) in [
            (json!({ "agent": "explore", "objective": "look around" }), "look around"),
            (json!({ "action": "search", "limit": 20 }), "search"),
            (json!({ "from": "a.txt", "to": "b.txt" }), "a.txt"),
            (json!({ "todos": [{ "content": "test" }, { "content": "build" }] }), "2 todos"),
            (json!({ "paths": ["a", "b"] }), "a b"),
            (json!({ "other": 1 }), r#"{"other":1}"#),
            (json!({}), ""),
        ] {
            assert_eq!(call_text(&args), expected, "{args}");
        }
    }
}
