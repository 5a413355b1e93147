//! Codex. It takes Claude Code's form, more strictly: a field that it doesn't know makes it ignore the whole answer, and it never
//! asks because a hook says so.

use serde_json::{Value, json};
use toolgate_contract::ToolError;
use toolgate_dialects::CODEX;

use super::{double_underscores, needed, text, usual_call};
use crate::answer::{HookAnswer, HookOutput};
use crate::client::{HookClient, ToolUse};
use crate::event::{ClientCall, ClientEvent, EventMoment};

pub(crate) static CODEX_HOOKS: HookClient = HookClient {
    name: "codex",
    title: "Codex",
    dialect: Some(&CODEX),
    tools: TOOLS,
    as_dialect,
    server_tool: double_underscores,
    own_directories: &[".codex/sessions", ".codex/memories", ".codex/skills"],
    own_rules: None,
    not_rewritten: None,
    keeps_directory: false,
    read,
    write,
    not_held: &[
        "Hooks that you haven't trusted are skipped without a word; trust them in `/hooks`. `--disable hooks` and `features.hooks` \
         switch hooks off; `toolgate with codex` refuses both.",
        "Code mode has no hook, nor has input to a running command (`write_stdin`): what runs here gets no input.",
        "A hook that is missing, fails, is killed, takes too long or prints something else lets a call run; `toolgate with codex` \
         confines it then.",
        "Codex asks nobody on a hook's word: what needs approval is refused, and waits in `toolgate approvals`.",
        "Its own rules about commands (`.codex/rules`) are applied to what a command is replaced by; put them into Toolgate's policy.",
    ],
};

const TOOLS: &[(&str, ToolUse)] = &[
    ("apply_patch", ToolUse::Patches("command")),
    ("close_agent", ToolUse::Harmless),
    ("create_goal", ToolUse::Harmless),
    ("get_goal", ToolUse::Harmless),
    ("request_user_input", ToolUse::Harmless),
    ("resume_agent", ToolUse::Harmless),
    ("send_input", ToolUse::Messages("items")),
    ("spawn_agent", ToolUse::Messages("items")),
    ("tool_search", ToolUse::Harmless),
    ("update_goal", ToolUse::Harmless),
    ("update_plan", ToolUse::Harmless),
    ("view_image", ToolUse::Reads("path")),
    ("wait_agent", ToolUse::Harmless),
    ("web_search", ToolUse::Harmless),
];

/// Commands are called `Bash` in hooks, whatever the model calls them.
fn as_dialect(tool: &str, input: &Value) -> Option<(&'static str, Value)> {
    (tool == "Bash").then(|| ("exec_command", json!({ "cmd": input.get("command") })))
}

fn read(event: &Value) -> Result<ClientEvent, ToolError> {
    let moment = match needed(event, "hook_event_name")? {
        "PreToolUse" => EventMoment::Before(call(event)?),
        "PostToolUse" => {
            let result = event.get("tool_response").cloned().unwrap_or(Value::Null);
            EventMoment::After { call: call(event)?, result, failed: false }
        }
        "UserPromptSubmit" => EventMoment::message(text(event, "prompt")),
        "Stop" | "SubagentStop" => EventMoment::TurnEnd,
        "SessionEnd" => EventMoment::SessionEnd,
        _ => EventMoment::Other,
    };
    Ok(ClientEvent::of(text(event, "session_id"), text(event, "cwd"), moment))
}

fn call(event: &Value) -> Result<ClientCall, ToolError> {
    usual_call(event, false)
}

fn write(event: &ClientEvent, answer: &HookAnswer) -> HookOutput {
    match answer {
        HookAnswer::Noted | HookAnswer::Proceed => HookOutput::json(&json!({})),
        HookAnswer::Rewrite { input, ask: None } => HookOutput::json(&json!({
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": input,
            },
        })),
        HookAnswer::Deny { reason } | HookAnswer::Ask { reason } | HookAnswer::Rewrite { ask: Some(reason), .. } => {
            match event.moment {
                EventMoment::Before(_) => HookOutput::refusal(
                    &json!({
                        "hookSpecificOutput": {
                            "hookEventName": "PreToolUse", "permissionDecision": "deny",
                            "permissionDecisionReason": reason,
                        },
                    }),
                    reason,
                ),
                _ => HookOutput::refusal(&json!({ "decision": "block", "reason": reason }), reason),
            }
        }
        HookAnswer::Replace { result } => {
            let shown = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
            HookOutput::json(&json!({ "decision": "block", "reason": shown }))
        }
    }
}
