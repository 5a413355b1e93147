//! `toolgate hook`: events of clients' hooks, and what each client is told. Real clients are tried by `tests/hooks/matrix.py`.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::{PROGRAM, Said, World};

/// An event before a call, in each client's form, with the words behind `hook`.
fn before(client: &str, workspace: &str, command: &str) -> (Vec<&'static str>, Value) {
    let called = |event: &str, tool: &str| {
        json!({ "hook_event_name": event, "session_id": "s", "cwd": workspace, "tool_name": tool,
                "tool_input": { "command": command } })
    };
    match client {
        "claude" => (vec!["claude"], called("PreToolUse", "Bash")),
        "codex" => (vec!["codex"], called("PreToolUse", "Bash")),
        "gemini" => (vec!["gemini"], called("BeforeTool", "run_shell_command")),
        "cursor" => (vec!["cursor"], called("preToolUse", "Shell")),
        "goose" => (
            vec!["goose"],
            json!({ "event": "PreToolUse", "session_id": "s", "working_dir": workspace, "tool_name": "shell",
                    "tool_input": { "command": command } }),
        ),
        "opencode" => (
            vec!["opencode"],
            json!({ "event": "before", "session": "s", "directory": workspace, "tool": "bash",
                    "input": { "command": command } }),
        ),
        _ => (
            vec!["copilot", "preToolUse"],
            json!({ "sessionId": "s", "cwd": workspace, "toolName": "bash", "toolArgs": { "command": command } }),
        ),
    }
}

const CLIENTS: [&str; 7] = ["claude", "codex", "gemini", "opencode", "copilot", "cursor", "goose"];

impl World {
    fn hook(&self, words: &[&str], event: &str) -> Said {
        let mut hook = self.command(PROGRAM);
        hook.env("TOOLGATE_HOOK_HELPER", "off").arg("hook").args(words);
        hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = hook.spawn().unwrap();
        running.stdin.take().unwrap().write_all(event.as_bytes()).unwrap();
        Said::from(running.wait_with_output().unwrap())
    }

    fn path(&self) -> String {
        self.workspace().canonicalize().unwrap().display().to_string()
    }

    fn claude(&self, event: &str, tool: &str, id: &str, input: Value) -> Said {
        let event = json!({ "hook_event_name": event, "session_id": "s", "cwd": self.path(), "tool_name": tool,
                            "tool_input": input, "tool_use_id": id, "tool_response": { "text": "ok" } });
        self.hook(&["claude"], &event.to_string())
    }

    /// The line that Claude Code is told to run in place of a command.
    fn rewritten(&self, command: &str) -> String {
        rewritten_line(&self.claude("PreToolUse", "Bash", "t", json!({ "command": command })))
    }
}

fn rewritten_line(said: &Said) -> String {
    let line = said.json()["hookSpecificOutput"]["updatedInput"]["command"].as_str().map(str::to_owned);
    line.unwrap_or_else(|| panic!("{said:?}"))
}

#[test]
fn every_client_is_told_a_denial_in_its_own_form() {
    for client in CLIENTS {
        let world = World::new();
        let (words, event) = before(client, &world.path(), "rm -rf ~");
        let said = world.hook(&words, &event.to_string());
        assert_eq!(said.code, 2, "{client}: {said:?}");
        assert!(said.err.contains("Toolgate"), "{client}: {said:?}");
        let answer = said.json().to_string();
        assert!(answer.contains("deny") || answer.contains("block"), "{client}: {answer}");
    }
}

#[test]
fn what_can_not_be_judged_is_denied() {
    for client in CLIENTS {
        let world = World::new();
        let (words, event) = before(client, &world.path(), "true");
        for broken in ["", "nonsense", "{}", "[1]", &event.to_string()[..20], r#"{"a":1,"a":2}"#] {
            let said = world.hook(&words, broken);
            assert!(said.code == 2 && !said.err.is_empty(), "{client} {broken}: {said:?}");
        }
        world.put(&world.workspace().join("toolgate.toml"), "preset = \"nonsense\"");
        let said = world.hook(&words, &event.to_string());
        assert!(said.code == 2 && !said.err.is_empty(), "{client}: {said:?}");
    }
}

