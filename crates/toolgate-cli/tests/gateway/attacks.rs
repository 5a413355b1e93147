//! Thirty attacks that were run against clients and gateways of MCP, each as it is met here: what the caller is told, and what is on record.
//! G19 to G21, on logins, are in `logins.rs`; G26 and G27, on requests and approvals of our own clients, are in `replays.rs`.

mod confinement;
mod definitions;
mod identity;
mod messages;
mod outgoing;
mod questions;
mod results;

use serde_json::{Value, json};
use toolgate_testkit::mcp::{McpClient, form_elicitation};

use crate::client;
use crate::servers::SERVER;
use crate::world::World;

/// The files of these tests.
const SOURCES: [&str; 9] = [
    include_str!("attacks/confinement.rs"),
    include_str!("attacks/definitions.rs"),
    include_str!("attacks/identity.rs"),
    include_str!("attacks/messages.rs"),
    include_str!("attacks/outgoing.rs"),
    include_str!("attacks/questions.rs"),
    include_str!("attacks/results.rs"),
    include_str!("logins.rs"),
    include_str!("replays.rs"),
];

#[test]
fn each_of_the_thirty_attacks_has_a_test() {
    let names: Vec<&str> = SOURCES
        .iter()
        .flat_map(|source| source.split("#[test]\nfn ").skip(1))
        .filter_map(|rest| rest.split('(').next())
        .collect();
    let missing: Vec<String> = (1..=30)
        .map(|number| format!("g{number:02}"))
        .filter(|attack| !names.iter().any(|name| name.split('_').any(|part| part == attack)))
        .collect();
    assert!(missing.is_empty(), "{missing:?} of {names:?}");
}

/// The events of the newest run.
pub(crate) fn events(world: &World) -> Vec<Value> {
    let text = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How the last call of a tool ended, on record: `completed`, or the code of its error.
pub(crate) fn recorded_end(world: &World, tool: &str) -> String {
    let events = events(world);
    let is_start = |event: &&Value| event["kind"] == "tool_call.started" && event["tool"] == tool;
    let started = events.iter().rev().find(is_start).unwrap_or_else(|| panic!("no call of {tool} is on record"));
    let id = &started["tool_call_id"];
    let is_end = |event: &&Value| {
        event["tool_call_id"] == *id
            && matches!(event["kind"].as_str(), Some("tool_call.completed" | "tool_call.failed"))
    };
    let ended = events.iter().find(is_end).unwrap_or_else(|| panic!("the call of {tool} has no end on record"));
    ended["error"]["code"].as_str().unwrap_or("completed").to_owned()
}

/// Everything that the newest run has on record.
fn record(world: &World) -> String {
    std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap()
}

fn connected(world: &World) -> McpClient {
    let mut client = client::start(world, &["--preset", "full"], false, form_elicitation());
    client.initialize();
    client
}

/// A workspace with the hostile server in one of its modes.
fn in_mode(mode: &str, settings: &str) -> World {
    let world = World::new();
    world.put(&world.workspace().join("server.py"), SERVER);
    let section = format!("command = ['python3', 'server.py', '{mode}']\ndirectory = 'workspace'\n{settings}\n");
    world.put(&world.user_config(), format!("[mcp.servers.trial]\n{section}"));
    world
}

fn add(client: &mut McpClient) -> Value {
    client.call("trial__add", json!({ "a": 1, "b": 2 }))
}
