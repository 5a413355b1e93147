//! Tool calls of all model APIs in one form. A call that can't be parsed isn't dropped: it stays a call, with the
//! reason that its model is told.

use serde_json::{Value, json};
use toolgate_contract::{ToolError, counted, quoted};

use crate::strict_json;

/// The longest arguments that are accepted, in bytes.
pub const MOST_ARGUMENT_BYTES: usize = 2 * 1024 * 1024;

/// A call as a model asked for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The model's own id for the call, which its reply has to carry. Not unique across runs.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, or why they can't be parsed.
    pub args: Result<Value, ToolError>,
    /// The kind of call; its reply has the same kind.
    pub shape: ToolCallKind,
}

/// The kinds of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallKind {
    /// A function with JSON arguments.
    Function,
    /// A custom tool with free text.
    Custom,
    /// The provider's own local shell.
    LocalShell,
}

impl ToolCall {
    /// A function call: the arguments are JSON in a string. An empty string means no arguments.
    pub fn function(id: impl Into<String>, name: impl Into<String>, arguments: &str) -> Self {
        let text = if arguments.trim().is_empty() { "{}" } else { arguments };
        let args = match text.len() {
            ..=MOST_ARGUMENT_BYTES => strict_json::parse(text.as_bytes()).map_err(|error| unreadable(error, text)),
            length => Err(too_long(length)),
        };
        Self { id: bounded(id), name: bounded(name), args, shape: ToolCallKind::Function }
    }

    /// A custom tool call: the arguments are plain text.
    pub fn custom(id: impl Into<String>, name: impl Into<String>, input: &str) -> Self {
        let args = match input.len() {
            ..=MOST_ARGUMENT_BYTES => Ok(Value::from(input)),
            length => Err(too_long(length)),
        };
        Self { id: bounded(id), name: bounded(name), args, shape: ToolCallKind::Custom }
    }

    /// A local shell call: command words, directory, timeout and variables become one `shell` call.
    pub fn local_shell(id: impl Into<String>, action: &Value) -> Self {
        Self { id: id.into(), name: "shell".into(), args: shell_arguments(action), shape: ToolCallKind::LocalShell }
    }

    /// The arguments as shown to the model again; empty, where they couldn't be parsed.
    pub fn arguments_or_empty(&self) -> Value {
        self.args.clone().unwrap_or_else(|_| json!({}))
    }
}

/// Limits the length of a name or id, since it is part of every event.
fn bounded(text: impl Into<String>) -> String {
    let mut text = text.into();
    text.truncate(text.floor_char_boundary(200));
    text
}

fn unreadable(error: ToolError, text: &str) -> ToolError {
    let start: String = text.chars().take(200).collect();
    ToolError::invalid_args(format!("The arguments are not JSON: {} They begin: {start}", error.message))
        .with_hint("Write the arguments as one JSON object by the tool's schema, and call again.")
}

/// The error for arguments of this length.
pub fn too_long(bytes: usize) -> ToolError {
    let message = format!("The arguments have {}; at most {MOST_ARGUMENT_BYTES} are taken.", counted(bytes, "byte"));
    ToolError::invalid_args(message).with_hint("Do it in several calls, such as `write` and then `write` with append.")
}

fn shell_arguments(action: &Value) -> Result<Value, ToolError> {
    let wrong = |what: &str| ToolError::invalid_args(format!("A local shell call {what}."));
    let words: Option<Vec<&str>> =
        action.get("command").and_then(Value::as_array).and_then(|words| words.iter().map(Value::as_str).collect());
    let words = words.filter(|words| !words.is_empty()).ok_or_else(|| wrong("needs `command` as a list of words"))?;
    if action.get("user").is_some_and(|user| !user.is_null()) {
        return Err(wrong("can't choose its `user`"));
    }
    let variables = action.get("env").and_then(Value::as_object).into_iter().flatten();
    let mut line = Vec::new();
    for (name, value) in variables {
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let value = value.as_str().filter(|_| is_name).ok_or_else(|| wrong("has a variable that can't be set"))?;
        line.push(format!("{name}={}", quoted(value)));
    }
    line.extend(words.into_iter().map(quoted));
    let mut args = json!({ "command": line.join(" ") });
    if let Some(directory) = action.get("working_directory").and_then(Value::as_str) {
        args["workdir"] = json!(directory);
    }
    if let Some(milliseconds) = action.get("timeout_ms").and_then(Value::as_u64) {
        args["timeout_seconds"] = json!(milliseconds.div_ceil(1000).clamp(1, 600));
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_call_is_json_in_a_text() {
        let asked = ToolCall::function("call_1", "read", r#"{"path":"a.txt"}"#);
        assert_eq!((asked.args.unwrap(), asked.shape), (json!({ "path": "a.txt" }), ToolCallKind::Function));
        assert_eq!(ToolCall::function("call_1", "list", "").args.unwrap(), json!({}));
    }

    #[test]
    fn what_cannot_be_read_says_why_and_how_it_begins() {
        let error = ToolCall::function("call_1", "read", r#"{"path": "a.txt""#).args.unwrap_err();
        assert!(error.message.contains("not JSON") && error.message.ends_with(r#"{"path": "a.txt""#), "{error}");
        let error = ToolCall::function("call_1", "read", r#"{"path":"a","path":"b"}"#).args.unwrap_err();
        assert!(error.message.contains("not JSON"), "one name twice has no one meaning: {error}");
        let long = "x".repeat(MOST_ARGUMENT_BYTES + 1);
        for asked in [ToolCall::function("1", "write", &long), ToolCall::custom("1", "patch", &long)] {
            assert!(asked.args.unwrap_err().message.contains("2097153 bytes"));
        }
    }

    #[test]
    fn free_text_stays_as_it_is() {
        let text = "*** Begin Patch\n*** End Patch";
        assert_eq!(ToolCall::custom("call_1", "patch", text).args.unwrap(), json!(text));
    }

    #[test]
    fn a_local_shell_call_is_a_shell_call() {
        let action = json!({
            "type": "exec",
            "command": ["bash", "-lc", "echo it's"],
            "env": { "LEVEL": "a b" },
            "working_directory": "src",
            "timeout_ms": 1500,
        });
        assert_eq!(
            ToolCall::local_shell("call_1", &action).args.unwrap(),
            json!({ "command": r"LEVEL='a b' bash -lc 'echo it'\''s'", "workdir": "src", "timeout_seconds": 2 })
        );
        let variable_like = ToolCall::local_shell("1", &json!({ "command": ["A=b", "ls"] })).args.unwrap();
        assert_eq!(variable_like["command"], "'A=b' ls", "a word with `=` stays a word");
        for wrong in [
            json!({ "command": [] }),
            json!({ "command": ["ls", 3] }),
            json!({ "command": ["ls"], "user": "root" }),
            json!({ "command": ["ls"], "env": { "A;rm": "x" } }),
        ] {
            assert!(ToolCall::local_shell("1", &wrong).args.is_err(), "{wrong}");
        }
    }
}