#[test]
fn a_command_runs_once_under_its_id_and_only_as_it_was_judged() {
    let world = World::new();
    let line = world.rewritten("echo out; echo err >&2; echo made > made.txt; exit 3");
    let ran = world.shell(&line);
    assert_eq!((ran.code, ran.out.as_str()), (3, "out\n"), "{ran:?}");
    assert!(ran.err.contains("err\n"), "{ran:?}");
    assert_eq!(world.read("made.txt"), "made\n");
    let again = world.shell(&line);
    assert_eq!((again.code, again.out.as_str()), (126, ""), "an id is good once: {again:?}");
    let other = world.rewritten("echo harmless").replace("echo harmless", "echo other");
    let ran = world.shell(&other);
    assert_eq!((ran.code, ran.out.as_str()), (126, ""), "another command than was judged: {ran:?}");
    assert_eq!(world.run(&["undo", "last"]).code, 0);
    assert!(!world.workspace().join("made.txt").exists());
}

#[test]
fn what_is_noted_of_a_command_is_on_lines_of_its_own() {
    let world = World::new().file(".env", "TOKEN=canary\n");
    let ran = world.shell(&format!("{} 2>&1", world.rewritten("grep -r canary . ; printf end; exit 3")));
    let note = ran.out.lines().find(|line| line.starts_with("toolgate: `.env`"));
    assert!(ran.code == 3 && note.is_some() && !ran.out.contains("canary"), "{ran:?}");
}

#[test]
fn a_directory_is_kept_from_one_command_to_the_next() {
    let world = World::new().file("sub/a.txt", "a");
    assert_eq!(world.shell(&world.rewritten("cd sub && ls")).out, "a.txt\n");
    assert_eq!(world.shell(&world.rewritten("ls")).out, "a.txt\n");
}

/// Codex keeps the directory that its model asks for to itself, and starts the command there.
#[test]
fn a_command_is_judged_and_runs_where_the_client_starts_it() {
    let world = World::new().file("sub/a.txt", "a");
    let started_in = |directory: &str, command: &str| {
        let (words, event) = before("codex", &world.path(), command);
        let line = rewritten_line(&world.hook(&words, &event.to_string()));
        world.shell(&format!("cd {directory} && {line}"))
    };
    let ran = started_in("sub", "ls; echo made > made.txt");
    assert_eq!((ran.code, ran.out.as_str(), world.read("sub/made.txt").as_str()), (0, "a.txt\n", "made\n"), "{ran:?}");
    let ran = started_in("..", "echo made > made.txt");
    assert!(ran.code == 126 && ran.err.contains("toolgate: "), "{ran:?}");
    assert!(!world.workspace().join("../made.txt").exists() && !world.workspace().join("made.txt").exists());
}

#[test]
fn what_the_client_changes_is_recorded_and_undone() {
    let world = World::new();
    let (file, edit) = (world.workspace().join("hello.txt"), "Edit");
    let input = json!({ "file_path": format!("{}/hello.txt", world.path()), "old_string": "a", "new_string": "b" });
    let allowed = world.claude("PreToolUse", edit, "t1", input.clone());
    assert_eq!((allowed.code, allowed.json()), (0, json!({ "continue": true })));
    world.put(&file, "changed\n");
    assert_eq!(world.claude("PostToolUse", edit, "t1", input).code, 0);
    let tree = world.run(&["--json", "runs", "tree"]).out;
    assert!(tree.contains(r#""client_executes":true"#) && tree.contains(r#""tool":"Edit""#), "{tree}");
    let undone = world.run(&["undo", "last"]);
    assert_eq!((undone.code, world.read("hello.txt").as_str()), (0, "hello\nworld\n"), "{undone:?}");
}

#[test]
fn a_change_whose_end_is_never_reported_is_found_by_whoever_comes_next() {
    let world = World::new();
    let path = format!("{}/new/file.txt", world.path());
    let input = json!({ "file_path": path, "content": "x" });
    assert_eq!(world.claude("PreToolUse", "Write", "t1", input).code, 0);
    world.put(&world.workspace().join("new/file.txt"), "x");
    let undone = world.run(&["undo", "last"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert!(!world.workspace().join("new").exists(), "the directory was the call's as well");
}

#[test]
fn hidden_files_are_kept_from_the_clients_own_tools() {
    let world = World::new().file(".env", "TOKEN=canary\n");
    std::fs::hard_link(world.workspace().join(".env"), world.workspace().join("notes.txt")).unwrap();
    let path = |name: &str| format!("{}/{name}", world.path());
    for (tool, input) in [
        ("Read", json!({ "file_path": path(".env") })),
        ("Read", json!({ "file_path": path("notes.txt") })),
        ("Grep", json!({ "pattern": "TOKEN", "path": world.path() })),
        ("Read", json!({ "file_path": "/etc/shadow" })),
        ("Write", json!({ "file_path": path(".env"), "content": "x" })),
    ] {
        let said = world.claude("PreToolUse", tool, "t", input.clone());
        assert_eq!(said.code, 2, "{tool} {input}: {said:?}");
    }
    let mentioned = json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "see @.env" });
    assert_eq!(world.hook(&["claude"], &mentioned.to_string()).code, 2);
}

#[test]
fn what_is_not_known_is_asked_about_and_denied_where_nobody_can_be_asked() {
    let world = World::new();
    let asked = world.claude("PreToolUse", "Unheard", "t", json!({}));
    assert_eq!(asked.json()["hookSpecificOutput"]["permissionDecision"], "ask", "{asked:?}");
    let event = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": world.path(), "tool_name": "unheard",
                        "tool_input": {} });
    assert_eq!(world.hook(&["codex"], &event.to_string()).code, 2);
}

