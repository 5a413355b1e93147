//! The same tools in clients' own words: names, arguments, results and errors, over MCP and from the shell.

mod golden;
mod golden_coverage;

use serde_json::{Value, json};
use toolgate_testkit::mcp::McpClient;

use crate::mcp::client;
use crate::world::World;

fn speaking(world: &World, dialect: &str) -> McpClient {
    let mut client = client::start(world, &["--dialect", dialect], false, json!({}));
    client.initialize();
    client
}

/// What the model reads, and whether it is marked as an error.
fn said(client: &mut McpClient, tool: &str, args: Value) -> (String, bool) {
    let result = client.call(tool, args);
    (result["content"][0]["text"].as_str().unwrap_or_default().to_owned(), result["isError"] == true)
}

fn ok(text: &str) -> (String, bool) {
    (text.to_owned(), false)
}

#[test]
fn claude_reads_edits_searches_and_runs_in_its_own_words() {
    let world = World::new().file("src/main.rs", "fn main() {}\n").file("empty", "");
    let home = world.workspace().canonicalize().unwrap().display().to_string();
    let at = |path: &str| format!("{home}/{path}");
    let mut client = speaking(&world, "claude");
    let list = client.ask("tools/list", json!({}));
    let names: Vec<&str> =
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"Read") && names.contains(&"artifact") && !names.contains(&"read"), "{names:?}");
    let mut call = |tool: &str, args: Value| said(&mut client, tool, args);
    let hello = at("hello.txt");
    assert_eq!(call("Read", json!({ "file_path": hello })), ok("1\thello\n2\tworld\n3\t"));
    assert_eq!(call("Read", json!({ "file_path": hello, "offset": 2, "limit": 1 })), ok("2\tworld"));
    assert_eq!(
        call("Read", json!({ "file_path": hello, "offset": 99 })).0,
        "<system-reminder>Warning: the file exists but is shorter than the provided offset (99). The file has 3 lines.\
         </system-reminder>"
    );
    assert!(call("Read", json!({ "file_path": at("empty") })).0.contains("contents are empty"));
    let edit = json!({ "file_path": hello, "old_string": "world", "new_string": "moon" });
    assert_eq!(call("Edit", edit), ok(&format!("The file {hello} has been updated successfully.")));
    assert_eq!(world.read("hello.txt"), "hello\nmoon\n");
    assert_eq!(call("Glob", json!({ "pattern": "**/*.rs" })), ok("src/main.rs"));
    assert_eq!(call("Grep", json!({ "pattern": "main" })), ok("Found 1 file\nsrc/main.rs"));
    let content = json!({ "pattern": "fn", "output_mode": "content" });
    assert_eq!(call("Grep", content), ok("src/main.rs:1:fn main() {}"));
    assert_eq!(call("Bash", json!({ "command": "echo hi" })), ok("hi"));
    assert_eq!(call("Bash", json!({ "command": "true" })), ok("(Bash completed with no output)"));
    assert_eq!(call("Bash", json!({ "command": "echo no; exit 3" })), ("Exit code 3\nno".into(), true));
    assert_eq!(call("Bash", json!({ "command": "cd src && ls" })), ok("main.rs"));
    assert_eq!(call("Bash", json!({ "command": "ls" })), ok("main.rs"), "the directory stays");
    let (text, _) = call("Write", json!({ "file_path": at("new.txt"), "content": "new\n" }));
    assert!(text.starts_with(&format!("File created successfully at: {}", at("new.txt"))), "{text}");
    assert_eq!(world.read("new.txt"), "new\n");
}

