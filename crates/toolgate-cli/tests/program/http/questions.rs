//! The agent's own questions, answered from another terminal.

use serde_json::{Value, json};
use toolgate_testkit::wait_for;

use super::client::Client;
use super::server::Server;

fn ask(free_text: bool) -> Value {
    let choices = json!([{ "label": "left" }, { "label": "right" }]);
    json!({ "name": "ask", "args": { "question": "Which way?", "choices": choices, "free_text": free_text } })
}

/// A session whose call asks, and its question once it waits.
fn asking(server: &Server, wanted: &Value, free_text: bool) -> (Value, Client, Value) {
    let (session, mut client) = server.session(wanted);
    client.send("POST", "/v1/calls", &[], Some(&ask(free_text)));
    let question = wait_for("the question waits for an answer", || {
        let waiting = server.owner().get("/v1/questions").json();
        waiting["questions"].as_array().unwrap().iter().find(|open| open["session"] == session["id"]).cloned()
    });
    (session, client, question)
}

#[test]
fn a_question_is_answered_from_another_terminal() {
    let server = Server::start();
    let (_, mut client, question) = asking(&server, &json!({ "wait_seconds": 600 }), true);
    let (world, id) = (&server.world, question["id"].as_str().unwrap());
    let listed = world.run(&["approvals", "list"]);
    assert!(listed.out.contains(id) && listed.out.contains("Which way?"), "{listed:?}");
    let shown = world.run(&["approvals", "show"]);
    assert!(shown.err.contains("Which way?") && shown.err.contains("[2] right"), "{shown:?}");
    let wrong = world.run(&["approvals", "approve", id]);
    assert_ne!(wrong.code, 0);
    assert!(wrong.err.contains("toolgate approvals answer"), "{wrong:?}");
    let said = world.run(&["approvals", "answer", "last", "straight on"]);
    assert!(said.code == 0 && said.out.starts_with("Answered ask_"), "{said:?}");
    assert_eq!(client.receive().json()["payload"], json!({ "answer": "straight on" }));
}