#[test]
fn hooks_are_added_and_removed_and_nothing_else_changes() {
    for (client, file) in [("claude", ".claude/settings.json"), ("gemini", ".gemini/settings.json")] {
        let world = World::new().file(file, "{\n  \"theme\": \"dark\"\n}\n");
        assert_eq!(world.run(&["init", "--for", client, "--hooks", "--write"]).code, 0);
        let once = world.read(file);
        assert!(once.contains("\"theme\": \"dark\"") && once.contains(&format!("hook {client}")), "{once}");
        assert_eq!(world.run(&["init", "--for", client, "--hooks", "--write"]).code, 0);
        assert_eq!(world.read(file), once);
        assert_eq!(world.run(&["init", "--for", client, "--hooks", "--remove"]).code, 0);
        assert_eq!(world.read(file), "{\n  \"theme\": \"dark\"\n}\n");
    }
}

#[test]
fn files_that_only_hooks_are_in_go_with_them() {
    for (client, file) in [
        ("copilot", ".github/hooks/toolgate.json"),
        ("opencode", ".opencode/plugin/toolgate.js"),
        ("goose", ".agents/plugins/toolgate/hooks/hooks.json"),
    ] {
        let world = World::new();
        assert_eq!(world.run(&["init", "--for", client, "--hooks", "--write"]).code, 0);
        assert!(world.read(file).contains(&format!("hook {client}")) || client == "opencode", "{}", world.read(file));
        assert_eq!(world.run(&["init", "--for", client, "--hooks", "--remove"]).code, 0);
        assert!(!world.workspace().join(file).exists(), "{client}");
    }
}

/// With `on_failure: block`, goose denies every call whose hook says anything but `allow`.
#[test]
fn goose_is_told_what_it_takes_for_a_decision() {
    let world = World::new();
    let told = |tool: &str, input: Value| {
        let event = json!({ "event": "PreToolUse", "session_id": "s", "working_dir": world.path(), "tool_name": tool,
                            "tool_call_id": "t", "tool_input": input });
        world.hook(&["goose"], &event.to_string())
    };
    let allowed = told("edit", json!({ "path": "hello.txt", "before": "a", "after": "b" }));
    assert_eq!((allowed.code, allowed.json()), (0, json!({ "decision": "allow" })), "{allowed:?}");
    let command = told("shell", json!({ "command": "true" }));
    assert!(command.code == 2 && command.err.contains("init --for goose"), "{command:?}");
    let agent = told("delegate", json!({ "instructions": "x" }));
    assert_eq!(agent.code, 2, "its calls have no hooks: {agent:?}");
    let tree = world.run(&["runs", "tree"]).out;
    assert!(tree.contains("shell ✗") || tree.contains("goose can't be told"), "a refused command is on record: {tree}");
}