#[test]
fn claude_is_told_of_faults_in_its_own_words_with_what_to_do_next() {
    let world = World::new().file(".env", "TOKEN=1\n");
    let mut client = speaking(&world, "claude");
    let home = world.workspace().canonicalize().unwrap().display().to_string();
    let mut error = |tool: &str, args: Value| {
        let (text, is_error) = said(&mut client, tool, args);
        assert!(is_error, "{text}");
        text
    };
    for (unknown, meant) in [("Reed", "\nDid you mean `Read`?"), ("read", "\nDid you mean `Read`?"), ("Fly", "")] {
        let expected = format!("<tool_use_error>Error: No such tool available: {unknown}</tool_use_error>{meant}");
        assert_eq!(error(unknown, json!({ "path": "hello.txt" })), expected);
    }
    assert_eq!(
        error("Bash", json!({ "cmd": "ls" })),
        "<tool_use_error>InputValidationError: Bash failed due to the following issues:\nThe required parameter `command` is \
         missing\nAn unexpected parameter `cmd` was provided</tool_use_error>"
    );
    let missing = error("Read", json!({ "file_path": format!("{home}/none") }));
    assert!(
        missing.starts_with(&format!("File does not exist. Note: your current working directory is {home}.")),
        "{missing}"
    );
    let no_match = json!({ "file_path": "hello.txt", "old_string": "1\thello", "new_string": "x" });
    let no_match = error("Edit", no_match);
    assert!(no_match.contains("String to replace not found in file.\nString: 1\thello"), "{no_match}");
    assert!(no_match.contains("Line numbers aren't part of the file"), "{no_match}");
    let secret = error("Read", json!({ "file_path": format!("{home}/.env") }));
    assert!(secret.contains("denied by your permission settings"), "{secret}");
    let mask = error("Edit", json!({ "file_path": "hello.txt", "old_string": "***REDACTED***", "new_string": "x" }));
    assert!(mask.contains("a secret that you weren't shown"), "{mask}");
    let pages = error("Read", json!({ "file_path": "hello.txt", "pages": "1-2" }));
    assert!(pages.contains("Pages of a PDF"), "what can't be honoured isn't dropped without a word: {pages}");
    let timeout = error("Bash", json!({ "command": "ls", "timeout": 700_000 }));
    assert!(timeout.contains("run_in_background"), "{timeout}");
    assert_eq!(client.end(), 0);
    let record: Value = serde_json::from_str(&world.run(&["runs", "export"]).out).unwrap();
    let events = record["events"].as_array().unwrap();
    let reed = events.iter().find(|event| event["tool"] == "Reed").expect("a refused call is on record, as every call");
    let ended = events.iter().find(|event| event["tool_call_id"] == reed["tool_call_id"] && event["error"].is_object());
    assert_eq!(ended.unwrap()["error"]["code"], "unknown_tool");
}

#[test]
fn older_claude_has_to_read_a_file_before_it_changes_it() {
    let world = World::new();
    let mut client = speaking(&world, "claude-2.0");
    let unread = "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>";
    let write = json!({ "file_path": "hello.txt", "content": "x" });
    let (text, is_error) = said(&mut client, "Write", write.clone());
    assert!(text.starts_with(unread) && is_error, "{text}");
    assert_eq!(world.read("hello.txt"), "hello\nworld\n");
    assert_eq!(
        said(&mut client, "Read", json!({ "file_path": "hello.txt" })),
        ok("     1→hello\n     2→world\n     3→")
    );
    world.put(&world.workspace().join("hello.txt"), "a person's\n");
    let (text, is_error) = said(&mut client, "Write", write.clone());
    assert!(text.starts_with("File has been modified since read") && is_error, "{text}");
    said(&mut client, "Read", json!({ "file_path": "hello.txt" }));
    let (text, is_error) = said(&mut client, "Write", write);
    assert!(text.contains("has been updated successfully") && !is_error, "{text}");
    let (text, _) = said(&mut client, "Write", json!({ "file_path": "new/file.txt", "content": "x" }));
    assert!(text.starts_with("File created successfully at:"), "{text}");
}

