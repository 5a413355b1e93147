//! The record as a user meets it: runs, audit, reindex, changes, undo.

use crate::world::{PROGRAM, World};
use serde_json::json;

#[test]
fn audit_names_the_first_bad_line() {
    type Damage = fn(Vec<String>) -> Vec<String>;
    let damages: [(&str, Damage); 4] = [
        ("line 2", |mut lines| {
            lines[1] = lines[1].replacen("read", "raed", 1);
            lines
        }),
        ("line 2", |mut lines| {
            lines.remove(1);
            lines
        }),
        ("lines 2 and 3", |mut lines| {
            lines.swap(1, 2);
            lines
        }),
        ("line 4", |mut lines| {
            lines.truncate(3);
            lines
        }),
    ];
    for (expected, damage) in damages {
        let world = World::new();
        world.call("read", json!({"path": "hello.txt"}));
        assert_eq!(world.run(&["audit", "verify"]).code, 0);
        let file = world.last_run().join("events.jsonl");
        let lines = std::fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect();
        std::fs::write(&file, damage(lines).join("\n") + "\n").unwrap();
        let said = world.run(&["audit", "verify"]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.out.to_lowercase().contains(expected), "{expected}: {said:?}");
    }
}

#[test]
fn runs_are_listed_shown_drawn_and_rebuilt() {
    let world = World::new();
    world.call("read", json!({"path": "hello.txt"}));
    world.run(&["call", "display", r#"{"content":"half way","level":"progress"}"#]);
    world.call("read", json!({"path": ".env"}));
    let list = world.run(&["--json", "runs", "list"]).list();
    assert_eq!(list.as_array().unwrap().len(), 3);
    let tree = world.run(&["runs", "tree"]);
    assert!(tree.out.contains("read ✗ sensitive_path") && tree.out.contains("deny by deny path .env"), "{tree:?}");
    let shown = world.run(&["runs", "show", list[1]["id"].as_str().unwrap()]);
    assert!(shown.out.contains("display") && shown.out.contains("ok"), "{shown:?}");
    assert_eq!(world.run(&["runs", "show", "run_nothing"]).code, 2);

    let calls = world.run(&["--json", "runs", "show", "last"]).json();
    for entry in std::fs::read_dir(world.workspace().join(".toolgate")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("index.db") {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(world.run(&["runs", "reindex"]).code, 0);
    assert_eq!(world.run(&["--json", "runs", "show", "last"]).json(), calls, "the files are the truth");
}

#[test]
fn many_processes_on_one_workspace_do_not_disturb_each_other() {
    let world = World::new();
    let first = world.call("list", json!({}));
    assert_eq!(first["ok"], json!(true));
    let run = world.last_run().file_name().unwrap().to_str().unwrap().to_owned();
    let children: Vec<_> = (0..12)
        .map(|n| {
            let mut command = world.command(PROGRAM);
            command.args(["call", "read", r#"{"path":"hello.txt"}"#]).stdout(std::process::Stdio::null());
            if n % 2 == 0 {
                command.args(["--run", &run]);
            }
            command.spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let said = world.run(&["audit", "verify"]);
    assert_eq!(said.code, 0, "{said:?}");
    let runs = said.out.lines().filter(|line| line.contains(" events, hash chain intact")).count();
    assert_eq!(runs, 7, "one shared run and six of their own: {said:?}");
    assert!(said.out.contains("list of runs: 7 runs, hash chain intact, signed"), "{said:?}");
    let shared = world.run(&["--json", "runs", "show", &run]).json();
    assert_eq!(shared["calls"].as_array().unwrap().len(), 7);
}

#[test]
fn a_change_can_be_seen_and_taken_back() {
    let world = World::new().file("src/a.rs", "fn a() {}\n");
    let edit = world.call("edit", json!({"path": "src/a.rs", "find": "a()", "replace": "b()"}));
    assert_eq!(edit["ok"], json!(true), "{edit}");
    let changes = world.run(&["changes"]);
    assert!(changes.out.contains("-fn a() {}") && changes.out.contains("+fn b() {}"), "{changes:?}");
    let call = edit["tool_call_id"].as_str().unwrap();
    let undo = world.run(&["undo", call]);
    assert_eq!((undo.code, undo.out.as_str()), (0, "Undone:\n  src/a.rs +1 -1\n"), "{undo:?}");
    assert_eq!(world.read("src/a.rs"), "fn a() {}\n");
    let again = world.run(&["undo", call]);
    let left = "Not undone:\n  src/a.rs (`src/a.rs` has changed since.)\n";
    assert_eq!((again.code, again.out.as_str()), (1, left), "what has moved on is left alone: {again:?}");
    let reply = world.run(&["--json", "undo", call]).json();
    assert_eq!(reply["error"]["details"]["refused"][0]["path"], json!("src/a.rs"), "{reply}");
    assert_eq!(world.run(&["undo", "--run", "last"]).code, 1, "the failed undo changed nothing");
    assert_eq!(world.run(&["undo", "call_none"]).code, 1);
}

#[test]
fn tools_never_see_the_record_or_change_the_policy() {
    let world = World::new().file("toolgate.toml", "preset = 'workspace'\n");
    world.call("list", json!({}));
    let list = world.call("list", json!({"recursive": true, "gitignore": false})).to_string();
    assert!(!list.contains(".toolgate"), "{list}");
    let run = world.last_run();
    let events = run.strip_prefix(world.workspace()).unwrap().join("events.jsonl");
    let read = world.call("read", json!({"path": events.to_str().unwrap()}));
    assert_eq!(read["error"]["code"], json!("sensitive_path"));
    let write = world.call("write", json!({"path": "toolgate.toml", "content": "preset = 'full'"}));
    assert_eq!(write["error"]["code"], json!("policy_denied"), "{write}");
}
