//! Approvals across processes: another terminal, HTTP, the call's own front end; the first answer counts.

use std::io::Read;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use toolgate_testkit::wait_for;

use super::client::Client;
use super::server::Server;
use crate::world::{PROGRAM, Said, World};

/// A server that asks before it edits.
fn start() -> Server {
    Server::start_in(World::new(), &["--ask", "tool=edit"])
}

/// A call that asks, from a session that waits.
fn asking(server: &Server, wanted: &Value) -> (Value, Client) {
    let (session, mut client) = server.session(wanted);
    let call = json!({ "name": "edit", "args": { "path": "hello.txt", "find": "hello", "replace": "bye" } });
    client.send("POST", "/v1/calls", &[], Some(&call));
    (session, client)
}

/// Waits until something waits.
fn waiting(client: &mut Client) -> Value {
    wait_for("a call waits for approval", || client.get("/v1/approvals").json()["approvals"].get(0).cloned())
}

fn answer(client: &mut Client, approval: &Value, answer: &Value) -> u16 {
    client.post(&format!("/v1/approvals/{}", approval["id"].as_str().unwrap()), answer).status
}

#[test]
fn a_waiting_call_is_approved_over_http_and_runs() {
    let server = start();
    let (session, mut client) = asking(&server, &json!({ "wait_seconds": 600 }));
    let mut owner = server.owner();
    let approval = waiting(&mut owner);
    assert_eq!((&approval["session"], &approval["run"]), (&session["id"], &session["run"]));
    assert_eq!(approval["request"]["tool"], "edit");
    assert!(approval["request"]["preview"].as_str().unwrap().contains("-hello\n+bye\n"), "{approval}");
    assert!(approval["expires"].is_string(), "{approval}");
    let scopes: Vec<&Value> = approval["request"]["scopes"].as_array().unwrap().iter().map(|o| &o["scope"]).collect();
    assert_eq!(scopes[..3], ["call", "run", "session"]);
    let shown = owner.get(&format!("/v1/approvals/{}", approval["id"].as_str().unwrap())).json();
    assert_eq!(shown, approval);
    assert_eq!(answer(&mut owner, &approval, &json!({ "answer": "approve", "scope": "run" })), 204);
    let reply = client.receive().json();
    assert_eq!(reply["ok"], true, "{reply}");
    assert_eq!(server.world.read("hello.txt"), "bye\nworld\n");
    assert_eq!(answer(&mut owner, &approval, &json!({ "answer": "deny" })), 404, "it is no longer in the queue");
    let events = server.events(session["run"].as_str().unwrap());
    let granted = events.iter().find(|event| event["kind"] == "approval_granted").unwrap();
    assert_eq!((&granted["scope"], &granted["by"]), (&json!("run"), &json!("ada (http)")));
}

#[test]
fn another_terminal_answers_a_call_that_waits() {
    let server = start();
    let (session, mut client) = asking(&server, &json!({ "wait_seconds": 600 }));
    let approval = waiting(&mut server.owner());
    let world = &server.world;
    let listed = world.run(&["approvals"]);
    assert!(
        listed.out.contains(approval["id"].as_str().unwrap()) && listed.out.contains("write hello.txt"),
        "{listed:?}"
    );
    let json = world.run(&["--json", "approvals", "list"]).list();
    assert_eq!(json[0]["session"], session["id"]);
    let shown = world.run(&["approvals", "show"]);
    for words in ["May this run?", "-hello", "+bye", "[y] yes", "[s] session", "this one call"] {
        assert!(shown.err.contains(words), "{words} is missing: {shown:?}");
    }
    let said = world.run(&["approvals", "approve", "last", "--scope", "session"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.starts_with("Approved ask_"), "{said:?}");
    assert_eq!(client.receive().json()["ok"], true);
    let late = world.run(&["approvals", "deny", "last"]);
    assert_ne!(late.code, 0);
    assert!(late.err.contains("No entry of the approval queue"), "{late:?}");
}

#[test]
fn without_a_wait_nobody_is_waited_for() {
    let server = start();
    let (_, mut client) = asking(&server, &json!({}));
    let reply = client.receive().json();
    assert_eq!(reply["error"]["code"], "approval_required");
    assert!(reply["error"]["details"]["replay"].as_str().unwrap().contains("--approve"), "{reply}");
    assert_eq!(server.owner().get("/v1/approvals").json()["approvals"], json!([]));
}

/// A call from the shell, with nobody at its terminal, that waits in the approval queue.
fn call_that_waits(world: &World) -> Child {
    world.put(&world.user_config(), "[approvals]\nwait_seconds = 600\n");
    let args = ["--json", "call", "delete", r#"{"path":"hello.txt"}"#];
    world.command(PROGRAM).args(args).stdout(Stdio::piped()).spawn().unwrap()
}

fn wait_for_ask(world: &World) -> Value {
    wait_for("a call waits for approval", || world.run(&["--json", "approvals"]).list().get(0).cloned())
}

#[test]
fn one_process_asks_and_another_answers() {
    let world = World::new();
    let mut call = call_that_waits(&world);
    let ask = wait_for_ask(&world);
    assert_eq!(ask["session"], "cli");
    let said = world.run(&["--json", "approvals", "approve", ask["id"].as_str().unwrap()]);
    assert_eq!(said.json()["answer"], json!({ "answer": "granted", "scope": "call", "by": "ada" }), "{said:?}");
    let mut out = String::new();
    call.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(call.wait().unwrap().success(), "{out}");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["ok"], true);
}

#[test]
fn a_process_that_is_killed_leaves_nothing_in_the_queue() {
    let world = World::new();
    let mut call = call_that_waits(&world);
    let ask = wait_for_ask(&world);
    call.kill().unwrap();
    call.wait().unwrap();
    assert_eq!(world.run(&["--json", "approvals"]).list(), json!([]));
    let late: Said = world.run(&["approvals", "approve", ask["id"].as_str().unwrap()]);
    assert_ne!(late.code, 0, "{late:?}");
}

#[test]
fn the_approval_queue_is_out_of_reach_for_tools_and_commands() {
    let world = World::new();
    let mut call = call_that_waits(&world);
    let ask = wait_for_ask(&world);
    let file = format!(".toolgate/desk/{}.ask", ask["id"].as_str().unwrap());
    let read = world.call("read", json!({ "path": file }));
    assert_eq!(read["error"]["code"], "sensitive_path", "{read}");
    let forge = format!("echo yes > .toolgate/desk/{}.answer; ls .toolgate/desk; exit 0", ask["id"].as_str().unwrap());
    let said = world.run(&["sandbox", "--", "sh", "-c", &forge]);
    assert!(!said.out.contains(".ask"), "a command in the sandbox doesn't even see it: {said:?}");
    assert_eq!(wait_for_ask(&world), ask, "it still waits");
    call.kill().unwrap();
    call.wait().unwrap();
}
