//! Cursor, by its documentation: `.cursor/hooks.json`, JSON on standard input, `permission` on standard output, exit code 2 denies.

use serde_json::{Value, json};
use toolgate_contract::ToolError;

use super::{needed, same_names, text, usual_call};
use crate::answer::{HookAnswer, HookOutput};
use crate::client::{HookClient, ToolUse};
use crate::event::{ClientCall, ClientEvent, EventMoment};

pub(crate) static CURSOR_HOOKS: HookClient = HookClient {
    name: "cursor",
    title: "Cursor",
    dialect: None,
    tools: TOOLS,
    as_dialect: same_names,
    server_tool: |name| name.strip_prefix(SERVER_TOOL).map(|tool| ("MCP".to_owned(), tool.to_owned())),
    own_directories: &[".cursor/projects"],
    own_rules: None,
    not_rewritten: None,
    keeps_directory: false,
    read,
    write,
    not_held: &[
        "This form comes from Cursor's documentation; it wasn't tried against Cursor itself.",
        "A hook that fails lets a call run unless `failClosed` is set; `toolgate init` sets it.",
        "What a tool shows can't be changed, but that of MCP servers; commands themselves run here, redacted.",
        "Cursor also runs the hooks of `.claude/settings.json`, so with those a call is judged twice.",
        "Hooks of a workspace that isn't trusted aren't run, and `cursor-agent -p` asks no hook about your message.",
    ],
};

/// How the name of a tool of an MCP server begins; the server isn't named.
const SERVER_TOOL: &str = "MCP:";

const TOOLS: &[(&str, ToolUse)] = &[
    ("Delete", ToolUse::Writes("file_path")),
    ("Edit", ToolUse::Writes("file_path")),
    ("Glob", ToolUse::Lists("path")),
    ("Grep", ToolUse::Searches("path")),
    ("LS", ToolUse::Lists("path")),
    ("Read", ToolUse::Reads("file_path")),
    ("Shell", ToolUse::Runs("command")),
    ("Task", ToolUse::Harmless),
    ("TodoWrite", ToolUse::Harmless),
    ("WebFetch", ToolUse::Fetches("url")),
    ("WebSearch", ToolUse::Harmless),
    ("Write", ToolUse::Writes("file_path")),
];

fn read(event: &Value) -> Result<ClientEvent, ToolError> {
    let moment = match needed(event, "hook_event_name")? {
        "preToolUse" => EventMoment::Before(call(event)?),
        "postToolUse" => {
            let result = event.get("tool_output").cloned().unwrap_or(Value::Null);
            EventMoment::After { call: call(event)?, result, failed: false }
        }
        "postToolUseFailure" => {
            let result = event.get("error_message").cloned().unwrap_or(Value::Null);
            EventMoment::After { call: call(event)?, result, failed: true }
        }
        "beforeSubmitPrompt" => EventMoment::Prompt {
            message: text(event, "prompt").unwrap_or_default().to_owned(),
            files: attached_files(event),
        },
        "stop" | "subagentStop" => EventMoment::TurnEnd,
        "sessionEnd" => EventMoment::SessionEnd,
        _ => EventMoment::Other,
    };
    // A command may be meant for another directory than the session's.
    let directory = event["tool_input"]["cwd"].as_str().or_else(|| text(event, "cwd"));
    let directory = directory.or_else(|| event["workspace_roots"][0].as_str());
    Ok(ClientEvent::of(text(event, "conversation_id"), directory, moment))
}

/// The files that are attached to a message.
fn attached_files(event: &Value) -> Vec<String> {
    let attachments = event.get("attachments").and_then(Value::as_array).into_iter().flatten();
    let path = |attached: &Value| text(attached, "file_path").or_else(|| text(attached, "filePath")).map(str::to_owned);
    attachments.filter_map(path).collect()
}

fn call(event: &Value) -> Result<ClientCall, ToolError> {
    // In `preToolUse`, an `ask` isn't enforced.
    usual_call(event, false)
}

fn write(event: &ClientEvent, answer: &HookAnswer) -> HookOutput {
    match answer {
        HookAnswer::Noted => HookOutput::json(&json!({})),
        HookAnswer::Proceed => HookOutput::json(&json!({ "permission": "allow" })),
        HookAnswer::Rewrite { input, ask: None } => {
            HookOutput::json(&json!({ "permission": "allow", "updated_input": input }))
        }
        HookAnswer::Deny { reason } | HookAnswer::Ask { reason } | HookAnswer::Rewrite { ask: Some(reason), .. } => {
            match event.moment {
                EventMoment::Prompt { .. } => {
                    HookOutput::refusal(&json!({ "continue": false, "user_message": reason }), reason)
                }
                _ => HookOutput::refusal(
                    &json!({ "permission": "deny", "user_message": reason, "agent_message": reason }),
                    reason,
                ),
            }
        }
        HookAnswer::Replace { result } => match &event.moment {
            EventMoment::After { call, .. } if call.tool.starts_with(SERVER_TOOL) => {
                HookOutput::json(&json!({ "updated_mcp_tool_output": result }))
            }
            _ => HookOutput::json(&json!({})),
        },
    }
}
