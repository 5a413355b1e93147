//! Claude Code. Its events are JSON on standard input; a decision is JSON on standard output, or exit code 2.

use serde_json::{Value, json};
use toolgate_contract::ToolError;
use toolgate_dialects::CLAUDE;

use super::{double_underscores, needed, same_names, text, usual_call};
use crate::answer::{HookAnswer, HookOutput};
use crate::client::{HookClient, ToolUse};
use crate::event::{ClientCall, ClientEvent, EventMoment};
use crate::own_rules::{OwnRuleFiles, OwnRules};

pub(crate) static CLAUDE_HOOKS: HookClient = HookClient {
    name: "claude",
    title: "Claude Code",
    dialect: Some(&CLAUDE),
    tools: TOOLS,
    as_dialect: same_names,
    server_tool: double_underscores,
    own_directories: &[".claude/projects", ".claude/plans", ".claude/todos"],
    own_rules: Some(&OWN_RULES),
    not_rewritten: None,
    keeps_directory: true,
    read,
    write,
    not_held: &[
        "A file that you mention with `@` is read without a hook; hidden ones are refused by their name in your message.",
        "What a failing command of another hook prints can't be changed; commands themselves run here, redacted.",
        "`--bare`, `--safe-mode`, their variables and `disableAllHooks` in settings switch hooks off; `toolgate with claude` refuses \
         them, or brings its own hooks, which they don't reach.",
        "A hook that prints something else than a decision and exits with 0 lets a call run; ours always prints a decision.",
        "Rules of `--disallowedTools`, of a file of `--settings` and in `CLAUDE_CONFIG_DIR` are applied to what a command is replaced by; \
         those of the usual settings are judged here.",
    ],
};

static OWN_RULES: OwnRuleFiles = OwnRuleFiles {
    workspace: &[".claude/settings.json", ".claude/settings.local.json"],
    home: &[".claude/settings.json"],
    machine: &["/etc/claude-code/managed-settings.json"],
    read: |settings| {
        let patterns = |list: &Value| list.as_array().into_iter().flatten().filter_map(shell_pattern).collect();
        let rules = &settings["permissions"];
        OwnRules { deny: patterns(&rules["deny"]), ask: patterns(&rules["ask"]) }
    },
};

/// The pattern of a rule about commands: `Bash`, or `Bash(PATTERN)`.
fn shell_pattern(rule: &Value) -> Option<String> {
    match rule.as_str()?.trim().strip_prefix("Bash")? {
        "" => Some("*".to_owned()),
        rest => Some(rest.strip_prefix('(')?.strip_suffix(')')?.trim().to_owned()),
    }
}

const TOOLS: &[(&str, ToolUse)] = &[
    ("Agent", ToolUse::Harmless),
    ("AskUserQuestion", ToolUse::Harmless),
    ("BashOutput", ToolUse::Harmless),
    ("CronDelete", ToolUse::Harmless),
    ("CronList", ToolUse::Harmless),
    ("EnterPlanMode", ToolUse::Harmless),
    ("ExitPlanMode", ToolUse::Harmless),
    ("KillBash", ToolUse::Harmless),
    ("KillShell", ToolUse::Harmless),
    ("LS", ToolUse::Lists("path")),
    ("LSP", ToolUse::Reads("filePath")),
    ("ListAgents", ToolUse::Harmless),
    ("ListMcpResourcesTool", ToolUse::Harmless),
    ("Monitor", ToolUse::Runs("command")),
    ("MultiEdit", ToolUse::Writes("file_path")),
    ("NotebookEdit", ToolUse::Writes("notebook_path")),
    ("NotebookRead", ToolUse::Reads("notebook_path")),
    ("Read", ToolUse::Reads("file_path")),
    ("ReportFindings", ToolUse::Harmless),
    ("SendMessage", ToolUse::Harmless),
    ("Skill", ToolUse::Harmless),
    ("SlashCommand", ToolUse::Harmless),
    ("Task", ToolUse::Harmless),
    ("TaskCreate", ToolUse::Harmless),
    ("TaskGet", ToolUse::Harmless),
    ("TaskList", ToolUse::Harmless),
    ("TaskOutput", ToolUse::Harmless),
    ("TaskStop", ToolUse::Harmless),
    ("TaskUpdate", ToolUse::Harmless),
    ("TodoRead", ToolUse::Harmless),
    ("TodoWrite", ToolUse::Harmless),
    ("ToolSearch", ToolUse::Harmless),
    ("WebSearch", ToolUse::Harmless),
];

fn read(event: &Value) -> Result<ClientEvent, ToolError> {
    let moment = match needed(event, "hook_event_name")? {
        "PreToolUse" => EventMoment::Before(call(event)?),
        "PostToolUse" => {
            let result = event.get("tool_response").cloned().unwrap_or(Value::Null);
            EventMoment::After { call: call(event)?, result, failed: false }
        }
        "PostToolUseFailure" => {
            let result = event.get("error").cloned().unwrap_or(Value::Null);
            EventMoment::After { call: call(event)?, result, failed: true }
        }
        "UserPromptSubmit" => EventMoment::message(text(event, "prompt")),
        "Stop" | "SubagentStop" => EventMoment::TurnEnd,
        "SessionEnd" => EventMoment::SessionEnd,
        _ => EventMoment::Other,
    };
    Ok(ClientEvent::of(text(event, "session_id"), text(event, "cwd"), moment))
}

fn call(event: &Value) -> Result<ClientCall, ToolError> {
    // Without permissions to ask for, there is nobody whom it asks.
    usual_call(event, !matches!(text(event, "permission_mode"), Some("bypassPermissions" | "dontAsk")))
}

fn write(event: &ClientEvent, answer: &HookAnswer) -> HookOutput {
    let decision = |decision: &str, reason: &str| {
        json!({
            "hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason,
        })
    };
    match answer {
        HookAnswer::Noted | HookAnswer::Proceed => HookOutput::json(&json!({ "continue": true })),
        HookAnswer::Rewrite { input, ask } => {
            let mut specific = match ask {
                Some(reason) => decision("ask", reason),
                None => decision("allow", "Toolgate runs it in its sandbox."),
            };
            specific["updatedInput"] = input.clone();
            HookOutput::json(&json!({ "hookSpecificOutput": specific }))
        }
        HookAnswer::Ask { reason } => HookOutput::json(&json!({ "hookSpecificOutput": decision("ask", reason) })),
        HookAnswer::Deny { reason } => match event.moment {
            EventMoment::Before(_) => {
                HookOutput::refusal(&json!({ "hookSpecificOutput": decision("deny", reason) }), reason)
            }
            _ => HookOutput::refusal(&json!({ "decision": "block", "reason": reason }), reason),
        },
        HookAnswer::Replace { result } => HookOutput::json(&json!({
            "hookSpecificOutput": { "hookEventName": "PostToolUse", "updatedToolOutput": result },
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_about_commands_are_read_from_settings() {
        let settings = json!({ "permissions": {
            "deny": ["Bash(curl:*)", "Read(.env)", "Bash", "BashOutput"], "ask": ["Bash( git push * )", 7],
        } });
        let rules = (OWN_RULES.read)(&settings);
        let expected = OwnRules { deny: vec!["curl:*".into(), "*".into()], ask: vec!["git push *".into()] };
        assert_eq!(rules, expected);
        assert_eq!((OWN_RULES.read)(&json!({})), OwnRules::default());
    }
}
