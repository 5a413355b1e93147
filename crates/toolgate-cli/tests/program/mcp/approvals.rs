//! Approvals through the client: what the person sees, what each answer does, and what becomes of a state that isn't good.

use serde_json::{Value, json};

use super::client::Talk;
use super::with;
use crate::world::World;

fn forms() -> Value {
    json!({ "elicitation": {} })
}

fn says(answer: &str) -> Value {
    json!({ "action": "accept", "content": { "answer": answer } })
}

fn delete() -> Value {
    json!({ "name": "delete", "arguments": { "path": "hello.txt" } })
}

fn error_code(result: &Value) -> &str {
    result["_meta"]["toolgate/error"]["code"].as_str().unwrap_or_default()
}

/// The kinds of the events of all runs.
fn trail(world: &World) -> Vec<String> {
    let kind = |line: &str| serde_json::from_str::<Value>(line).unwrap()["kind"].as_str().unwrap().to_owned();
    let runs = std::fs::read_dir(world.workspace().join(".toolgate/runs")).unwrap();
    let events = runs.map(|run| std::fs::read_to_string(run.unwrap().path().join("events.jsonl")).unwrap());
    events.flat_map(|events| events.lines().map(kind).collect::<Vec<_>>()).collect()
}

/// How many states were refused, by the record.
fn refusals(world: &World) -> usize {
    trail(world).iter().filter(|kind| *kind == "request.refused").count()
}

/// A world in which changes of files are asked about.
fn careful() -> World {
    let world = World::new();
    world.put(&world.user_config(), "[[rules]]\ndecision = \"ask\"\ntool = \"edit\"\n");
    world
}

fn edit() -> Value {
    json!({ "name": "edit", "arguments": { "path": "hello.txt", "find": "world", "replace": "moon" } })
}

#[test]
fn a_person_is_asked_with_what_the_terminal_shows() {
    let world = careful();
    let mut talk = Talk::legacy(&world, forms());
    talk.answers = vec![says("yes")];
    let done = talk.ask("tools/call", edit());
    assert!(done.get("isError").is_none() && world.read("hello.txt") == "hello\nmoon\n", "{done}");
    let asked = talk.heard.iter().find(|message| message["method"] == "elicitation/create").unwrap();
    let message = asked["params"]["message"].as_str().unwrap();
    for part in ["May this run? edit", "write hello.txt", "-world", "+moon", "this one call", "until this session ends"]
    {
        assert!(message.contains(part), "{part} is missing in {message}");
    }
    talk.end();
    let trail = trail(&world);
    for kind in ["approval_required", "approval_granted", "tool_call.started", "tool_call.completed"] {
        assert!(trail.iter().any(|happened| happened == kind), "{kind} is missing in {trail:?}");
    }
}

#[test]
fn a_host_that_a_command_lacked_is_asked_for_through_the_client() {
    let world = World::new();
    let mut talk = Talk::legacy(&world, forms());
    talk.answers = vec![says("yes")];
    let command = r#"getent ahostsv4 "$(echo evil).example""#;
    let done = talk.ask("tools/call", json!({ "name": "shell", "arguments": { "command": command } }));
    assert!(done["structuredContent"]["stdout"].as_str().unwrap().contains("198.18."), "{done}");
    let asked = talk.heard.iter().find(|message| message["method"] == "elicitation/create").unwrap();
    let message = asked["params"]["message"].as_str().unwrap();
    for part in ["connect to evil.example:443", "Confinement stopped the call"] {
        assert!(message.contains(part), "{part} is missing in {message}");
    }
    talk.end();
    assert!(trail(&world).iter().any(|kind| kind == "tool_call.widened"));
}

#[test]
fn every_answer_has_its_end() {
    for (answer, code) in [
        (says("no"), "approval_denied"),
        (json!({ "action": "decline" }), "approval_denied"),
        (json!({ "action": "cancel" }), "approval_required"),
        (says("whatever"), "approval_required"),
    ] {
        let world = World::new();
        let mut talk = Talk::legacy(&world, forms());
        talk.answers = vec![answer.clone()];
        assert_eq!(error_code(&talk.ask("tools/call", delete())), code, "{answer}");
        assert_eq!(world.read("hello.txt"), "hello\nworld\n");
    }
}