#[test]
fn codex_runs_patches_and_plans_in_its_own_words() {
    let world = World::new();
    let mut client = speaking(&world, "codex");
    let (text, is_error) = said(&mut client, "exec_command", json!({ "cmd": "echo hi; exit 3", "unknown": 1 }));
    let lines: Vec<&str> = text.lines().collect();
    assert!(!is_error && lines[0].starts_with("Chunk ID: ") && lines[1].starts_with("Wall time: "), "{text}");
    let ignored = "(`unknown` was ignored: exec_command doesn't have it.)";
    assert_eq!(lines[2..], ["Process exited with code 3", "Original token count: 1", "Output:", "hi", "", ignored]);
    let patch =
        "*** Begin Patch\n*** Add File: n.txt\n+new\n*** Update File: hello.txt\n@@\n-world\n+moon\n*** End Patch\n";
    let expected =
        "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nA n.txt\nM hello.txt\n";
    assert_eq!(said(&mut client, "apply_patch", json!({ "input": patch })), ok(expected));
    assert_eq!((world.read("n.txt"), world.read("hello.txt")), ("new\n".into(), "hello\nmoon\n".into()));
    let heredoc = format!(
        "apply_patch <<'EOF'\n{}EOF\n",
        patch.replace("n.txt", "m.txt").replace("-world\n+moon", "-moon\n+sun")
    );
    let (text, _) = said(&mut client, "exec_command", json!({ "cmd": heredoc }));
    assert!(text.contains("Success. Updated the following files:\nA m.txt"), "{text}");
    let (text, _) = said(&mut client, "exec_command", json!({ "cmd": "sleep 100", "yield_time_ms": 250 }));
    assert!(text.contains("Process running with session ID 1"), "{text}");
    let plan = json!({ "plan": [{ "step": "a", "status": "in_progress" }] });
    assert_eq!(said(&mut client, "update_plan", plan), ok("Plan updated"));
    let mut error = |tool: &str, args: Value| said(&mut client, tool, args).0;
    assert_eq!(error("shell", json!({ "command": ["ls"] })), "unsupported call: shell");
    assert_eq!(error("exec_command", json!({})), "failed to parse function arguments: missing field `cmd`");
    assert!(error("write_stdin", json!({ "session_id": 7 })).starts_with("write_stdin failed: Unknown process id 7"));
    assert!(error("apply_patch", json!({ "input": "nothing" })).starts_with("apply_patch verification failed: "));
    assert!(error("exec_command", json!({ "cmd": "git push --force" })).contains("Rejected("));
}

#[test]
fn codex_of_january_has_its_file_tools_and_both_forms_of_a_command() {
    let world = World::new().file("src/deep/x.rs", "x\n");
    let home = world.workspace().canonicalize().unwrap().display().to_string();
    let mut client = speaking(&world, "codex-2026-01");
    let mut call = |tool: &str, args: Value| said(&mut client, tool, args);
    for name in ["shell", "container.exec", "local_shell"] {
        let (text, _) = call(name, json!({ "command": ["bash", "-lc", "echo hi; exit 3"] }));
        let output: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&output["output"], &output["metadata"]["exit_code"]), (&json!("hi\n"), &json!(3)), "{text}");
    }
    let (text, _) = call("shell_command", json!({ "command": "echo hi" }));
    assert!(text.starts_with("Exit code: 0\nWall time: ") && text.ends_with("seconds\nOutput:\nhi\n"), "{text}");
    assert_eq!(call("read_file", json!({ "file_path": format!("{home}/hello.txt") })), ok("L1: hello\nL2: world"));
    let (text, is_error) = call("read_file", json!({ "file_path": "hello.txt" }));
    assert!(text.starts_with("file_path must be an absolute path") && is_error, "{text}");
    let listed = ok(&format!("Absolute path: {home}\nhello.txt\nsrc/\n  deep/"));
    assert_eq!(call("list_dir", json!({ "dir_path": home })), listed);
    assert_eq!(call("grep_files", json!({ "pattern": "hello" })), ok(&format!("{home}/hello.txt")));
    assert_eq!(call("grep_files", json!({ "pattern": "nowhere" })), ("No matches found.".into(), true));
}

