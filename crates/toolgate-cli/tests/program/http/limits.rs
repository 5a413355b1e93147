//! More than the server carries: each limit has its answer, and room comes back when somebody leaves.

use serde_json::{Value, json};
use toolgate_testkit::wait_until;

use super::client::{Client, Response};
use super::server::Server;
use crate::world::World;

/// A server that carries this much.
fn start(limits: &[&str]) -> Server {
    Server::start_in(World::new(), limits)
}

/// Refused because there is too much, with the time after which it is worth trying again.
fn assert_busy(response: &Response, status: u16, code: &str) {
    assert_eq!((response.status, response.code().as_str()), (status, code));
    assert_eq!(response.header("retry-after"), Some("1"), "{response:?}");
}

/// Begins a call that waits for approval, and waits until it does.
fn begin(server: &Server, token: &Value, id: &str) -> Client {
    let mut client = Client::new(server.address, token.as_str());
    let call = json!({ "name": "delete", "args": { "path": "hello.txt" }, "tool_call_id": id });
    client.send("POST", "/v1/calls", &[], Some(&call));
    wait_until("the call waits for approval", || {
        let waiting = server.owner().get("/v1/approvals").json();
        waiting["approvals"].as_array().unwrap().iter().any(|ask| ask["request"]["tool_call_id"] == id)
    });
    client
}

fn read(token: &Value, server: &Server) -> Response {
    let call = json!({ "name": "read", "args": { "path": "hello.txt" } });
    Client::new(server.address, token.as_str()).post("/v1/calls", &call)
}

#[test]
fn calls_of_one_session_and_of_all_together() {
    let server = start(&["--max-calls-per-session", "2", "--max-calls", "3"]);
    let wanted = json!({ "wait_seconds": 600 });
    let (ada, ben) = (server.session(&wanted).0["token"].clone(), server.session(&wanted).0["token"].clone());
    let mut first = begin(&server, &ada, "call-1");
    let _second = begin(&server, &ada, "call-2");
    assert_busy(&read(&ada, &server), 429, "too_many_calls");
    assert_eq!(read(&ben, &server).json()["ok"], true, "another session has its own");
    let _third = begin(&server, &ben, "call-3");
    let over = read(&ben, &server);
    assert_busy(&over, 429, "too_many_calls");
    assert!(over.json()["error"]["message"].as_str().unwrap().contains("3 calls running"), "{over:?}");
    assert_eq!(Client::new(server.address, ada.as_str()).delete("/v1/calls/call-1").status, 202);
    assert_eq!(first.receive().json()["error"]["code"], "cancelled");
    assert_eq!(read(&ada, &server).json()["ok"], true, "there is room again");
}

#[test]
fn sessions() {
    let server = start(&["--max-sessions", "2"]);
    let (first, _) = server.session(&json!({}));
    server.session(&json!({}));
    assert_busy(&server.owner().post("/v1/sessions", &json!({})), 429, "too_many_sessions");
    assert_eq!(server.owner().delete(&format!("/v1/sessions/{}", first["id"].as_str().unwrap())).status, 204);
    server.session(&json!({}));
}

#[test]
fn connections() {
    let server = start(&["--max-connections", "3"]);
    let mut held: Vec<Client> = (0..3).map(|_| server.stranger()).collect();
    for client in &mut held {
        assert_eq!(client.get("/health").status, 200, "it is held");
    }
    let mut over = server.stranger();
    assert_busy(&over.receive(), 503, "too_many_connections");
    held.pop().unwrap().leave();
    wait_until("there is room again", || {
        let mut client = server.stranger();
        client.send("GET", "/health", &[], None);
        client.receive_head().is_some_and(|response| response.status == 200)
    });
}

#[test]
fn bodies_whether_their_length_is_told_or_not() {
    let server = start(&["--max-body-bytes", "1000"]);
    let long = json!({ "name": "write", "args": { "path": "long.txt", "content": "x".repeat(2000) } });
    for path in ["/v1/calls", "/v1/sessions", "/mcp"] {
        assert_eq!(server.owner().post(path, &long).status, 413, "{path}");
        let chunked = [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")];
        let mut client = server.owner();
        client.send("POST", path, &chunked, None);
        client.raw(format!("{:x}\r\n{long}\r\n0\r\n\r\n", long.to_string().len()).as_bytes());
        assert_eq!(client.receive_head().unwrap().status, 413, "{path}");
    }
    assert!(!server.world.workspace().join("long.txt").exists());
    assert_eq!(server.owner().call("read", json!({ "path": "hello.txt" }))["ok"], true);
}

#[test]
fn requests_of_one_client_of_mcp() {
    let world = World::new();
    world.put(&world.user_config(), "[approvals]\nwait_seconds = 600\n");
    let server = Server::start_in(world, &["--max-calls-per-session", "2"]);
    let session = super::mcp::begin(&server);
    let call = |id: u64| {
        let params = json!({ "name": "delete", "arguments": { "path": "hello.txt" } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let mut held = Vec::new();
    for id in 1..=2 {
        let mut client = server.owner();
        client.send("POST", "/mcp", &session.headers(), Some(&call(id)));
        held.push(client);
        let waiting = || server.owner().get("/v1/approvals").json()["approvals"].as_array().unwrap().len();
        wait_until("the call waits for approval", || waiting() == held.len());
    }
    let over = server.owner().request("POST", "/mcp", &session.headers(), Some(&call(3))).message();
    assert_eq!(over["error"]["code"], -32000, "{over}");
    assert!(over["error"]["message"].as_str().unwrap().contains("No more than 2 requests can run at once"), "{over}");
}