#[test]
fn a_client_that_cannot_ask_gets_a_command_that_repeats_the_call() {
    let world = World::new();
    for mut talk in [Talk::legacy(&world, json!({})), Talk::modern(&world, json!({ "elicitation": { "url": {} } }))] {
        let refused = talk.ask("tools/call", delete());
        assert_eq!(error_code(&refused), "approval_required");
        assert!(refused["content"][0]["text"].as_str().unwrap().contains("call --approve --run run_"), "{refused}");
    }
}

#[test]
fn a_yes_for_the_run_is_remembered_by_its_client_alone() {
    let world = World::new().file("b.txt", "b\n");
    let mut talk = Talk::legacy(&world, forms());
    talk.answers = vec![says("run")];
    talk.ask("tools/call", delete());
    std::fs::write(world.workspace().join("hello.txt"), "again").unwrap();
    assert!(talk.ask("tools/call", delete()).get("isError").is_none(), "nobody is asked a second time");
    std::fs::write(world.workspace().join("hello.txt"), "again").unwrap();
    let mut other = Talk::legacy(&world, json!({}));
    assert_eq!(error_code(&other.ask("tools/call", delete())), "approval_required");
}

#[test]
fn a_question_is_withdrawn_when_the_call_is_cancelled() {
    let world = World::new();
    let mut talk = Talk::legacy(&world, forms());
    let id = talk.begin("tools/call", delete());
    let asked = talk.listen("elicitation/create");
    talk.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    let withdrawn = talk.listen("notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    // An answer that comes too late changes nothing.
    talk.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": says("yes") }));
    talk.ask("ping", json!({}));
    assert_eq!(world.read("hello.txt"), "hello\nworld\n");
}

#[test]
fn without_a_handshake_the_question_is_part_of_the_result() {
    let world = careful();
    let mut talk = Talk::modern(&world, forms());
    let first = talk.ask("tools/call", edit());
    assert_eq!(first["resultType"], "input_required");
    let question = &first["inputRequests"]["approval"];
    assert_eq!(question["method"], "elicitation/create");
    assert!(question["params"]["message"].as_str().unwrap().contains("+moon"));
    assert_eq!(world.read("hello.txt"), "hello\nworld\n", "nothing happens before the answer");
    let again = with(edit(), "requestState", first["requestState"].clone());
    let again = with(again, "inputResponses", json!({ "approval": says("yes") }));
    let done = talk.ask("tools/call", again.clone());
    assert_eq!(done["resultType"], "complete");
    assert!(done.get("isError").is_none() && world.read("hello.txt") == "hello\nmoon\n", "{done}");
    let replayed = talk.fault("tools/call", again);
    assert!(replayed["message"].as_str().unwrap().contains("used before"), "{replayed}");
    talk.end();
    assert_eq!(refusals(&world), 1, "that is on record");
}

#[test]
fn a_state_is_good_for_its_own_call_in_its_own_session() {
    let world = World::new().file("b.txt", "b\n");
    let mut talk = Talk::modern(&world, forms());
    let state = talk.ask("tools/call", delete())["requestState"].as_str().unwrap().to_owned();
    let answered = |call: Value, state: &str| {
        with(with(call, "requestState", json!(state)), "inputResponses", json!({ "approval": says("yes") }))
    };
    let other = json!({ "name": "delete", "arguments": { "path": "b.txt" } });
    let altered = format!("{state}x");
    let mut stranger = Talk::modern(&world, forms());
    for (what, refused) in [
        ("altered", talk.fault("tools/call", answered(delete(), &altered))),
        ("for another call", talk.fault("tools/call", answered(other, &state))),
        ("of another session", stranger.fault("tools/call", answered(delete(), &state))),
        ("not even text", talk.fault("tools/call", with(delete(), "requestState", json!(7)))),
    ] {
        assert_eq!(refused["code"], -32602, "{what}");
        assert!(refused["message"].as_str().unwrap().contains("refused"), "{what}: {refused}");
    }
    assert!(world.workspace().join("b.txt").exists() && world.workspace().join("hello.txt").exists());
    talk.end();
    stranger.end();
    assert_eq!(refusals(&world), 4, "each is on record");
}

#[test]
fn an_answer_that_is_missing_is_no_answer() {
    let world = World::new();
    let mut talk = Talk::modern(&world, forms());
    let state = talk.ask("tools/call", delete())["requestState"].clone();
    let done = talk.ask("tools/call", with(delete(), "requestState", state));
    assert_eq!(error_code(&done), "approval_required");
    assert_eq!(world.read("hello.txt"), "hello\nworld\n");
}