/// opencode's plugin reports what is attached to a message, and Cursor its attachments.
#[test]
fn a_message_with_a_hidden_file_is_not_sent() {
    let world = World::new().file(".env", "TOKEN=canary\n").file("with space.txt", "x");
    for (client, event) in [
        ("opencode", json!({ "event": "prompt", "session": "s", "directory": world.path(), "prompt": "see" })),
        ("cursor", json!({ "hook_event_name": "beforeSubmitPrompt", "conversation_id": "s", "prompt": "see" })),
    ] {
        let sent = |file: &str| {
            let path = format!("{}/{file}", world.path());
            let mut event = event.clone();
            event["files"] = json!([path]);
            event["attachments"] = json!([{ "type": "file", "file_path": path }]);
            world.hook(&[client], &event.to_string()).code
        };
        assert_eq!((sent(".env"), sent("with space.txt")), (2, 0), "{client}");
    }
}

/// Copilot sends a message that a hook denied by its exit code alone: it wants to read that the message is blocked.
#[test]
fn copilot_reads_that_a_message_is_blocked() {
    let world = World::new().file(".env", "TOKEN=canary\n");
    let event = json!({ "sessionId": "s", "cwd": world.path(), "prompt": "look at @.env please" });
    let said = world.hook(&["copilot", "userPromptSubmitted"], &event.to_string());
    let answer = said.json();
    assert_eq!((said.code, &answer["decision"]), (2, &json!("block")), "{said:?}");
    assert!(answer["reason"].as_str().is_some_and(|reason| reason.contains("Environment files")), "{said:?}");
}

#[test]
fn switches_that_take_safeguards_away_are_refused() {
    let world = World::new();
    for words in [
        &["claude", "--bare"][..],
        &["claude", "--safe-mode"],
        &["claude", "--dangerously-skip-permissions"],
        &["claude", "--settings={\"disableAllHooks\":true}"],
        &["opencode", "--pure"],
        &["codex", "--dangerously-bypass-approvals-and-sandbox"],
        &["codex", "--disable", "hooks"],
        &["codex", "--disable=codex_hooks"],
        &["codex", "exec", "-c", "features.hooks=false"],
        &["codex", "exec", "-c", "features={hooks=false}"],
        &["codex", "exec", "--config", " \"hooks\".PreToolUse=[]"],
        &["codex", "-s", "workspace-write"],
        &["copilot", "--allow-all"],
    ] {
        let said = world.run(&[&["with"], words].concat());
        assert!(said.code != 0 && said.err.contains("is refused"), "{words:?}: {said:?}");
    }
    let said = world.command(PROGRAM).env("CLAUDE_CODE_SIMPLE", "1").args(["with", "claude"]).output().unwrap();
    assert!(Said::from(said).err.contains("`CLAUDE_CODE_SIMPLE` is refused"));
    let world = World::new().file(".github/copilot/settings.json", "{\"disableAllHooks\": true}");
    let said = world.run(&["with", "copilot"]);
    assert!(said.code != 0 && said.err.contains("settings.json is refused"), "{said:?}");
    for text in ["{ // off\n \"disableAllHooks\": true }", "{\"disableAllHooks\": true"] {
        let said = World::new().file(".github/copilot/settings.json", text).run(&["with", "copilot"]);
        assert!(said.code != 0 && said.err.contains("settings.json is"), "{said:?}");
    }
}

