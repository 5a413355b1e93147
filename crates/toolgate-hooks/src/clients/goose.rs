//! goose. Its events are JSON on standard input; exit code 2 or `decision: block` refuses, and only `decision: allow` allows where
//! `on_failure` is `block`. Nothing can be rewritten, so goose is told how commands can run in the sandbox.

use serde_json::{Value, json};
use toolgate_contract::ToolError;

use super::{needed, same_names, text};
use crate::answer::{HookAnswer, HookOutput};
use crate::client::{HookClient, ToolUse};
use crate::event::{ClientCall, ClientEvent, EventMoment};

pub(crate) static GOOSE_HOOKS: HookClient = HookClient {
    name: "goose",
    title: "goose",
    dialect: None,
    tools: TOOLS,
    as_dialect: same_names,
    server_tool: |name| name.split_once("__").map(|(server, tool)| (server.to_owned(), tool.to_owned())),
    own_directories: &[".local/share/goose"],
    own_rules: None,
    not_rewritten: Some(NOT_REWRITTEN),
    keeps_directory: false,
    read,
    write,
    not_held: &[
        "A hook can't change a call, so commands can't be moved into the sandbox: each is refused, with the way to run it \
         by the tools of `toolgate serve`.",
        "A hook that is missing, fails, is killed, takes too long or prints something else lets a call run unless `on_failure` is \
         `block` (since 1.48); `toolgate init` sets it.",
        "What a tool shows can't be changed.",
        "A sub-agent's calls have no hooks, so `delegate` is refused; it waits in `toolgate approvals`.",
        "`disabledPlugins` in its settings switches hooks off.",
    ],
};

const NOT_REWRITTEN: &str = "goose can't be told to run a command in the sandbox. Use the tool `shell` of the MCP server `toolgate`, \
                             which `toolgate init --for goose --write` sets up.";

/// Each by its name, and by the name that goose gives it beside extensions with the same one.
const TOOLS: &[(&str, ToolUse)] = &[
    ("analyze", ToolUse::Searches("path")),
    ("developer__analyze", ToolUse::Searches("path")),
    ("developer__edit", ToolUse::Writes("path")),
    ("developer__read_image", ToolUse::Reads("source")),
    ("developer__shell", ToolUse::Runs("command")),
    ("developer__text_editor", ToolUse::Writes("path")),
    ("developer__tree", ToolUse::Lists("path")),
    ("developer__write", ToolUse::Writes("path")),
    ("edit", ToolUse::Writes("path")),
    ("load_skill", ToolUse::Harmless),
    ("read_image", ToolUse::Reads("source")),
    ("shell", ToolUse::Runs("command")),
    ("todo__todo_write", ToolUse::Harmless),
    ("todo_write", ToolUse::Harmless),
    ("tree", ToolUse::Lists("path")),
    ("write", ToolUse::Writes("path")),
];

fn read(event: &Value) -> Result<ClientEvent, ToolError> {
    let moment = match needed(event, "event")? {
        "PreToolUse" => EventMoment::Before(call(event)?),
        "PostToolUse" => EventMoment::After { call: call(event)?, result: Value::Null, failed: false },
        "PostToolUseFailure" => EventMoment::After { call: call(event)?, result: Value::Null, failed: true },
        "Stop" => EventMoment::TurnEnd,
        "SessionEnd" => EventMoment::SessionEnd,
        _ => EventMoment::Other,
    };
    Ok(ClientEvent::of(text(event, "session_id"), text(event, "working_dir"), moment))
}

fn call(event: &Value) -> Result<ClientCall, ToolError> {
    Ok(ClientCall {
        id: text(event, "tool_call_id").map(str::to_owned),
        tool: needed(event, "tool_name")?.to_owned(),
        input: event.get("tool_input").cloned().unwrap_or(Value::Null),
        can_ask: false,
    })
}

fn write(_: &ClientEvent, answer: &HookAnswer) -> HookOutput {
    let refuse = |reason: &str| HookOutput::refusal(&json!({ "decision": "block", "reason": reason }), reason);
    match answer {
        HookAnswer::Noted | HookAnswer::Proceed | HookAnswer::Replace { .. } => {
            HookOutput::json(&json!({ "decision": "allow" }))
        }
        HookAnswer::Rewrite { .. } => refuse(NOT_REWRITTEN),
        HookAnswer::Deny { reason } | HookAnswer::Ask { reason } => refuse(reason),
    }
}
