//! Commands that end when their call is cancelled or their client vanishes.

use std::process::Command;

use serde_json::json;

use super::client;
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
fn an_id_that_is_in_use_names_no_second_request_and_a_cancelled_command_ends() {
    let world = World::new();
    let mut client = client::with_handshake(&world, json!({}));
    let sleep = format!("sleep 61.{}", std::process::id());
    let id = client.begin("tools/call", json!({ "name": "shell", "arguments": { "command": sleep } }));
    wait_until("the command", || is_running(&sleep));
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
    assert_eq!(client.answer(&json!(id))["error"]["code"], -32600);
    assert_eq!(client.ask("ping", json!({})), json!({}), "others are answered meanwhile");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    wait_until("the end of the command", || !is_running(&sleep));
    client.end();
    assert!(events(&world).contains("\"cancelled\""));
}

#[test]
fn when_the_client_vanishes_its_commands_end_and_that_is_on_record() {
    let world = World::new();
    let mut client = client::stateless(&world, json!({}));
    let sleep = format!("sleep 62.{}", std::process::id());
    client.begin("tools/call", json!({ "name": "shell", "arguments": { "command": sleep } }));
    wait_until("the command", || is_running(&sleep));
    assert_eq!(client.end(), 0);
    assert!(!is_running(&sleep));
    let events = events(&world);
    assert_eq!(events.matches("tool_call.started").count(), events.matches("tool_call.failed").count());
    assert!(events.contains("run.ended"));
}
