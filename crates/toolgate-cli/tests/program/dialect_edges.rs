//! Edges of dialects for which there is no recording: what a client would never do, or what only the gate knows. The others are steps
//! of the recordings, marked with `edge`.

use serde_json::{Value, json};
use toolgate_testkit::mcp::McpClient;

use crate::mcp::client;
use crate::world::World;

fn speaking(world: &World, dialect: &str) -> McpClient {
    let mut client = client::start(world, &["--dialect", dialect], false, json!({}));
    client.initialize();
    client
}

fn text(client: &mut McpClient, tool: &str, args: Value) -> String {
    client.call(tool, args)["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Edge 2: the arrow of older versions is known as well as the tab, and nothing is stripped silently.
#[test]
fn copied_line_numbers_are_named_and_not_stripped() {
    let world = World::new();
    let mut client = speaking(&world, "claude-2.0");
    text(&mut client, "Read", json!({ "file_path": "hello.txt" }));
    let edit = json!({ "file_path": "hello.txt", "old_string": "     1→hello", "new_string": "x" });
    assert!(text(&mut client, "Edit", edit).contains("Line numbers aren't part of the file"));
    assert_eq!(world.read("hello.txt"), "hello\nworld\n");
}

/// Edge 7: a function call to a free-text tool, free text for a function, and a patch as a command.
#[test]
fn the_content_of_a_call_says_what_is_meant() {
    let world = World::new();
    let patch = |file: &str| format!("*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch\n");
    let call = |tool: &str, args: Value| world.run(&["call", "--dialect", "codex", tool, &args.to_string()]);
    for (args, file) in [(json!({ "input": patch("function") }), "function"), (json!(patch("free")), "free")] {
        let said = call("apply_patch", args);
        assert!(said.out.contains(&format!("A {file}")) && world.read(file) == "x\n", "{said:?}");
    }
    let said = call("exec_command", json!(json!({ "cmd": "echo hi" }).to_string()));
    assert!(said.out.contains("Output:\nhi"), "{said:?}");
    let said = call("exec_command", json!("echo hi"));
    assert!(said.code != 0 && said.out.contains("failed to parse function arguments"), "{said:?}");
}

/// Edge 9: a number means something only in the session that it was given in.
#[test]
fn numbers_of_another_session_are_unknown() {
    let world = World::new();
    let mut first = speaking(&world, "codex");
    let started = text(&mut first, "exec_command", json!({ "cmd": "sleep 100", "yield_time_ms": 250 }));
    assert!(started.contains("session ID 1"), "{started}");
    let mut second = speaking(&world, "codex");
    let unknown = text(&mut second, "write_stdin", json!({ "session_id": 1 }));
    assert!(unknown.starts_with("write_stdin failed: Unknown process id 1"), "{unknown}");
    for wrong in [json!(4_294_967_297_i64), json!(-1), json!("1")] {
        let refused = text(&mut first, "write_stdin", json!({ "session_id": wrong }));
        assert!(refused.contains("Unknown process id") || refused.contains("failed to parse"), "{refused}");
    }
}

/// Edge 13: paths in every form that models write are judged natively, and shown in the client's own form.
#[test]
fn paths_are_judged_in_whatever_form_they_come() {
    let world = World::new();
    let home = world.workspace().canonicalize().unwrap().display().to_string();
    let mut client = speaking(&world, "claude");
    for inside in [format!("{home}/hello.txt"), format!("file://{home}/hello.txt"), "./hello.txt".to_owned()] {
        assert_eq!(text(&mut client, "Read", json!({ "file_path": inside, "limit": 1 })), "1\thello", "{inside}");
    }
    for outside in ["/etc/passwd", "~/.ssh/id_rsa", "../home/x", r"C:\Users\x", "file:///etc/passwd"] {
        let result = client.call("Read", json!({ "file_path": outside }));
        assert_eq!(result["isError"], true, "{outside}: {result}");
    }
}

/// Edge 14: the mask of a secret is never written over the secret, whatever the tool is called.
#[test]
fn the_mask_of_a_secret_is_written_nowhere() {
    let world = World::new();
    let mask = "***REDACTED***";
    for (dialect, tool, args) in [
        ("claude", "Edit", json!({ "file_path": "hello.txt", "old_string": mask, "new_string": "x" })),
        ("claude", "Edit", json!({ "file_path": "hello.txt", "old_string": "hello", "new_string": mask })),
        ("claude", "Write", json!({ "file_path": "hello.txt", "content": mask })),
        (
            "claude",
            "MultiEdit",
            json!({ "file_path": "hello.txt", "edits": [{ "old_string": mask, "new_string": "x" }] }),
        ),
        (
            "codex",
            "apply_patch",
            json!({ "input": format!("*** Begin Patch\n*** Add File: n\n+{mask}\n*** End Patch\n") }),
        ),
        (
            "codex",
            "exec_command",
            json!({ "cmd": format!("apply_patch <<'E'\n*** Begin Patch\n*** Add File: n\n+{mask}\n*** End Patch\nE\n") }),
        ),
    ] {
        let mut client = speaking(&world, dialect);
        let said = text(&mut client, tool, args);
        assert!(said.contains("a secret that you weren't shown"), "{dialect} {tool}: {said}");
    }
    assert_eq!(world.read("hello.txt"), "hello\nworld\n");
    assert!(!world.workspace().join("n").exists());
}

/// Edge 15: what was cut is named by a handle that the tool `artifact` reads.
#[test]
fn what_was_cut_can_be_read_by_its_handle() {
    let world = World::new().file("big.txt", "0123456789 abcdefghij\n".repeat(16_000));
    let handle = regex::Regex::new("art_[0-9a-f]+").unwrap();
    for (dialect, tool, args) in [
        ("claude", "Bash", json!({ "command": "cat big.txt" })),
        ("claude-2.0", "Bash", json!({ "command": "cat big.txt" })),
        ("codex", "exec_command", json!({ "cmd": "cat big.txt" })),
    ] {
        let mut client = speaking(&world, dialect);
        let said = text(&mut client, tool, args);
        let id = handle.find(&said).unwrap_or_else(|| panic!("{dialect} names no artifact")).as_str().to_owned();
        assert!(!said.contains("/tmp/") && !said.contains(".local/state"), "{dialect} names a path");
        let whole = client.call("artifact", json!({ "id": id }));
        assert!(whole["content"][0]["text"].as_str().unwrap().starts_with("0123456789 abcdefghij\n"), "{dialect}");
    }
}

/// A native page holds only so much. Whatever a model asks for behind it is there all the same, and what isn't shown is said.
#[test]
fn what_is_behind_a_native_page_is_found() {
    let file = |world: World, number: usize| world.file(&format!("src/f{number:04}.txt"), format!("needle {number}\n"));
    let world = (0..1500).fold(World::new(), file);
    let home = world.workspace().canonicalize().unwrap().join("src").display().to_string();
    let mut claude = speaking(&world, "claude");
    let mut grep = |offset: usize, limit: usize| {
        let args = json!({ "pattern": "needle", "output_mode": "content", "offset": offset, "head_limit": limit });
        text(&mut claude, "Grep", args)
    };
    let page = "src/f1200.txt:1:needle 1200\nsrc/f1201.txt:1:needle 1201\n\n\
                [Showing results with pagination = limit: 2, offset: 1200]";
    assert_eq!(grep(1200, 2), page);
    let all = grep(0, 0);
    let shown = all.lines().filter(|line| line.contains(":1:needle")).count();
    assert!(all.ends_with(&format!("pagination = limit: {shown}]")), "the next page begins behind these: {shown}");
    assert!(grep(shown, 1).starts_with(&format!("src/f{shown:04}.txt:1:")));
    let listed = |dialect: &str, tool: &str, args: Value| text(&mut speaking(&world, dialect), tool, args);
    let entries = |offset: usize| json!({ "dir_path": home, "offset": offset, "limit": 1 });
    let entry = format!("Absolute path: {home}\nf1399.txt\nMore than 1 entries found");
    assert_eq!(listed("codex-2026-01", "list_dir", entries(1400)), entry);
    let behind = listed("codex-2026-01", "list_dir", entries(1501));
    assert!(behind.starts_with("offset exceeds directory entry count"), "{behind}");
    let files = listed("codex-2026-01", "grep_files", json!({ "pattern": "needle", "limit": 2000 }));
    assert_eq!(files.lines().count(), 1500);
    let directory = listed("opencode", "read", json!({ "filePath": home, "offset": 1400, "limit": 2 }));
    let end = "<entries>\nf1399.txt\nf1400.txt\n\n\
               (Showing 2 of 1500 entries. Use 'offset' parameter to read beyond entry 1402)\n</entries>";
    assert!(directory.ends_with(end), "{directory}");
    let names = json!({ "pattern": "needle", "names_only": true, "total_max_matches": 1500 });
    assert!(listed("gemini", "grep_search", names).starts_with("Found 1500 files"));
    assert!(listed("claude-2.0", "LS", json!({ "path": home })).starts_with("There are more files"));
    let found: Value = serde_json::from_str(&listed("coder", "glob", json!({ "pattern": "**/*.txt" }))).unwrap();
    assert_eq!(found["truncated"], true);
}
