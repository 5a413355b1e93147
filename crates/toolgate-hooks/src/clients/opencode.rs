//! opencode. It has no hooks of commands: a small plugin, which `toolgate init` writes, brings its events and does what it is told.

use serde_json::{Value, json};
use toolgate_contract::ToolError;
use toolgate_dialects::OPENCODE;

use super::{needed, same_names, text};
use crate::answer::{HookAnswer, HookOutput};
use crate::client::{HookClient, ToolUse};
use crate::event::{ClientCall, ClientEvent, EventMoment};

pub(crate) static OPENCODE_HOOKS: HookClient = HookClient {
    name: "opencode",
    title: "opencode",
    dialect: Some(&OPENCODE),
    tools: TOOLS,
    as_dialect: same_names,
    server_tool: |_| None,
    own_directories: &[".local/share/opencode"],
    own_rules: None,
    not_rewritten: None,
    keeps_directory: false,
    read,
    write,
    not_held: &[
        "`--pure` and its variable switch plugins off, and hooks with them; `toolgate with opencode` refuses both.",
        "opencode can't be told to ask: what needs approval is refused, and waits in `toolgate approvals`.",
        "What you attach to a message is read without a hook; its model gets none of it if a file is hidden.",
        "Its own rules about commands (`permission.bash`) are applied to what a command is replaced by; put them into Toolgate's policy.",
    ],
};

const TOOLS: &[(&str, ToolUse)] = &[
    ("grep", ToolUse::Searches("path")),
    ("invalid", ToolUse::Harmless),
    ("list", ToolUse::Lists("path")),
    ("list_mcp_resource_templates", ToolUse::Harmless),
    ("list_mcp_resources", ToolUse::Harmless),
    ("lsp", ToolUse::Reads("filePath")),
    ("plan_exit", ToolUse::Harmless),
    ("question", ToolUse::Harmless),
    ("read", ToolUse::Reads("filePath")),
    ("skill", ToolUse::Harmless),
    ("task", ToolUse::Harmless),
    ("todoread", ToolUse::Harmless),
    ("todowrite", ToolUse::Harmless),
    ("websearch", ToolUse::Harmless),
];

/// The plugin's own form: `{event, session, directory, id, tool, input, result, prompt, files}`.
fn read(event: &Value) -> Result<ClientEvent, ToolError> {
    let moment = match needed(event, "event")? {
        "before" => EventMoment::Before(call(event)?),
        "after" => {
            let result = event.get("result").cloned().unwrap_or(Value::Null);
            EventMoment::After { call: call(event)?, result, failed: false }
        }
        "prompt" => EventMoment::Prompt {
            message: text(event, "prompt").unwrap_or_default().to_owned(),
            files: texts(event, "files"),
        },
        "idle" => EventMoment::TurnEnd,
        _ => EventMoment::Other,
    };
    Ok(ClientEvent::of(text(event, "session"), text(event, "directory"), moment))
}

fn texts(event: &Value, name: &str) -> Vec<String> {
    let list = event.get(name).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn call(event: &Value) -> Result<ClientCall, ToolError> {
    Ok(ClientCall {
        id: text(event, "id").map(str::to_owned),
        tool: needed(event, "tool")?.to_owned(),
        input: event.get("input").cloned().unwrap_or(Value::Null),
        can_ask: false,
    })
}

fn write(_: &ClientEvent, answer: &HookAnswer) -> HookOutput {
    match answer {
        HookAnswer::Noted | HookAnswer::Proceed => HookOutput::json(&json!({ "decision": "allow" })),
        HookAnswer::Rewrite { input, ask: None } => HookOutput::json(&json!({ "decision": "allow", "input": input })),
        HookAnswer::Deny { reason } | HookAnswer::Ask { reason } | HookAnswer::Rewrite { ask: Some(reason), .. } => {
            HookOutput::refusal(&json!({ "decision": "deny", "reason": reason }), reason)
        }
        HookAnswer::Replace { result } => HookOutput::json(&json!({ "decision": "allow", "result": result })),
    }
}
