//! Calls that are stopped by Ctrl-C or by a client's cancellation: reply and record say what happened until then.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toolgate_testkit::wait_until;

use crate::mcp::client;
use crate::world::{PROGRAM, World};

const COMMAND: &str = "echo two > a.txt; echo said; touch started; sleep 1000";

/// Waits until the command has written its files.
fn wait_until_started(world: &World) {
    let layers = world.workspace().join(".toolgate/layers");
    let has_started = || {
        let entries = std::fs::read_dir(&layers).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.path().join("changes-0/started").exists())
    };
    wait_until("the command has started", has_started);
}

/// The newest run's record has the changes before the end of their call, which names them.
fn check_record(run: &Path) {
    let text = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    let (changing, failed) = (text.find("files.changing").unwrap(), text.find("tool_call.failed").unwrap());
    assert!(changing < failed, "{text}");
    let line = text.lines().find(|line| line.contains("tool_call.failed")).unwrap();
    let tail = &line[line.find("files_changed").unwrap()..];
    assert!(tail.contains("a.txt") && tail.contains("commands_run") && tail.contains("enforced"), "{line}");
}

/// `timeout` and `npm` pass a signal on that the terminal has sent already, so one interrupt may come as several signals.
#[test]
fn an_interrupted_call_says_what_it_did() {
    for signals in [&["-INT"][..], &["-INT", "-TERM"]] {
        interrupt(signals);
    }
}

fn interrupt(signals: &[&str]) {
    let world = World::new().file("a.txt", "one\n");
    let args = json!({ "command": COMMAND, "timeout_seconds": 300 }).to_string();
    let mut command = world.command(PROGRAM);
    command.args(["--json", "call", "--approve", "shell", &args]).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until_started(&world);
    let kill: Vec<String> = signals.iter().map(|signal| format!("kill {signal} {}", child.id())).collect();
    assert!(Command::new("sh").args(["-c", &kill.join(" && ")]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{signals:?}: {reply}");
    assert_eq!(reply["error"]["details"]["stdout"], json!("said\n"), "{reply}");
    assert_eq!(reply["artifacts"]["files_changed"], json!(["a.txt", "started"]), "{reply}");
    assert_eq!(reply["artifacts"]["commands_run"], json!([COMMAND]), "{reply}");
    assert_eq!(world.read("a.txt"), "two\n");
    check_record(&world.last_run());
}

#[test]
fn a_request_that_a_client_cancels_is_on_record_with_what_it_did() {
    let world = World::new().file("a.txt", "one\n");
    let mut server = client::start(&world, &["--preset", "full"], false, json!({}));
    server.initialize();
    let arguments = json!({ "command": COMMAND, "yield_ms": 600_000, "timeout_seconds": 600 });
    let id = server.begin("tools/call", json!({ "name": "shell", "arguments": arguments }));
    wait_until_started(&world);
    server.cancel(id);
    assert_eq!(server.end(), 0);
    check_record(&world.last_run());
}
