//! MCP behind the same door.

use serde_json::{Value, json};

use super::server::Server;

fn initialize() -> Value {
    let client = json!({ "name": "tester", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

const TAKES: (&str, &str) = ("Accept", "application/json, text/event-stream");

#[test]
fn a_client_with_the_owners_token_speaks_mcp_and_its_calls_are_on_record() {
    let server = Server::start();
    let mut client = server.owner();
    let hello = client.request("POST", "/mcp", &[TAKES], Some(&initialize()));
    assert_eq!(hello.status, 200, "{hello:?}");
    let session = hello.header("mcp-session-id").unwrap().to_owned();
    let headers = [TAKES, ("Mcp-Session-Id", session.as_str()), ("Mcp-Protocol-Version", "2025-11-25")];
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(client.request("POST", "/mcp", &headers, Some(&ready)).status, 202);
    let params = json!({ "name": "read", "arguments": { "path": "hello.txt" } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    let answer = client.request("POST", "/mcp", &headers, Some(&call));
    assert!(String::from_utf8_lossy(&answer.body).contains("hello"), "{answer:?}");
    let runs = client.get("/v1/runs").json();
    let is_mcp = |run: &&Value| run["front_end"] == "mcp" && run["calls"] == 1;
    assert!(runs["runs"].as_array().unwrap().iter().any(|run| is_mcp(&run)), "{runs}");
}

#[test]
fn nobody_else_comes_to_mcp() {
    let server = Server::start();
    assert_eq!(server.stranger().request("POST", "/mcp", &[TAKES], Some(&initialize())).status, 401);
    let foreign = [TAKES, ("Origin", "http://evil.example")];
    assert_eq!(server.owner().request("POST", "/mcp", &foreign, Some(&initialize())).status, 403);
    let (_, mut session) = server.session(&json!({ "tools": ["read"] }));
    let refused = session.request("POST", "/mcp", &[TAKES], Some(&initialize()));
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (403, "owner_only"),
        "it would go around the session's tools"
    );
}
