//! The agent's own questions at the desk: answered over HTTP or from another terminal.

use serde_json::{Value, json};

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
    loop {
        let waiting = server.owner().get("/v1/questions").json();
        let mut mine = waiting["questions"].as_array().unwrap().iter().filter(|open| open["session"] == session["id"]);
        if let Some(question) = mine.next() {
            return (session, client, question.clone());
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn path(question: &Value) -> String {
    format!("/v1/questions/{}", question["id"].as_str().unwrap())
}

#[test]
fn a_question_is_answered_over_http() {
    let server = Server::start();
    let (session, mut client, question) = asking(&server, &json!({ "wait_seconds": 600 }), false);
    assert_eq!(question["question"]["question"], "Which way?");
    assert_eq!(question["question"]["choices"][1]["label"], "right");
    let mut owner = server.owner();
    assert_eq!(owner.get("/v1/approvals").json()["approvals"], json!([]), "it is no approval");
    let approving = format!("/v1/approvals/{}", question["id"].as_str().unwrap());
    assert_eq!(owner.post(&approving, &json!({ "answer": "approve" })).status, 404);
    let refused = owner.post(&path(&question), &json!({ "answer": "straight on" }));
    assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"), "only what was offered");
    assert_eq!(owner.post(&path(&question), &json!({ "answer": "right" })).status, 204);
    let reply = client.receive().json();
    assert_eq!(reply["payload"], json!({ "answer": "right", "choice": 1 }), "{reply}");
    let events = server.events(session["run"].as_str().unwrap());
    assert!(events.iter().any(|event| event["by"] == "ada (http)"), "who answered is on record: {events:?}");
    assert_eq!(owner.post(&path(&question), &json!({ "answer": "left" })).status, 404, "it is off the desk");
}

#[test]
fn who_may_not_answer_an_approval_may_not_answer_a_question() {
    let server = Server::start();
    let (session, _client, question) = asking(&server, &json!({ "wait_seconds": 600 }), true);
    let mut same = Client::new(server.address, session["token"].as_str());
    assert_eq!(same.get("/v1/questions").json()["questions"][0]["id"], question["id"], "it sees its own");
    assert_eq!(same.post(&path(&question), &json!({ "answer": "left" })).status, 403);
    let (_, mut stranger) = server.session(&json!({ "may_answer": true }));
    assert_eq!(stranger.get("/v1/questions").json()["questions"], json!([]));
    assert_eq!(stranger.post(&path(&question), &json!({ "answer": "left" })).status, 404);
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

#[test]
fn without_a_wait_the_model_is_told_that_nobody_is_there() {
    let server = Server::start();
    let reply = server.owner().post("/v1/calls", &ask(true)).json();
    assert_eq!(reply["error"]["code"], "not_found", "{reply}");
}
