//! Commands that end when their call is cancelled or their client vanishes.

use serde_json::json;
use toolgate_testkit::{processes_with, unique_sleep, wait_until};

use super::client;
use crate::world::World;

/// Whether a process sleeps for this long.
fn runs(marker: &str) -> bool {
    !processes_with(marker).is_empty()
}

fn events(world: &World) -> String {
    std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap()
}

#[test]
fn an_id_that_is_in_use_names_no_second_request_and_a_cancelled_command_ends() {
    let world = World::new();
    let mut client = client::with_handshake(&world, json!({}));
    let marker = unique_sleep();
    let command = format!("sleep {marker}");
    let id = client.begin("tools/call", json!({ "name": "shell", "arguments": { "command": command } }));
    wait_until("the command runs", || runs(&marker));
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
    assert_eq!(client.answer(&json!(id))["error"]["code"], -32600);
    assert_eq!(client.ask("ping", json!({})), json!({}), "others are answered meanwhile");
    client.cancel(id);
    wait_until("the command ends", || !runs(&marker));
    client.end();
    assert!(events(&world).contains("\"cancelled\""));
}

#[test]
fn when_the_client_vanishes_its_commands_end_and_that_is_on_record() {
    let world = World::new();
    let mut client = client::stateless(&world, json!({}));
    let marker = unique_sleep();
    let command = format!("sleep {marker}");
    client.begin("tools/call", json!({ "name": "shell", "arguments": { "command": command } }));
    wait_until("the command runs", || runs(&marker));
    assert_eq!(client.end(), 0);
    assert!(!runs(&marker));
    let events = events(&world);
    assert_eq!(events.matches("tool_call.started").count(), events.matches("tool_call.failed").count());
    assert!(events.contains("run.ended"));
}
