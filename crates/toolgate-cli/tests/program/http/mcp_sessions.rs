//! MCP with the token of a session: the client acts in that session, with its rights and no others.

use serde_json::{Value, json};

use super::mcp::{alone, begin_on, code};
use super::server::Server;

#[test]
fn a_sessions_token_speaks_mcp_in_that_session() {
    let server = Server::start();
    let (session, mut client) = server.session(&json!({ "tools": ["read", "list"] }));
    let mcp = begin_on(&mut client);
    let listed = mcp.ask(&mut client, "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["list", "read"]);

    let read = mcp.call(&mut client, "read", json!({ "path": "hello.txt" }));
    assert_eq!(read["content"][0]["text"], "hello\nworld\n", "{read}");
    let refused = mcp.call(&mut client, "write", json!({ "path": "new.txt", "content": "x" }));
    assert_eq!(code(&refused), "tool_not_allowed", "{refused}");
    assert!(!server.world.workspace().join("new.txt").exists());

    // It is one session: the same run, which the same token reads over HTTP.
    let runs = client.get("/v1/runs").json();
    let runs: Vec<&Value> = runs["runs"].as_array().unwrap().iter().collect();
    assert_eq!((runs.len(), &runs[0]["id"], &runs[0]["calls"]), (1, &session["run"], &json!(2)), "{runs:?}");
    let call = read["_meta"]["toolgate/call"].as_str().unwrap();
    assert_eq!(client.get(&format!("/v1/calls/{call}")).json()["reply"]["ok"], true);
}

#[test]
fn a_session_does_not_see_the_mcp_sessions_of_others() {
    let server = Server::start();
    let (_, mut ada) = server.session(&json!({}));
    let (_, mut ben) = server.session(&json!({}));
    let of_ada = begin_on(&mut ada);
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping", "params": {} });
    assert_eq!(ada.request("POST", "/mcp", &of_ada.headers(), Some(&ping)).status, 200);
    assert_eq!(ben.request("POST", "/mcp", &of_ada.headers(), Some(&ping)).status, 404);
    assert_eq!(server.owner().request("POST", "/mcp", &of_ada.headers(), Some(&ping)).status, 404);
}

#[test]
fn a_session_that_may_not_answer_is_not_asked_through_its_client() {
    let server = Server::start();
    let delete = json!({ "name": "delete", "arguments": { "path": "hello.txt" } });
    let (_, mut client) = server.session(&json!({}));
    let refused = alone(&mut client, "ada", delete.clone());
    assert_eq!(code(&refused["result"]), "approval_required", "it would approve its own call: {refused}");
    assert!(server.world.workspace().join("hello.txt").exists());

    let (_, mut client) = server.session(&json!({ "may_answer": true }));
    let asked = alone(&mut client, "ada", delete.clone());
    let form = asked["result"]["inputRequests"]["approval"].to_string();
    assert!(form.contains("\"yes\"") && form.contains("\"session\""), "{asked}");
    assert!(!form.contains("always"), "always reaches the sessions of others: {form}");
    let mut again = delete;
    again["requestState"] = asked["result"]["requestState"].clone();
    again["inputResponses"] = json!({ "approval": { "action": "accept", "content": { "answer": "always" } } });
    let refused = alone(&mut client, "ada", again);
    assert_eq!(code(&refused["result"]), "approval_required", "{refused}");
    assert!(server.world.workspace().join("hello.txt").exists());
}

#[test]
fn calls_of_every_front_end_count_and_end_with_the_session() {
    let server = Server::start_in(crate::world::World::new(), &["--max-calls-per-session", "1"]);
    let (session, mut client) = server.session(&json!({ "id": "mine" }));
    let mcp = begin_on(&mut client);
    let params = json!({ "name": "shell", "arguments": { "command": "sleep 61.7281" } });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params });
    client.send("POST", "/mcp", &mcp.headers(), Some(&call));
    let run = session["run"].as_str().unwrap().to_owned();
    let of_kind = |kind: &str| server.events(&run).into_iter().find(|event| event["kind"] == kind);
    let started = loop {
        if let Some(started) = of_kind("tool_call.started") {
            break started;
        }
    };
    let token = session["token"].as_str();
    let mut second = super::client::Client::new(server.address, token);
    let refused = second.post("/v1/calls", &json!({ "name": "list" }));
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_calls"));
    let path = format!("/v1/calls/{}", started["tool_call_id"].as_str().unwrap());
    assert_eq!(second.get(&path).json()["state"], "running");

    assert_eq!(server.owner().delete("/v1/sessions/mine").status, 204);
    let ended = of_kind("tool_call.failed").expect("its end is on record once the session has ended");
    assert_eq!(ended["error"]["code"], "cancelled");
    let refused = second.request("POST", "/mcp", &mcp.headers(), Some(&call));
    assert_eq!(refused.status, 401);
}
