//! goose, by its documentation: JSON on standard input; exit code 2 or `decision: block` refuses. Nothing can be rewritten, so
//! commands are judged and run by goose.

use serde_json::{Value, json};
use toolgate_contract::ToolError;

use super::{double_underscores, needed, same_names, text, usual_call};
use crate::answer::{HookAnswer, HookOutput};
use crate::client::{HookClient, ToolUse};
use crate::event::{ClientCall, ClientEvent, EventMoment};

pub(crate) static GOOSE_HOOKS: HookClient = HookClient {
    name: "goose",
    title: "goose",
    dialect: None,
    tools: TOOLS,
    as_dialect: same_names,
    server_tool: double_underscores,
    own_directories: &[".local/share/goose"],
    own_rules: None,
    keeps_directory: false,
    read,
    write,
    not_held: &[
        "This form comes from goose's documentation; it wasn't tried against goose itself.",
        "A hook can't change a call, so commands can't be moved into the sandbox: each is refused, with the way to run it \
         by the tools of `toolgate serve`, unless goose runs under `toolgate with`.",
        "A hook that fails lets a call run unless `on_failure` is `block` (since 1.48); `toolgate init` sets it.",
    ],
};

const TOOLS: &[(&str, ToolUse)] = &[
    ("developer__analyze", ToolUse::Searches("path")),
    ("developer__edit", ToolUse::Writes("path")),
    ("developer__shell", ToolUse::Runs("command")),
    ("developer__text_editor", ToolUse::Writes("path")),
    ("developer__tree", ToolUse::Lists("path")),
    ("developer__write", ToolUse::Writes("path")),
    ("todo__todo_write", ToolUse::Harmless),
];

fn read(event: &Value) -> Result<ClientEvent, ToolError> {
    let moment = match needed(event, "hook_event_name").or_else(|_| needed(event, "event"))? {
        "PreToolUse" => EventMoment::Before(call(event)?),
        "PostToolUse" => {
            let result = event.get("tool_response").cloned().unwrap_or(Value::Null);
            EventMoment::After { call: call(event)?, result, failed: false }
        }
        "PostToolUseFailure" => EventMoment::After { call: call(event)?, result: Value::Null, failed: true },
        "UserPromptSubmit" => EventMoment::Prompt(text(event, "prompt").unwrap_or_default().to_owned()),
        "Stop" => EventMoment::TurnEnd,
        "SessionEnd" => EventMoment::SessionEnd,
        _ => EventMoment::Other,
    };
    let directory = text(event, "cwd").or_else(|| text(event, "working_dir"));
    Ok(ClientEvent::of(text(event, "session_id"), directory, moment))
}

fn call(event: &Value) -> Result<ClientCall, ToolError> {
    usual_call(event, false)
}

fn write(_: &ClientEvent, answer: &HookAnswer) -> HookOutput {
    const NOT_MOVED: &str = "goose can't be told to run a command in the sandbox. Use the tool `shell` of the MCP server \
                             `toolgate`, or start goose with `toolgate with goose`.";
    let refuse = |reason: &str| HookOutput::refusal(&json!({ "decision": "block", "reason": reason }), reason);
    match answer {
        HookAnswer::Noted | HookAnswer::Proceed | HookAnswer::Replace { .. } => HookOutput::json(&json!({})),
        HookAnswer::Rewrite { ask: None, .. } => refuse(NOT_MOVED),
        HookAnswer::Deny { reason } | HookAnswer::Ask { reason } | HookAnswer::Rewrite { ask: Some(reason), .. } => {
            refuse(reason)
        }
    }
}