/// A client that is no more than a script: what it is handed are real hooks.
fn with_claude(world: World, script: &str) -> (World, Said) {
    let world = world.file("bin/claude", script);
    std::fs::set_permissions(world.workspace().join("bin/claude"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}/bin:/usr/bin:/bin", world.path());
    let said = Said::from(world.command(PROGRAM).env("PATH", path).args(["with", "claude"]).output().unwrap());
    (world, said)
}

/// Also in a workspace that has the client's hooks, which would judge where Toolgate's state is hidden.
#[test]
fn a_confined_client_has_hooks_that_it_can_not_change() {
    let script = r#"#!/bin/sh
hook=$(sed 's/.*"PreToolUse":\[{[^}]*"command":"\([^"]*\)".*/\1/' "$2")
for command in 'rm -rf ~' 'true'; do
    printf '{"hook_event_name":"PreToolUse","session_id":"s","cwd":"%s","tool_name":"Bash","tool_input":{"command":"%s"}}' \
        "$PWD" "$command" | sh -c "$hook" > answer.txt
    echo "$command: $?"
done
echo '{}' > "$2" && echo "changed its hooks"
rm -f "$2" && echo "removed its hooks"
grep -q toolgate .claude/settings.json && echo "has hooks of the workspace"
grep -o '"disableAllHooks":[a-z]*' "$2"
"#;
    let world = World::new();
    assert_eq!(world.run(&["init", "--for", "claude", "--hooks", "--write"]).code, 0);
    let before = world.read(".claude/settings.json");
    let (world, said) = with_claude(world, script);
    assert_eq!(said.out, "rm -rf ~: 2\ntrue: 0\n\"disableAllHooks\":false\n", "{said:?}");
    assert!(said.err.contains("Toolgate"), "{said:?}");
    assert_eq!(world.read(".claude/settings.json"), before);
    let tree = world.run(&["runs", "tree"]).out;
    assert!(tree.contains("sandbox") && tree.contains("executed by claude"), "one run has all of it: {tree}");
}

#[test]
fn a_confined_hook_denies_where_its_judge_is_not_there() {
    let world = World::new();
    let judge = world.workspace().join("judge.json");
    let event = before("claude", &world.path(), "true").1.to_string();
    for text in [None, Some("nonsense"), Some(r#"{"address":"127.0.0.1:1","token":"x"}"#)] {
        text.into_iter().for_each(|text| world.put(&judge, text));
        let said = world.hook(&["claude", "--confined", &judge.display().to_string()], &event);
        assert!(said.code == 2 && said.err.contains("Toolgate"), "{text:?}: {said:?}");
    }
}

/// Claude Code judges what a command is replaced by, and an answer that allows it goes past Claude Code's own rules.
#[test]
fn a_command_is_judged_by_the_clients_own_rules() {
    let rules = r#"{"permissions": {"deny": ["Bash(touch forbidden*)"], "ask": ["Bash(npm publish:*)"]}}"#;
    let world = World::new().file(".claude/settings.local.json", rules);
    let told = |command: &str| world.claude("PreToolUse", "Bash", "t", json!({ "command": command }));
    for denied in ["touch forbidden.txt", "true && touch forbidden.txt", "sh -c 'touch forbidden.txt'"] {
        let said = told(denied);
        assert!(said.code == 2 && said.err.contains("own rule `touch forbidden*`"), "{denied}: {said:?}");
    }
    let asked = told("npm publish --tag x").json();
    assert_eq!(asked["hookSpecificOutput"]["permissionDecision"], "ask", "{asked}");
    assert_eq!(told("touch allowed.txt").json()["hookSpecificOutput"]["permissionDecision"], "allow");
    world.put(&world.workspace().join(".claude/settings.json"), "not JSON");
    assert_eq!(told("true").code, 2, "rules that can't be read might deny");
}

/// A client that was talked into it could leave a hook, an MCP server or a plugin that its next session runs outside of the sandbox.
#[test]
fn a_confined_client_leaves_nothing_that_its_later_sessions_would_run() {
    let script = r#"#!/bin/sh
cd ~
for file in .claude/settings.json .claude/settings.local.json .claude/hooks/h .claude/commands/c .claude/plugins/p .claude/CLAUDE.md; do
    echo evil > $file && echo "wrote $file"
done
mv .claude/settings.json .claude/other && echo moved
mv .claude .old && echo "moved all"
rm -rf .claude/hooks && echo removed
echo '{"starts": 2, "mcpServers": {"evil": {"command": "sh"}}}' > .claude.json
mkdir -p .claude/projects && echo remembered > .claude/projects/note && echo noted
"#;
    let world = World::new();
    let home = world.home();
    world.put(&home.join(".claude/settings.json"), "{\"theme\": \"dark\"}\n");
    world.put(&home.join(".claude.json"), "{\"starts\": 1}\n");
    let (_world, said) = with_claude(world, script);
    assert_eq!(said.out, "noted\n", "{said:?}");
    let read = |name: &str| std::fs::read_to_string(home.join(name)).unwrap();
    assert_eq!(read(".claude/settings.json"), "{\"theme\": \"dark\"}\n");
    assert_eq!(read(".claude/settings.local.json"), "{}\n", "it can't be made inside, so it is there");
    assert_eq!(read(".claude/projects/note"), "remembered\n");
    let settings: Value = serde_json::from_str(&read(".claude.json")).unwrap();
    assert_eq!(settings, json!({ "starts": 2 }));
    assert!(said.err.contains("mcpServers"), "{said:?}");
}
