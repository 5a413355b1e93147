//! What an agent is told at the start, besides its instructions: the date, the state of git, the names of skills,
//! what it remembers of the workspace, and which language servers are missing. All of it is looked up through the gate, like any call.

use serde_json::{Value, json};
use toolgate_contract::{Call, CancellationToken};
use toolgate_lsp::LanguageServers;
use toolgate_runtime::Session;
use toolgate_workspace::{Workspace, WorkspaceLocation, language_servers};

/// How many lines of `git status` are shown.
const GIT_LINES: usize = 20;
/// How many notes are shown.
const NOTES: usize = 20;
/// How much of a note is shown, in characters.
const NOTE_CHARS: usize = 200;

/// How many files are looked at for languages without a server.
const SOURCES: usize = 1000;

/// The facts, each a paragraph.
pub(crate) async fn gather(workspace: &Workspace, session: &Session, location: &WorkspaceLocation) -> Vec<String> {
    let mut facts = vec![format!("Today is {}.", workspace.clock.now().strftime("%A, %Y-%m-%d"))];
    let git = workspace.directory.join(".git");
    if git.is_dir() || git.is_file() {
        let command = "git status --short --branch";
        let payload = call(workspace, session, "shell", json!({ "command": command })).await;
        facts.extend(payload.as_ref().and_then(git_state));
    }
    facts.extend(call(workspace, session, "skill", json!({})).await.as_ref().and_then(skills));
    let search = json!({ "action": "search", "limit": NOTES });
    facts.extend(call(workspace, session, "memory", search).await.as_ref().and_then(memory));
    facts.extend(missing_servers(workspace, session, location).await);
    facts
}

/// The languages of the workspace that no installed server understands; none where there is no tool that would ask one.
async fn missing_servers(workspace: &Workspace, session: &Session, location: &WorkspaceLocation) -> Option<String> {
    workspace.gate.declaration("lsp_symbols")?;
    let settings = location.load().ok()?.settings;
    let servers = language_servers(location, &settings, &std::env::vars_os().collect()).ok()?;
    let patterns = servers.uncovered_patterns();
    if patterns.is_empty() {
        return None;
    }
    let search = json!({ "pattern": format!("{{{}}}", patterns.join(",")), "kind": "file", "limit": SOURCES });
    let found = call(workspace, session, "find", search).await?;
    without_server(&servers, &found)
}

fn without_server(servers: &LanguageServers, found: &Value) -> Option<String> {
    let paths = found.get("paths")?.as_array()?.iter().filter_map(Value::as_str);
    let missing = servers.missing_for(paths);
    let listed: Vec<String> = missing.iter().map(|(language, install)| format!("{language} (`{install}`)")).collect();
    (!listed.is_empty()).then(|| {
        let listed = listed.join(", ");
        format!("No language server is installed for {listed}. `lsp_*` fail there: use `grep`, and don't install one unasked.")
    })
}

/// The payload of a call; none if it was refused, which is no reason not to work.
async fn call(workspace: &Workspace, session: &Session, tool: &str, args: Value) -> Option<Value> {
    let call = Call::new(tool, args, workspace.clock.as_ref());
    workspace.gate.perform(call, session, CancellationToken::new()).await.payload
}

fn git_state(payload: &Value) -> Option<String> {
    let output = payload.get("stdout")?.as_str()?;
    let exit_code = payload.get("exit_code")?.as_i64()?;
    let lines: Vec<&str> = output.lines().collect();
    let more = lines.len().saturating_sub(GIT_LINES);
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    let shown = lines.iter().take(GIT_LINES).copied().collect::<Vec<_>>().join("\n");
    (exit_code == 0 && !shown.is_empty()).then(|| format!("`git status --short --branch` at the start:\n{shown}{more}"))
}

fn skills(payload: &Value) -> Option<String> {
    let text = |skill: &Value, field: &str| skill.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let skills = payload.get("skills")?.as_array()?.iter();
    let lines: Vec<String> =
        skills.map(|skill| format!("- {}: {}", text(skill, "name"), text(skill, "description"))).collect();
    (!lines.is_empty()).then(|| format!("Skills, which `skill` loads when they fit:\n{}", lines.join("\n")))
}

fn memory(payload: &Value) -> Option<String> {
    let text = |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let entries = payload.get("memories")?.as_array()?.iter();
    let line = |entry: &Value| {
        let words: String = text(entry, "content").replace('\n', " ").chars().take(NOTE_CHARS).collect();
        let title = Some(text(entry, "title")).filter(|title| !title.is_empty());
        format!("- {}{words}", title.map(|title| format!("{title}: ")).unwrap_or_default())
    };
    let lines: Vec<String> = entries.map(line).collect();
    (!lines.is_empty()).then(|| format!("What you noted in `memory` about this workspace:\n{}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_short_and_absent_where_there_are_none() {
        let lines: String = (0..30).map(|number| format!("?? file{number}\n")).collect();
        let state = git_state(&json!({ "stdout": format!("## main\n{lines}"), "exit_code": 0 })).unwrap();
        assert!(state.contains("## main\n?? file0") && state.ends_with("and 11 more"), "{state}");
        assert_eq!(git_state(&json!({ "stdout": "", "exit_code": 128 })), None);
        assert_eq!((skills(&json!({ "skills": [] })), memory(&json!({ "memories": [], "total": 0 }))), (None, None));
        let noted = memory(&json!({ "memories": [{ "id": "1", "content": "a\nb" }] })).unwrap();
        assert!(noted.ends_with("- a b"), "{noted}");
    }
}
