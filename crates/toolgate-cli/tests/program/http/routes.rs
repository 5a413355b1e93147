//! Routes with what only the program brings: the same replies as its other front ends, commands, the inbox.

use serde_json::{Value, json};

use super::server::Server;

#[test]
fn a_call_is_answered_with_the_same_reply_as_everywhere() {
    let server = Server::start();
    let mut client = server.owner();
    let reply = client.call("read", json!({ "path": "hello.txt" }));
    assert_eq!((reply["ok"].clone(), reply["payload"]["content"].clone()), (json!(true), json!("hello\nworld\n")));
    let local = server.world.call("read", json!({ "path": "hello.txt" }));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&reply), keys(&local));
    let refused = client.call("read", json!({ "path": ".env" }));
    assert_eq!(refused["error"]["code"], "sensitive_path");
    let unknown = client.call("raed", json!({}));
    assert_eq!(unknown["error"]["code"], "unknown_tool", "a call that fails is a reply all the same");
}

#[test]
fn what_a_command_writes_is_heard_while_it_runs() {
    let server = Server::start();
    let (session, mut client) = server.session(&json!({}));
    let path = format!("/v1/runs/{}/events", session["run"].as_str().unwrap());
    let mut listener = server.owner();
    listener.send("GET", &path, &[("Accept", "text/event-stream")], None);
    assert_eq!(listener.receive_head().unwrap().status, 200);
    let command = "echo half way there; sleep 61.9182";
    client.send("POST", "/v1/calls", &[], Some(&json!({ "name": "shell", "args": { "command": command } })));
    let mut seen = String::new();
    let mut hear = |words: &str| {
        while !seen.contains(words) {
            seen += &String::from_utf8(listener.chunk().expect("the stream goes on")).unwrap();
        }
        seen.clone()
    };
    let heard = hear("event: process.output\ndata: ");
    assert!(!heard.contains("tool_call.completed"), "{heard}");
    let piece = heard.split("event: process.output\ndata: ").nth(1).unwrap().lines().next().unwrap();
    let piece: Value = serde_json::from_str(piece).unwrap();
    assert_eq!((&piece["text"], &piece["run"]), (&json!("half way there\n"), &session["run"]), "{piece}");
    client.leave();
    hear("event: tool_call.failed");
    let recorded = server.events(session["run"].as_str().unwrap());
    assert!(recorded.iter().all(|event| event["kind"] != "process.output"), "it passes, and is never on record");
}

#[test]
fn the_owner_sees_the_inbox_and_nobody_else_does() {
    let server = Server::start();
    let added = server.world.run(&["--json", "inbox", "add", "write it down"]).json();
    let id = added["id"].as_str().unwrap();
    let mut owner = server.owner();
    let tasks = owner.get("/v1/inbox").json();
    assert_eq!((&tasks["tasks"][0]["id"], &tasks["tasks"][0]["state"]), (&json!(id), &json!("waiting")), "{tasks}");
    assert_eq!(owner.get(&format!("/v1/inbox/{id}")).json()["task"], "write it down");
    assert_eq!(server.world.run(&["inbox", "cancel", id]).code, 0);
    assert_eq!(owner.get("/v1/inbox").json()["tasks"], json!([]));
    assert_eq!(owner.get("/v1/inbox?all=true").json()["tasks"][0]["state"], "cancelled");
    let (_, mut session) = server.session(&json!({}));
    for path in ["/v1/inbox".to_owned(), format!("/v1/inbox/{id}")] {
        assert_eq!(session.get(&path).status, 403, "{path}");
    }
}
