//! What a server has to live through: nonsense, half messages, huge ones, ids used twice, and clients that vanish.

use std::process::Command;

use serde_json::{Value, json};

use super::client::Talk;
use crate::world::World;

/// Whether a process with these words in its command line is there.
fn is_running(words: &str) -> bool {
    Command::new("pgrep").args(["-f", words]).output().unwrap().status.success()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{what} never happened");
}

fn events(world: &World) -> String {
    std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap()
}

#[test]
fn nonsense_is_answered_and_survived() {
    let world = World::new();
    let mut talk = Talk::legacy(&world, json!({}));
    let huge = format!("\"{}\"\n", "x".repeat(20 * 1024 * 1024));
    for (what, bytes, code) in [
        ("no JSON", b"hello\n".as_slice(), -32700),
        ("no text", b"\xff\xfe\x00\n", -32700),
        ("half a message", b"{\"jsonrpc\":\"2.0\",\"id\":9,\n", -32700),
        ("a list", b"[{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}]\n", -32600),
        ("a huge line", huge.as_bytes(), -32600),
        ("deeply nested", format!("{}\n", "[".repeat(100_000)).as_bytes(), -32700),
    ] {
        talk.send_bytes(bytes);
        assert_eq!(talk.answer(&Value::Null)["error"]["code"], code, "{what}");
    }
    talk.send_bytes(b"\n\r\n   \n");
    assert_eq!(talk.fault("no/such/method", json!({}))["code"], -32601);
    let twice = b"{\"jsonrpc\":\"2.0\",\"id\":\"t\",\"method\":\"tools/call\",\"params\":{\"name\":\"read\",\
                  \"arguments\":{\"path\":\"a\",\"path\":\"b\"}}}\n";
    talk.send_bytes(twice);
    let refused = talk.answer(&json!("t"));
    assert!(refused["error"]["message"].as_str().unwrap().contains("stands twice"), "{refused}");
    let ten = "y".repeat(10 * 1024 * 1024);
    let wrote = talk.call("write", json!({ "path": "ten.txt", "content": ten }));
    assert!(wrote["content"].is_array(), "ten megabytes in a line are a message like any other");
    assert_eq!(talk.call("read", json!({ "path": "hello.txt" }))["structuredContent"]["total_lines"], 2);
}

#[test]
fn a_message_may_come_in_pieces() {
    let world = World::new();
    let mut talk = Talk::legacy(&world, json!({}));
    for piece in ["{\"jsonrpc\":\"2.0\",\"id\":", "\"p\",\"met", "hod\":\"ping\"}", "\n"] {
        talk.send_bytes(piece.as_bytes());
    }
    assert_eq!(talk.answer(&json!("p"))["result"], json!({}));
}

#[test]
fn before_the_handshake_only_ping_is_answered() {
    let world = World::new();
    let mut talk = Talk::started(&world, &[], false, json!({}));
    assert_eq!(talk.ask("ping", json!({})), json!({}));
    assert_eq!(talk.fault("tools/list", json!({}))["code"], -32602);
    talk.initialize();
    assert_eq!(talk.fault("initialize", json!({}))["code"], -32600);
    talk.ask("tools/list", json!({}));
}

#[test]
fn an_id_that_is_in_use_names_no_second_request_and_a_cancelled_command_ends() {
    let world = World::new();
    let mut talk = Talk::legacy(&world, json!({}));
    let sleep = format!("sleep 61.{}", std::process::id());
    let id = talk.begin("tools/call", json!({ "name": "shell", "arguments": { "command": sleep } }));
    wait_until("the command", || is_running(&sleep));
    talk.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
    assert_eq!(talk.answer(&json!(id))["error"]["code"], -32600);
    assert_eq!(talk.ask("ping", json!({})), json!({}), "others are answered meanwhile");
    talk.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    wait_until("the end of the command", || !is_running(&sleep));
    talk.end();
    assert!(events(&world).contains("\"cancelled\""));
}

#[test]
fn when_the_client_vanishes_its_commands_end_and_that_is_on_record() {
    let world = World::new();
    let mut talk = Talk::modern(&world, json!({}));
    let sleep = format!("sleep 62.{}", std::process::id());
    talk.begin("tools/call", json!({ "name": "shell", "arguments": { "command": sleep } }));
    wait_until("the command", || is_running(&sleep));
    assert_eq!(talk.end(), 0);
    assert!(!is_running(&sleep));
    let events = events(&world);
    assert_eq!(events.matches("tool_call.started").count(), events.matches("tool_call.failed").count());
    assert!(events.contains("run.ended"));
}
