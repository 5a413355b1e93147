//! The agent's own questions over HTTP.

use serde_json::{Value, json};

use crate::test_server::{ConsoleTestServer, HttpAnswer, OWNER};

fn ask(free_text: bool) -> Value {
    let choices = json!([{ "label": "left" }, { "label": "right" }]);
    json!({ "name": "ask", "args": { "question": "Which way?", "choices": choices, "free_text": free_text } })
}

/// A call that asks, in a new session that waits: the session, its token, and the response to come.
async fn asking(server: &ConsoleTestServer, free_text: bool) -> (Value, String, tokio::task::JoinHandle<HttpAnswer>) {
    let (session, token) = server.session(json!({ "wait_seconds": 600 })).await;
    let pending = server.spawn(&token, "/v1/calls", &ask(free_text));
    (session, token, pending)
}

#[tokio::test]
async fn a_question_is_answered_and_who_answered_is_recorded() {
    let server = ConsoleTestServer::start();
    let (session, _, pending) = asking(&server, false).await;
    let question = server.waiting(OWNER, "questions").await;
    let id = question["id"].as_str().unwrap();
    assert_eq!(question["question"]["question"], "Which way?");
    assert_eq!(question["question"]["choices"][1]["label"], "right");
    assert_eq!(server.get(OWNER, "/v1/approvals").await.json()["approvals"], json!([]), "it is no approval");
    let approve = server.post(OWNER, &format!("/v1/approvals/{id}"), &json!({ "answer": "approve" })).await;
    assert_eq!(approve.status, 404);
    let path = format!("/v1/questions/{id}");
    let refused = server.post(OWNER, &path, &json!({ "answer": "straight on" })).await;
    assert_eq!(refused.problem(), (400, "invalid_request".into()), "only what was offered");
    assert_eq!(server.post(OWNER, &path, &json!({ "answer": "right" })).await.status, 204);
    let reply = pending.await.unwrap().json();
    assert_eq!(reply["payload"], json!({ "answer": "right", "choice": 1 }), "{reply}");
    let events = server.events(&session["run"]).await;
    assert!(events.iter().any(|event| event["by"] == "ada (http)"), "{events:?}");
    assert_eq!(server.post(OWNER, &path, &json!({ "answer": "left" })).await.status, 404, "it no longer waits");
}

#[tokio::test]
async fn a_session_that_may_not_answer_approvals_may_not_answer_questions() {
    let server = ConsoleTestServer::start();
    let (_, token, _pending) = asking(&server, true).await;
    let question = server.waiting(&token, "questions").await;
    let path = format!("/v1/questions/{}", question["id"].as_str().unwrap());
    assert_eq!(server.post(&token, &path, &json!({ "answer": "left" })).await.status, 403);
    let (_, stranger) = server.session(json!({ "may_answer": true })).await;
    assert_eq!(server.get(&stranger, "/v1/questions").await.json()["questions"], json!([]));
    assert_eq!(server.post(&stranger, &path, &json!({ "answer": "left" })).await.status, 404);
}

#[tokio::test]
async fn without_a_wait_the_model_is_told_that_nobody_is_there() {
    let server = ConsoleTestServer::start();
    let reply = server.post(OWNER, "/v1/calls", &ask(true)).await.json();
    assert_eq!(reply["error"]["code"], "no_answer", "{reply}");
}
