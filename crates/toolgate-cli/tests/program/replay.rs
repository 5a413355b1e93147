//! A run that is followed, exported, repeated and served from the record.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use serde_json::{Value, json};
use toolgate_testkit::wait_until;

use crate::world::{PROGRAM, Said, World};

/// A run of several calls, of which one is approved, one is refused, and one fails.
fn a_run(world: &World) -> String {
    let first = world.run(&["--json", "call", "write", r#"{"path":"new.txt","content":"one\n"}"#]);
    assert_eq!(first.code, 0, "{first:?}");
    let run = world.last_run().file_name().unwrap().to_str().unwrap().to_owned();
    let call = |more: &[&str]| world.run(&[&["call", "--run", &run], more].concat());
    call(&["edit", r#"{"path":"hello.txt","find":"world","replace":"moon"}"#]);
    call(&["read", r#"{"path":"hello.txt"}"#]);
    call(&["--approve", "delete", r#"{"path":"new.txt"}"#]);
    call(&["delete", r#"{"path":"hello.txt"}"#]);
    call(&["read", r#"{"path":".env"}"#]);
    call(&["read", r#"{"path":"missing.txt"}"#]);
    call(&["shell", r#"{"command":"cat hello.txt; date; pwd"}"#]);
    run
}

#[test]
fn a_run_repeats_itself_in_a_copy() {
    let world = World::new().file(".env", "TOKEN=1").file("hello.txt", "hello\nworld\n");
    let run = a_run(&world);
    world.call("write", json!({"path": "hello.txt", "content": "something else by now\n"}));
    let said = world.run(&["replay", &run, "--keep", "--all"]);
    assert_eq!(said.code, 0, "{said:?}");
    let lines: Vec<&str> = said.out.lines().filter(|line| line.starts_with(['=', '≠', '–'])).collect();
    assert_eq!(lines.len(), 8, "{said:?}");
    assert!(lines.iter().all(|line| line.starts_with('=')), "{said:?}");
    assert_eq!(world.read("hello.txt"), "something else by now\n", "the workspace is as it was");
    let copy = said.err.trim().strip_prefix("The copy is in ").unwrap().trim_end_matches('.').to_owned();
    let copy = std::path::Path::new(&copy);
    assert!(!copy.join(".env").exists(), "credentials are not copied");
    assert_eq!(std::fs::read_to_string(copy.join("hello.txt")).unwrap(), "hello\nmoon\n");
    std::fs::remove_dir_all(copy).unwrap();
}

#[test]
fn a_run_that_made_and_removed_directories_repeats_itself() {
    let world = World::new().file("old/deep/x", "x\n");
    let args = json!({ "command": "mkdir -p new/deep; echo y > new/deep/y; rm -r old" }).to_string();
    assert_eq!(world.run(&["call", "--approve", "shell", &args]).code, 0);
    let made = world.run(&["replay"]);
    assert_eq!((made.code, made.out.lines().last()), (0, Some("1 same, 0 different, 0 not repeated")), "{made:?}");
    std::fs::remove_dir_all(world.workspace().join("new")).unwrap();
    let gone = world.run(&["replay"]);
    assert_eq!(gone.code, 0, "whoever removed what it made: {gone:?}");
}

#[test]
fn the_first_difference_is_shown_and_ends_it() {
    let world = World::new();
    let run = a_run(&world);
    let said = world.run(&["--deny", "tool=edit", "replay", &run]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("≠ 2. edit") && said.out.contains("now: "), "{said:?}");
    assert!(said.out.contains("1 same, 1 different, 0 not repeated, 6 left"), "{said:?}");
    let json = world.run(&["--json", "--deny", "tool=edit", "replay", &run]).json();
    assert_eq!((&json["differ"], &json["calls"][1]["outcome"]), (&json!(1), &json!("differs")));
}

#[test]
fn a_client_is_answered_from_the_record() {
    let world = World::new();
    let run = a_run(&world);
    world.call("write", json!({"path": "hello.txt", "content": "changed"}));
    let mut command = world.command(PROGRAM);
    command.args(["replay", &run, "--serve"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let calls = [
        json!({"tool_call_id": "a", "name": "read", "args": {"path": "hello.txt"}}),
        json!({"tool_call_id": "b", "name": "read", "args": {"path": "else.txt"}}),
        json!({"tool_call_id": "c", "name": "read", "args": {"path": ".env"}}),
    ];
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    child.stdin.take().unwrap().write_all(format!("{lines}not json\n").as_bytes()).unwrap();
    let said = Said::from(child.wait_with_output().unwrap());
    let replies: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(replies[0]["payload"]["content"], "hello\nmoon\n");
    assert_eq!((&replies[0]["tool_call_id"], &replies[0]["ok"]), (&json!("a"), &json!(true)));
    let codes: Vec<&Value> = replies[1..].iter().map(|reply| &reply["error"]["code"]).collect();
    assert_eq!(codes, ["not_found", "sensitive_path", "invalid_args"]);
}

#[test]
fn a_run_is_followed_from_another_process_until_it_ends() {
    let world = World::new();
    world.call("list", json!({}));
    let before = world.last_run();
    let args = json!({ "command": "until ls | grep -q ^go; do sleep 0.05; done; echo done", "timeout_seconds": 300 });
    let mut worker = world.command(PROGRAM);
    worker.args(["call", "shell", &args.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut worker = worker.spawn().unwrap();
    // A run counts from its first event.
    let has_begun = || std::fs::read(world.last_run().join("events.jsonl")).is_ok_and(|lines| lines.contains(&b'\n'));
    wait_until("the run has begun", || world.last_run() != before && has_begun());
    let mut follower = world.command(PROGRAM).args(["runs", "tail", "-f"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap());
    let mut out = String::new();
    while !out.contains("shell allow") {
        assert_ne!(lines.read_line(&mut out).unwrap(), 0, "it ended before the run: {out}");
    }
    world.put(&world.workspace().join("go"), "");
    lines.read_to_string(&mut out).unwrap();
    assert!(worker.wait().unwrap().success());
    assert!(follower.wait().unwrap().success(), "{out}");
    let whats = ["run began", "shell allow", "✓", "run ended"];
    let found: Vec<usize> = whats.iter().map(|what| out.find(what).expect(what)).collect();
    assert!(found.is_sorted(), "{out}");
    let last = world.run(&["--json", "runs", "tail", "-n", "1"]).json();
    assert_eq!(last["kind"], "run.ended");
}

#[test]
fn a_run_is_exported_whole() {
    let world = World::new();
    let run = a_run(&world);
    let all = world.run(&["runs", "export", &run]).json();
    assert_eq!((&all["run"], &all["chain"]["verification"]["ok"]), (&json!(run), &json!(true)));
    let contents: Vec<&Value> = all["contents"].as_object().unwrap().values().map(|content| &content["text"]).collect();
    assert!(
        contents.contains(&&json!("hello\nmoon\n")) && contents.contains(&&json!("hello\nworld\n")),
        "{contents:?}"
    );
    let lean = world.run(&["runs", "export", &run, "--without-contents"]).json();
    assert_eq!(lean["contents"], json!({}));
}
