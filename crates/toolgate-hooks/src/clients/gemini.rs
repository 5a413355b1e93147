//! Gemini CLI. Its events are JSON on standard input; exit code 2 blocks, and so does `decision: deny`.

use serde_json::{Value, json};
use toolgate_contract::ToolError;
use toolgate_dialects::GEMINI;

use super::{needed, same_names, text};
use crate::answer::{HookAnswer, HookOutput};
use crate::client::{HookClient, ToolUse};
use crate::event::{ClientCall, ClientEvent, EventMoment};

pub(crate) static GEMINI_HOOKS: HookClient = HookClient {
    name: "gemini",
    title: "Gemini CLI",
    dialect: Some(&GEMINI),
    tools: TOOLS,
    as_dialect: same_names,
    server_tool,
    own_directories: &[".gemini/tmp", ".gemini/history", ".gemini/skills"],
    own_rules: None,
    not_rewritten: None,
    keeps_directory: false,
    read,
    write,
    not_held: &[
        "A hook that fails, is killed, takes too long or prints something else lets a call run; `toolgate with gemini` confines it \
         then.",
        "`hooksConfig` in settings switches hooks off, all or by name; `toolgate with gemini` brings its own, which it doesn't reach.",
        "Gemini hangs where a hook asks and nobody is there: what needs approval is refused, and waits in `toolgate approvals`.",
        "Files that you mention with `@` are read without a hook; hidden ones are refused by their name in your message.",
        "Its own rules about commands (`tools.exclude`) are applied to what a command is replaced by; put them into Toolgate's policy.",
    ],
};

const TOOLS: &[(&str, ToolUse)] = &[
    ("activate_skill", ToolUse::Harmless),
    ("ask_user", ToolUse::Harmless),
    ("enter_plan_mode", ToolUse::Harmless),
    ("exit_plan_mode", ToolUse::Harmless),
    ("google_web_search", ToolUse::Harmless),
    ("grep_search", ToolUse::Searches("dir_path")),
    ("invoke_agent", ToolUse::Harmless),
    ("list_background_processes", ToolUse::Harmless),
    ("list_mcp_resources", ToolUse::Harmless),
    ("read_background_output", ToolUse::Harmless),
    ("read_file", ToolUse::Reads("file_path")),
    ("read_many_files", ToolUse::Searches("")),
    ("save_memory", ToolUse::Harmless),
    ("search_file_content", ToolUse::Searches("dir_path")),
    ("update_topic", ToolUse::Harmless),
    ("write_todos", ToolUse::Harmless),
];

/// `mcp_SERVER_TOOL`; a name with more underscores is taken for a tool of the first word's server.
fn server_tool(name: &str) -> Option<(String, String)> {
    let (server, tool) = name.strip_prefix("mcp_")?.trim_start_matches('_').split_once('_')?;
    Some((server.to_owned(), tool.trim_start_matches('_').to_owned()))
}

fn read(event: &Value) -> Result<ClientEvent, ToolError> {
    let moment = match needed(event, "hook_event_name")? {
        "BeforeTool" => EventMoment::Before(call(event)?),
        "AfterTool" => {
            let result = event.get("tool_response").cloned().unwrap_or(Value::Null);
            let failed = result.get("error").is_some_and(|error| !error.is_null());
            EventMoment::After { call: call(event)?, result, failed }
        }
        "BeforeAgent" => EventMoment::message(text(event, "prompt")),
        "AfterAgent" => EventMoment::TurnEnd,
        "SessionEnd" => EventMoment::SessionEnd,
        _ => EventMoment::Other,
    };
    Ok(ClientEvent::of(text(event, "session_id"), text(event, "cwd"), moment))
}

fn call(event: &Value) -> Result<ClientCall, ToolError> {
    Ok(ClientCall {
        id: None,
        tool: needed(event, "tool_name")?.to_owned(),
        input: event.get("tool_input").cloned().unwrap_or(Value::Null),
        can_ask: false,
    })
}

fn write(_: &ClientEvent, answer: &HookAnswer) -> HookOutput {
    match answer {
        HookAnswer::Noted => HookOutput::json(&json!({})),
        HookAnswer::Proceed => HookOutput::json(&json!({ "decision": "allow" })),
        HookAnswer::Rewrite { input, ask: None } => HookOutput::json(&json!({
            "decision": "allow",
            "hookSpecificOutput": { "hookEventName": "BeforeTool", "tool_input": input },
        })),
        HookAnswer::Deny { reason } | HookAnswer::Ask { reason } | HookAnswer::Rewrite { ask: Some(reason), .. } => {
            HookOutput::refusal(&json!({ "decision": "deny", "reason": reason }), reason)
        }
        HookAnswer::Replace { result } => {
            let content = result.get("llmContent").unwrap_or(result);
            let shown = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
            HookOutput::json(&json!({ "decision": "deny", "reason": shown }))
        }
    }
}
