//! Hooks in a client's own configuration, so that the client's own tools are judged: where each client looks for them, and in
//! which words. What is there stays; entries of ours are replaced or removed.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolgate_contract::quoted;

use super::client::SupportedClient;

/// What the names of files and directories have that only our hooks are in.
const OWN_NAME: &str = "toolgate";
/// Seconds that a client waits for a hook: more than twice the hook's own deadline.
const TIMEOUT_SECONDS: u64 = 60;

/// How a client's hooks start this program.
#[derive(Debug, Clone)]
pub(in crate::commands) struct HookProgram {
    /// The program and its flags.
    words: Vec<String>,
    /// What goes behind the client's name: who judges, if that isn't the program itself.
    judged_by: Vec<String>,
    /// The name of the hooks, for clients whose settings switch hooks off by their names.
    name: String,
}

impl HookProgram {
    /// This program, which judges by itself.
    pub(in crate::commands) fn judging(words: Vec<String>) -> Self {
        Self { words, judged_by: Vec::new(), name: "toolgate".into() }
    }

    /// This program in the sandbox of a whole client: whoever this file names judges outside of it. Nobody can guess the name.
    pub(in crate::commands) fn confined(program: String, judge: &Path, name: String) -> Self {
        let judged_by = vec!["--confined".to_owned(), judge.display().to_string()];
        Self { words: vec![program], judged_by, name }
    }

    /// The command line of a client's hook.
    fn command(&self, client: &str) -> Vec<String> {
        let hook = ["hook".to_owned(), client.to_owned()];
        [self.words.as_slice(), hook.as_slice(), self.judged_by.as_slice()].concat()
    }
}

/// What has to stand in which file, so that a client's own tools are judged.
pub(in crate::commands) struct HookSetup {
    /// The file, absolute.
    pub(in crate::commands) file: PathBuf,
    /// Whether nothing but our hooks is meant to be in the file.
    is_own_file: bool,
    /// What to do once it stands there.
    pub(in crate::commands) next: &'static str,
    content: HookContent,
}

enum HookContent {
    /// Lists of hooks by event, under `hooks`, and what else has to be in the file.
    Json { hooks: Vec<(&'static str, Value)>, beside: Vec<(&'static str, Value)> },
    /// A whole file of ours.
    Plugin(String),
}

impl HookSetup {
    /// What this client needs; none if it has no hooks.
    pub(in crate::commands) fn of(client: SupportedClient, program: &HookProgram, workspace: &Path) -> Option<Self> {
        let command = |name: &str| program.command(name).iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let grouped = |hook: Value| json!({ "matcher": "*", "hooks": [hook] });
        let (file, next, content) = match client {
            SupportedClient::Claude => {
                let hook = json!({
                    "type": "command", "command": command("claude"), "timeout": TIMEOUT_SECONDS, "onFailure": "block",
                });
                let hooks = each(CLAUDE_EVENTS, |_| grouped(hook.clone()));
                let next = "Start `claude` here; `/hooks` shows them.";
                (".claude/settings.json", next, HookContent::Json { hooks, beside: Vec::new() })
            }
            SupportedClient::Codex => {
                let hook = json!({ "type": "command", "command": command("codex"), "timeout": TIMEOUT_SECONDS });
                let hooks = each(CODEX_EVENTS, |_| grouped(hook.clone()));
                let next = "Start `codex` here, trust the directory, and trust the hooks in `/hooks`: until then codex skips \
                            them without a word.";
                (".codex/hooks.json", next, HookContent::Json { hooks, beside: Vec::new() })
            }
            SupportedClient::Gemini => {
                let hook = json!({
                    "type": "command", "name": program.name, "command": command("gemini"),
                    "timeout": TIMEOUT_SECONDS * 1000,
                });
                let hooks = each(GEMINI_EVENTS, |_| grouped(hook.clone()));
                let next = "Start `gemini` here and trust the directory; `/hooks` shows them.";
                (".gemini/settings.json", next, HookContent::Json { hooks, beside: Vec::new() })
            }
            SupportedClient::Copilot => {
                let hooks = each(COPILOT_EVENTS, |event| {
                    let command = format!("{} {event}", command("copilot"));
                    json!({ "type": "command", "bash": command, "timeoutSec": TIMEOUT_SECONDS })
                });
                let next = "Start `copilot` here and trust the directory.";
                (".github/hooks/toolgate.json", next, HookContent::Json { hooks, beside: vec![("version", json!(1))] })
            }
            SupportedClient::Cursor => {
                let hook = json!({ "command": command("cursor"), "timeout": TIMEOUT_SECONDS, "failClosed": true });
                let hooks = each(CURSOR_EVENTS, |_| hook.clone());
                let next = "Open the directory in Cursor; its settings show the hooks.";
                (".cursor/hooks.json", next, HookContent::Json { hooks, beside: vec![("version", json!(1))] })
            }
            SupportedClient::Opencode => {
                let next = "Start `opencode` here; it loads the plugin by itself.";
                (".opencode/plugin/toolgate.js", next, HookContent::Plugin(plugin(&program.command("opencode"))))
            }
            SupportedClient::Goose => {
                // A pattern of `*` would be no regular expression, and the file would be skipped; none matches everything.
                let hook = json!({
                    "type": "command", "command": command("goose"), "timeout": TIMEOUT_SECONDS, "on_failure": "block",
                });
                let hooks = each(GOOSE_EVENTS, |_| json!({ "hooks": [hook.clone()] }));
                let next = "Start `goose session` here. Commands need our tools: `toolgate init --for goose --write`.";
                (".agents/plugins/toolgate/hooks/hooks.json", next, HookContent::Json { hooks, beside: Vec::new() })
            }
            SupportedClient::Vscode | SupportedClient::Zed => return None,
        };
        Some(Self { file: workspace.join(file), is_own_file: file.contains(OWN_NAME), next, content })
    }

