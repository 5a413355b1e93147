//! GitHub Copilot CLI. Its events don't name themselves: `toolgate init` passes the name of each on the command line, as
//! `hook_event_name`.

use serde_json::{Value, json};
use toolgate_contract::ToolError;

use super::{needed, same_names, text};
use crate::answer::{HookAnswer, HookOutput};
use crate::client::{HookClient, ToolUse};
use crate::event::{ClientCall, ClientEvent, EventMoment};

pub(crate) static COPILOT_HOOKS: HookClient = HookClient {
    name: "copilot",
    title: "GitHub Copilot CLI",
    dialect: None,
    tools: TOOLS,
    as_dialect: same_names,
    server_tool: |name| name.split_once('-').map(|(server, tool)| (server.to_owned(), tool.to_owned())),
    own_directories: &[".copilot/session-state", ".copilot/history-session-state"],
    own_rules: None,
    not_rewritten: None,
    keeps_directory: false,
    read,
    write,
    not_held: &[
        "A hook that takes too long or prints something else lets a call run; `toolgate with copilot` confines it then.",
        "`disableAllHooks` in settings switches hooks off, those of a workspace too; `toolgate with copilot` doesn't start then.",
        "Copilot also reads hooks of `.claude/settings.json`, so a call may be judged twice.",
        "Files that you mention with `@` are read without a hook; hidden ones are refused by their name in your message.",
        "Its own rules about commands (`--deny-tool`) are applied to what a command is replaced by; put them into Toolgate's policy.",
    ],
};

const TOOLS: &[(&str, ToolUse)] = &[
    ("apply_patch", ToolUse::Patches("")),
    ("ask_user", ToolUse::Harmless),
    ("bash", ToolUse::Runs("command")),
    ("create", ToolUse::Writes("path")),
    ("edit", ToolUse::Writes("path")),
    ("fetch_copilot_cli_documentation", ToolUse::Harmless),
    ("glob", ToolUse::Lists("paths")),
    ("grep", ToolUse::Searches("path")),
    ("list_agents", ToolUse::Harmless),
    ("list_bash", ToolUse::Harmless),
    ("read_agent", ToolUse::Harmless),
    ("read_bash", ToolUse::Harmless),
    ("report_intent", ToolUse::Harmless),
    ("rg", ToolUse::Searches("paths")),
    ("session_store_sql", ToolUse::Harmless),
    ("skill", ToolUse::Harmless),
    ("sql", ToolUse::Harmless),
    ("stop_bash", ToolUse::Harmless),
    ("task", ToolUse::Harmless),
    ("update_todo", ToolUse::Harmless),
    ("view", ToolUse::Reads("path")),
    ("web_fetch", ToolUse::Fetches("url")),
    ("web_search", ToolUse::Harmless),
    ("write_agent", ToolUse::Harmless),
];

fn read(event: &Value) -> Result<ClientEvent, ToolError> {
    let moment = match needed(event, "hook_event_name")? {
        "preToolUse" => EventMoment::Before(call(event)?),
        "postToolUse" => {
            let result = event.get("toolResult").cloned().unwrap_or(Value::Null);
            EventMoment::After { call: call(event)?, result, failed: false }
        }
        "postToolUseFailure" => {
            let result = event.get("error").cloned().unwrap_or(Value::Null);
            EventMoment::After { call: call(event)?, result, failed: true }
        }
        "userPromptSubmitted" => EventMoment::message(text(event, "prompt")),
        "agentStop" | "subagentStop" => EventMoment::TurnEnd,
        "sessionEnd" => EventMoment::SessionEnd,
        _ => EventMoment::Other,
    };
    Ok(ClientEvent::of(text(event, "sessionId"), text(event, "cwd"), moment))
}

fn call(event: &Value) -> Result<ClientCall, ToolError> {
    let input = match event.get("toolArgs") {
        // Older versions pass the arguments as a text.
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        other => other.cloned().unwrap_or(Value::Null),
    };
    Ok(ClientCall { id: None, tool: needed(event, "toolName")?.to_owned(), input, can_ask: true })
}

fn write(event: &ClientEvent, answer: &HookAnswer) -> HookOutput {
    let decision =
        |decision: &str, reason: &str| json!({ "permissionDecision": decision, "permissionDecisionReason": reason });
    match answer {
        HookAnswer::Noted | HookAnswer::Proceed => HookOutput::json(&json!({})),
        HookAnswer::Rewrite { input, ask } => {
            let mut answer = match ask {
                Some(reason) => decision("ask", reason),
                None => decision("allow", "Toolgate runs it in its sandbox."),
            };
            answer["modifiedArgs"] = input.clone();
            HookOutput::json(&answer)
        }
        HookAnswer::Ask { reason } => HookOutput::json(&decision("ask", reason)),
        HookAnswer::Deny { reason } => match event.moment {
            EventMoment::Before(_) => HookOutput::refusal(&decision("deny", reason), reason),
            // A person's message.
            _ => HookOutput::refusal(&json!({ "decision": "block", "reason": reason }), reason),
        },
        HookAnswer::Replace { result } => HookOutput::json(&json!({ "modifiedResult": result })),
    }
}
