//! Sessions: tools, tokens and runs of their own, begun and ended by the owner.

use serde_json::{Value, json};

use crate::test_server::{ConsoleTestServer, OWNER};

#[tokio::test]
async fn a_session_has_tools_of_its_own() {
    let server = ConsoleTestServer::start();
    let (_, reader) = server.session(json!({ "id": "reader", "tools": ["read", "list"] })).await;
    let tools = server.get(&reader, "/v1/tools").await.json();
    let names: Vec<&str> = tools["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["list", "read"]);
    let refused = server.call(&reader, "write", json!({ "path": "x", "content": "" })).await;
    assert_eq!(refused["error"]["code"], "tool_not_allowed", "{refused}");
    let taken = server.post(OWNER, "/v1/sessions", &json!({ "id": "reader" })).await;
    assert_eq!(taken.problem(), (409, "session_taken".into()));
    let listed = server.get(OWNER, "/v1/sessions").await.json();
    assert_eq!((&listed["sessions"][0]["id"], listed["sessions"][0].get("token")), (&json!("reader"), None));
    let named = server.ask(Some(OWNER), "GET", "/v1/tools", &[("x-toolgate-session", "reader")], None).await;
    assert_eq!(named.json(), tools, "the owner may act in a session");
    let other = server.ask(Some(&reader), "GET", "/v1/tools", &[("x-toolgate-session", "http")], None).await;
    assert_eq!(other.status, 404, "a session may not act in another");
}

#[tokio::test]
async fn ending_a_session_cancels_its_calls_and_its_token() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({ "id": "short" })).await;
    let accepted = server.post(&token, "/v1/calls?wait=false", &json!({ "name": "hangs", "args": {} })).await;
    assert_eq!(accepted.status, 202);
    assert_eq!(server.delete(OWNER, "/v1/sessions/short").await.status, 204);
    let kinds: Vec<Value> = server.events(&session["run"]).await.iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(kinds.last(), Some(&json!("run.ended")), "{kinds:?}");
    assert!(!kinds.contains(&json!("tool_call.started")) || kinds.contains(&json!("tool_call.failed")), "{kinds:?}");
    assert_eq!(server.get(&token, "/v1/tools").await.status, 401, "the token is worth nothing");
    assert_eq!(server.delete(OWNER, "/v1/sessions/short").await.problem(), (404, "not_found".into()));
    server.session(json!({ "id": "short" })).await;
}

#[tokio::test]
async fn what_is_asked_of_a_session_is_checked() {
    let server = ConsoleTestServer::start();
    for body in
        [json!({ "id": "../x" }), json!({ "id": "" }), json!({ "wait_seconds": 999_999 }), json!({ "color": 1 })]
    {
        let answer = server.post(OWNER, "/v1/sessions", &body).await;
        assert_eq!(answer.problem(), (400, "invalid_request".into()), "{body}");
    }
    assert_eq!(server.post(OWNER, "/v1/sessions", &json!({ "id": "http" })).await.status, 409, "the owner's own");
}

#[tokio::test]
async fn a_session_is_read_and_answered_in_its_dialect() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({ "id": "spoken", "dialect": "claude" })).await;
    assert_eq!(session["dialect"], "claude");
    let tools = server.get(&token, "/v1/tools").await.json();
    let names: Vec<&str> = tools["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"Write") && !names.contains(&"write"), "{names:?}");
    let write = json!({ "file_path": "spoken.txt", "content": "new\n" });
    let made = server.call(&token, "Write", write).await;
    assert_eq!((&made["is_error"], &made["reply"]["ok"]), (&json!(false), &json!(true)), "{made}");
    assert!(made["text"].as_str().unwrap().starts_with("File created successfully at: "), "{made}");
    let wrong = server.call(&token, "Write", json!({ "path": "x" })).await;
    assert_eq!(
        (&wrong["is_error"], &wrong["reply"]["error"]["code"]),
        (&json!(true), &json!("invalid_args")),
        "{wrong}"
    );
    assert!(wrong["text"].as_str().unwrap().contains("InputValidationError"), "{wrong}");
    let id = made["reply"]["tool_call_id"].as_str().unwrap();
    let shown = server.get(&token, &format!("/v1/calls/{id}")).await.json();
    assert_eq!((&shown["shown"]["text"], &shown["reply"]["ok"]), (&made["text"], &json!(true)), "{shown}");
    let undone = server.post(&token, "/v1/undo", &json!({ "call": id })).await.json();
    assert!(undone.get("text").is_none(), "what isn't a model's call stays native: {undone}");
    for dialect in ["clod", "claude,claude-2.0", ""] {
        let answer = server.post(OWNER, "/v1/sessions", &json!({ "dialect": dialect })).await;
        assert_eq!(answer.problem(), (400, "invalid_request".into()), "{dialect}");
    }
}

#[tokio::test]
async fn a_session_learns_what_would_become_of_a_call_without_making_it() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({ "id": "asking", "dialect": "claude" })).await;
    let check = async |name: &str, args: Value| {
        let answer = server.post(&token, "/v1/check", &json!({ "name": name, "args": args })).await;
        assert_eq!(answer.status, 200);
        answer.json()
    };
    let write = json!({ "file_path": "checked.txt", "content": "x" });
    assert_eq!(check("Write", write.clone()).await, json!({ "decision": "allow" }));
    let outside = check("Read", json!({ "file_path": "/etc/hostname" })).await;
    assert_eq!((&outside["decision"], &outside["error"]["code"]), (&json!("deny"), &json!("path_outside_workspace")));
    let wrong = check("Write", json!({ "path": "x" })).await;
    assert_eq!((&wrong["decision"], &wrong["error"]["code"]), (&json!("deny"), &json!("invalid_args")));
    let unknown = check("write", json!({})).await;
    assert_eq!(unknown["error"]["code"], "unknown_tool", "its dialect has another name for it: {unknown}");
    let kinds: Vec<Value> = server.events(&session["run"]).await.iter().map(|event| event["kind"].clone()).collect();
    assert!(!kinds.iter().any(|kind| kind.as_str().unwrap().starts_with("tool_call")), "nothing ran: {kinds:?}");
    let made = server.call(&token, "Write", write).await;
    assert_eq!(made["reply"]["ok"], true, "{made}");
    let refused = server.ask(None, "POST", "/v1/check", &[], Some(&json!({ "name": "Read", "args": {} }))).await;
    assert_eq!(refused.status, 401);
}