#[test]
fn dialects_are_listed_declared_and_called_from_the_shell() {
    let world = World::new();
    let said = world.run(&["dialects"]);
    assert!(said.out.contains("claude-2.0") && said.out.contains("exec_command"), "{said:?}");
    assert!(said.out.contains("14 of 14"), "coder has all of its tools: {said:?}");
    let said = world.run(&["--json", "dialects"]);
    assert!(
        said.out.contains(r#"{"name":"plan_exit","reason":"plan mode belongs to the client itself."}"#),
        "{said:?}"
    );
    let said = world.run(&["tools", "--dialect", "claude", "--format", "anthropic", "--json"]);
    let tools: Value = serde_json::from_str(&said.out).unwrap();
    let read = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "Read").unwrap();
    assert_eq!(read["input_schema"]["required"], json!(["file_path"]));
    assert_eq!(read["input_schema"]["properties"]["file_path"]["type"], "string");
    let said = world.run(&["tools", "--dialect", "codex", "--format", "openai", "--json"]);
    assert!(said.out.contains(r#""type":"custom""#) && said.out.contains("*** Begin Patch"), "{said:?}");
    let said = world.run(&["call", "--dialect", "claude", "Read", r#"{"file_path":"hello.txt"}"#]);
    assert_eq!((said.code, said.out.as_str()), (0, "1\thello\n2\tworld\n3\t\n"), "{said:?}");
    let patch = json!("*** Begin Patch\n*** Delete File: hello.txt\n*** End Patch\n").to_string();
    let said = world.run(&["--preset", "full", "call", "--dialect", "codex", "apply_patch", &patch]);
    assert!(said.out.contains("D hello.txt"), "{said:?}");
    let said = world.run(&["call", "--dialect", "clod", "Read", "{}"]);
    assert!(said.code == 2 && said.err.contains("there are claude, claude-2.0, codex"), "{said:?}");
}

#[test]
fn claude_gets_what_it_knows() {
    golden::run_scripts("claude");
    golden::run_scripts("claude-2.0");
}

#[test]
fn codex_gets_what_it_knows() {
    golden::run_scripts("codex");
    golden::run_scripts("codex-2026-01");
}

#[test]
fn gemini_gets_what_it_knows() {
    golden::run_scripts("gemini");
}

#[test]
fn opencode_gets_what_it_knows() {
    golden::run_scripts("opencode");
}

#[test]
fn coder_gets_what_it_knows() {
    golden::run_scripts("coder");
}

#[test]
fn clude_gets_what_it_knows() {
    golden::run_scripts("clude");
}

#[test]
fn skills_gets_what_it_knows() {
    golden::run_scripts("skills");
}

#[test]
fn autonous_gets_what_it_knows() {
    golden::run_scripts("autonous");
}

#[test]
fn clude_names_decisions_in_its_own_words() {
    let world = World::new();
    let decided = |tool: &str, args: &str| {
        let said = world.run(&["policy", "check", "--dialect", "clude", "--tool", tool, args]);
        (said.out.trim_end().to_owned(), said.code)
    };
    assert_eq!(decided("read_file", r#"{"path":"hello.txt"}"#), ("ALLOW".into(), 0));
    assert_eq!(decided("delete_file", r#"{"path":"hello.txt"}"#), ("REQUIRE_CONFIRMATION(call)".into(), 4));
    let (denied, code) = decided("run_terminal_cmd", r#"{"command":"rm -rf /","is_background":false}"#);
    assert!(denied.starts_with("DENY(policy_denied, ") && denied.ends_with(')') && code == 3, "{denied}");
    let said = world.run(&["policy", "check", "--dialect", "clude", "--tool", "delete", "{}"]);
    assert!(said.err.contains("unknown tool: delete"), "{said:?}");
}

#[test]
fn a_run_is_exported_in_the_form_of_a_design() {
    let world = World::new();
    world.run(&["call", "read", r#"{"path":"hello.txt"}"#]);
    let run = world.run(&["--json", "runs", "list"]).json()["id"].as_str().unwrap().to_owned();
    let long = "x".repeat(5000);
    world.run(&["call", "--run", &run, "write", &json!({ "path": "long.txt", "content": long }).to_string()]);
    world.run(&["call", "--run", &run, "shell", r#"{"command":"seq 5000; exit 3"}"#]);
    world.run(&["call", "--run", &run, "read", r#"{"path":"none"}"#]);
    let lines = |dialect: &str| -> Vec<Value> {
        let said = world.run(&["runs", "export", &run, "--dialect", dialect]);
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let audit = lines("skills");
    assert_eq!(audit.len(), 4, "{audit:?}");
    let fields: Vec<&String> = audit[1].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["tool", "risk", "ts_start", "ts_end", "params", "result", "policy", "hashes"]);
    assert_eq!((&audit[1]["tool"], &audit[1]["risk"]), (&json!("write_file"), &json!("high")));
    assert_eq!(audit[1]["policy"], json!({ "approved": true, "approval_scope": null }));
    assert_eq!((&audit[2]["result"]["exit_code"], audit[2]["result"]["stdout_ref"].is_string()), (&json!(3), true));
    assert!(audit[2]["hashes"]["stdout_sha256"].as_str().is_some_and(|hash| hash.len() == 64), "{}", audit[2]);
    assert_eq!(audit[3]["result"]["error"]["type"], "IOError");
    let log = lines("clude");
    assert_eq!((&log[1]["name"], &log[1]["result"]["ok"]), (&json!("write"), &json!(true)));
    assert_eq!(
        (&log[1]["artifacts"]["files_changed"], &log[3]["error"]["code"]),
        (&json!(["long.txt"]), &json!("not_found"))
    );
    let events = lines("autonous");
    let of = |kind: &str| {
        events.iter().filter(|event| event["type"] == kind).map(|event| &event["payload"]).collect::<Vec<_>>()
    };
    assert_eq!(of("tool_call.started")[1]["tool_name"], "write");
    assert!(
        of("tool_call.started")[1]["arguments"].as_str().is_some_and(|text| text.len() < 3000),
        "long ones are cut"
    );
    assert_eq!(of("tool_call.completed")[2]["exit_code"], 3);
    assert_eq!(
        (&of("tool_call.completed")[2]["tool_name"], &of("tool_call.completed")[2]["truncated_lines"]),
        (&json!("bash"), &json!(true))
    );
    assert_eq!(
        (&of("tool_call.failed")[0]["tool_name"], &of("tool_call.failed")[0]["error_class"]),
        (&json!("read"), &json!("tool_exec"))
    );
    let said = world.run(&["runs", "export", &run, "--dialect", "claude"]);
    assert!(said.code == 1 || said.code == 2, "{said:?}");
    assert!(said.err.contains("clude, skills, autonous"), "{said:?}");
}

#[test]
fn autonous_starts_only_with_its_roots() {
    let world = World::new();
    let start = |roots: Option<&str>| {
        let mut command = world.command(crate::world::PROGRAM);
        command.args(["call", "--dialect", "autonous", "ls", "{}"]);
        command.envs(roots.map(|roots| ("AUTONOUS_TOOL_ALLOWED_ROOTS", roots)));
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let home = world.workspace().canonicalize().unwrap().display().to_string();
    assert_eq!(start(Some(&home)), (0, String::new()));
    for (roots, expected) in
        [(None, "isn't set"), (Some("state"), "has to be an absolute path"), (Some("/nowhere"), "is in none of")]
    {
        let (code, said) = start(roots);
        assert!(code != 0 && said.contains(expected), "{code} {said}");
    }
}