    /// The lists of hooks by event, for clients that take them in their settings.
    pub(in crate::commands) fn lists(&self) -> &[(&'static str, Value)] {
        match &self.content {
            HookContent::Json { hooks, .. } => hooks,
            HookContent::Plugin(_) => &[],
        }
    }

    /// Whether a file seems to have our hooks in it, in whatever form.
    pub(in crate::commands) fn is_in(text: &str) -> bool {
        text.contains("toolgate") && text.contains("hook")
    }

    /// The file with our hooks in it, or without them; none if the file has to be changed by hand.
    pub(in crate::commands) fn merged(&self, text: &str, is_removed: bool) -> Option<String> {
        let (hooks, beside) = match &self.content {
            HookContent::Plugin(plugin) => return Some(if is_removed { String::new() } else { plugin.clone() }),
            HookContent::Json { hooks, beside } => (hooks, beside),
        };
        let mut file: Value = match text.trim() {
            "" => json!({}),
            text => serde_json::from_str(text).ok()?,
        };
        let fields = file.as_object_mut()?;
        for (name, value) in beside.iter().filter(|_| !is_removed) {
            fields.entry(*name).or_insert_with(|| value.clone());
        }
        let known = fields.entry("hooks").or_insert_with(|| json!({})).as_object_mut()?;
        for (event, hook) in hooks {
            let list = known.entry(*event).or_insert_with(|| json!([])).as_array_mut()?;
            // A program of another name is told by its whole entry.
            list.retain(|entry| !is_ours(entry) && entry != hook);
            list.extend((!is_removed).then(|| hook.clone()));
        }
        known.retain(|_, list| list.as_array().is_none_or(|list| !list.is_empty()));
        if known.is_empty() {
            fields.shift_remove("hooks");
        }
        let is_beside = |name: &str, value: &Value| beside.iter().any(|(ours, own)| *ours == name && own == value);
        let is_ours_alone = fields.iter().all(|(name, value)| is_beside(name, value));
        if is_removed && is_ours_alone && self.is_own_file {
            return Some(String::new());
        }
        Some(serde_json::to_string_pretty(&file).ok()? + "\n")
    }
}

/// One hook for each event.
fn each(events: &[&'static str], hook: impl Fn(&str) -> Value) -> Vec<(&'static str, Value)> {
    events.iter().map(|event| (*event, hook(event))).collect()
}

/// Whether an entry of a list of hooks is one of ours.
fn is_ours(entry: &Value) -> bool {
    let text = entry.to_string();
    text.contains("toolgate") && text.contains(" hook ")
}

const CLAUDE_EVENTS: &[&str] =
    &["PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SubagentStop", "SessionEnd"];
const CODEX_EVENTS: &[&str] = &["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"];
const GEMINI_EVENTS: &[&str] = &["BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "SessionEnd"];
const COPILOT_EVENTS: &[&str] =
    &["preToolUse", "postToolUse", "postToolUseFailure", "userPromptSubmitted", "agentStop", "sessionEnd"];
const GOOSE_EVENTS: &[&str] = &["PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd"];
const CURSOR_EVENTS: &[&str] =
    &["preToolUse", "postToolUse", "postToolUseFailure", "beforeSubmitPrompt", "stop", "sessionEnd"];

/// opencode's plugin: it asks before each call, and whatever isn't plainly allowed is denied.
fn plugin(words: &[String]) -> String {
    let words = json!(words);
    format!(
        r#"// Written by `toolgate init --for opencode --hooks --write`; judges every tool call by Toolgate.
import {{ spawnSync }} from "node:child_process"
import {{ fileURLToPath }} from "node:url"

const TOOLGATE = {words}

function ask(event) {{
  const options = {{ input: JSON.stringify(event), encoding: "utf8", timeout: {TIMEOUT_SECONDS}000, maxBuffer: 1 << 28 }}
  const done = spawnSync(TOOLGATE[0], TOOLGATE.slice(1), options)
  let answer
  try {{
    answer = JSON.parse(done.stdout)
  }} catch {{}}
  if (done.error || done.status !== 0 || answer?.decision !== "allow") {{
    throw new Error(answer?.reason ?? "Toolgate made no decision, so the call is denied.")
  }}
  return answer
}}

// opencode has read what is attached to a message. Its model gets none of it if one of the files may not be read.
function withhold(part, why) {{
  if (part.type === "text" && !part.synthetic) return
  const kept = ["id", "messageID", "sessionID"]
  Object.keys(part).filter((name) => !kept.includes(name)).forEach((name) => delete part[name])
  Object.assign(part, {{ type: "text", synthetic: true, text: why }})
}}

function attached({{ type, text, synthetic, url, source, filename }}) {{
  if (type === "text" && synthetic) {{
    try {{
      return [JSON.parse(text.slice(text.indexOf("{{"))).filePath]
    }} catch {{
      return []
    }}
  }}
  if (type !== "file" || source?.type === "resource") return []
  return [url?.startsWith("file:") ? fileURLToPath(url.split("?")[0]) : source?.path ?? filename]
}}

export const Toolgate = async ({{ directory }}) => ({{
  "chat.message": async (input, {{ parts }}) => {{
    const prompt = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
    const files = parts.flatMap(attached).filter((file) => typeof file === "string")
    try {{
      ask({{ event: "prompt", session: input.sessionID, directory, prompt, files }})
    }} catch (error) {{
      parts.forEach((part) => withhold(part, error.message))
    }}
  }},
  "tool.execute.before": async (input, output) => {{
    const call = {{ session: input.sessionID, id: input.callID, tool: input.tool, directory, input: output.args }}
    const answer = ask({{ event: "before", ...call }})
    if (answer.input) Object.assign(output.args, answer.input)
  }},
  "tool.execute.after": async (input, output) => {{
    const call = {{ session: input.sessionID, id: input.callID, tool: input.tool, directory, input: input.args ?? {{}} }}
    const answer = ask({{ event: "after", ...call, result: output.output }})
    if (typeof answer.result === "string") output.output = answer.result
  }},
}})
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_of_a_program_with_another_name_are_removed_too() {
        let program = HookProgram::judging(vec!["/opt/gate".to_owned()]);
        let setup = HookSetup::of(SupportedClient::Goose, &program, Path::new("/srv")).unwrap();
        let once = setup.merged("", false).unwrap();
        assert_eq!(setup.merged(&once, false).as_ref(), Some(&once));
        assert_eq!(setup.merged(&once, true).as_deref(), Some(""));
    }

    #[test]
    fn what_is_there_stays_and_ours_is_there_once() {
        let words = ["/opt/toolgate", "-w", "/srv/a b"].map(str::to_owned);
        let program = HookProgram::judging(words.to_vec());
        let setup = HookSetup::of(SupportedClient::Claude, &program, Path::new("/srv/a b")).unwrap();
        let theirs = r#"{"model":"x","hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"mine"}]}]}}"#;
        let once = setup.merged(theirs, false).unwrap();
        assert_eq!(setup.merged(&once, false).unwrap(), once);
        let read: Value = serde_json::from_str(&once).unwrap();
        assert_eq!(read["hooks"]["PreToolUse"].as_array().unwrap().len(), 2, "{once}");
        assert_eq!(read["hooks"]["PreToolUse"][1]["hooks"][0]["command"], "/opt/toolgate -w '/srv/a b' hook claude");
        let removed: Value = serde_json::from_str(&setup.merged(&once, true).unwrap()).unwrap();
        assert_eq!(removed, serde_json::from_str::<Value>(theirs).unwrap());
        assert_eq!(setup.merged("{ // a comment", false), None);
    }
}
