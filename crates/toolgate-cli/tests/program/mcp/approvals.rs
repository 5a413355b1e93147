//! Approvals through the client, with what only the program brings: diffs, hosts, and commands that repeat a call.

use serde_json::{Value, json};
use toolgate_testkit::mcp::{delete_call, edit_call, elicitation_answer, form_elicitation, tool_error_code};

use super::client;
use crate::world::World;

/// The kinds of the events of all runs.
fn trail(world: &World) -> Vec<String> {
    let kind = |line: &str| serde_json::from_str::<Value>(line).unwrap()["kind"].as_str().unwrap().to_owned();
    let runs = std::fs::read_dir(world.workspace().join(".toolgate/runs")).unwrap();
    let events = runs.map(|run| std::fs::read_to_string(run.unwrap().path().join("events.jsonl")).unwrap());
    events.flat_map(|events| events.lines().map(kind).collect::<Vec<_>>()).collect()
}

/// A world in which changes of files are asked about.
fn careful() -> World {
    let world = World::new();
    world.put(&world.user_config(), "[[rules]]\ndecision = \"ask\"\ntool = \"edit\"\n");
    world
}

#[test]
fn a_person_is_asked_with_what_the_terminal_shows() {
    let world = careful();
    let mut client = client::with_handshake(&world, form_elicitation());
    client.answers = vec![elicitation_answer("yes")];
    let done = client.ask("tools/call", edit_call());
    assert!(done.get("isError").is_none() && world.read("hello.txt") == "hello\nmoon\n", "{done}");
    let asked = client.heard.iter().find(|message| message["method"] == "elicitation/create").unwrap();
    let message = asked["params"]["message"].as_str().unwrap();
    for part in ["May this run? edit", "write hello.txt", "-world", "+moon", "this one call", "until this session ends"]
    {
        assert!(message.contains(part), "{part} is missing in {message}");
    }
    client.end();
    let trail = trail(&world);
    for kind in ["approval_required", "approval_granted", "tool_call.started", "tool_call.completed"] {
        assert!(trail.iter().any(|happened| happened == kind), "{kind} is missing in {trail:?}");
    }
}

#[test]
fn a_person_reads_why_more_rights_are_wanted() {
    let world = World::new();
    let mut client = client::with_handshake(&world, form_elicitation());
    client.answers = vec![elicitation_answer("no")];
    let args =
        json!({ "command": "true", "requested_permissions": ["unsandboxed"], "justification": "It needs the host." });
    let refused = client.ask("tools/call", json!({ "name": "shell", "arguments": args }));
    assert_eq!(tool_error_code(&refused), "approval_denied", "{refused}");
    let asked = client.heard.iter().find(|message| message["method"] == "elicitation/create").unwrap();
    assert!(asked["params"]["message"].as_str().unwrap().contains("It needs the host."), "{asked}");
}

#[test]
fn a_host_that_a_command_lacked_is_asked_for_through_the_client() {
    let world = World::new();
    let mut client = client::with_handshake(&world, form_elicitation());
    client.answers = vec![elicitation_answer("yes")];
    let command = r#"getent ahostsv4 "$(echo evil).example""#;
    let done = client.ask("tools/call", json!({ "name": "shell", "arguments": { "command": command } }));
    assert!(done["structuredContent"]["stdout"].as_str().unwrap().contains("198.18."), "{done}");
    let asked = client.heard.iter().find(|message| message["method"] == "elicitation/create").unwrap();
    let message = asked["params"]["message"].as_str().unwrap();
    for part in ["connect to evil.example:443", "Confinement stopped the call"] {
        assert!(message.contains(part), "{part} is missing in {message}");
    }
    client.end();
    assert!(trail(&world).iter().any(|kind| kind == "tool_call.widened"));
}

#[test]
fn a_client_that_cannot_ask_gets_a_command_that_repeats_the_call() {
    let world = World::new();
    for mut client in
        [client::with_handshake(&world, json!({})), client::stateless(&world, json!({ "elicitation": { "url": {} } }))]
    {
        let refused = client.ask("tools/call", delete_call());
        assert_eq!(tool_error_code(&refused), "approval_required");
        assert!(refused["content"][0]["text"].as_str().unwrap().contains("call --approve --run run_"), "{refused}");
    }
}
