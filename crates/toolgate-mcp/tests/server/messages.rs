//! Messages of JSON-RPC: the handshake and both protocol versions, malformed input, duplicate ids, cancellation, and
//! clients that disconnect.

use serde_json::{Value, json};
use toolgate_mcp::McpOptions;
use toolgate_testkit::mcp::{McpClient, payload};

use crate::backend::{McpTestBackend, McpTestServer};
use crate::stdio_client::{connect, stateless, with_handshake};

#[test]
fn the_handshake_negotiates_a_version_and_happens_once() {
    let server = McpTestServer::start();
    let mut client = connect(&server, false, json!({}));
    assert_eq!(client.ask("ping", json!({})), json!({}), "before the handshake only `ping` is answered");
    assert_eq!(client.fault("tools/list", json!({}))["code"], -32602);
    let answer = client.initialize();
    assert_eq!(answer["protocolVersion"], "2025-11-25");
    assert_eq!(answer["serverInfo"]["name"], "toolgate");
    assert_eq!(
        answer["capabilities"],
        json!({ "tools": { "listChanged": true }, "resources": { "listChanged": true }, "logging": {} })
    );
    assert_eq!(client.fault("initialize", json!({}))["code"], -32600);
    client.ask("tools/list", json!({}));
    let mut old = connect(&server, false, json!({}));
    assert_eq!(old.ask("initialize", json!({ "protocolVersion": "2024-11-05" }))["protocolVersion"], "2024-11-05");
}

#[test]
fn without_a_handshake_every_request_brings_its_version() {
    let server = McpTestServer::start();
    let mut client = stateless(&server, json!({}));
    let found = client.ask("server/discover", json!({}));
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    assert_eq!(found["resultType"], "complete");
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolgate");
    assert_eq!(client.fault("ping", json!({}))["code"], -32601, "`ping` belongs to the older versions");
    let unknown = json!({ "io.modelcontextprotocol/protocolVersion": "2031-01-01" });
    client.send(&json!({ "jsonrpc": "2.0", "id": "v", "method": "tools/list", "params": { "_meta": unknown } }));
    let refused = client.answer(&json!("v"));
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["requested"]),
        (&json!(-32022), &json!("2031-01-01"))
    );
}

#[test]
fn malformed_messages_are_answered_and_survived() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, json!({}));
    let long = format!("\"{}\"\n", "x".repeat(20 * 1024 * 1024));
    for (what, bytes, code) in [
        ("no JSON", b"hello\n".as_slice(), -32700),
        ("no text", b"\xff\xfe\x00\n", -32700),
        ("half a message", b"{\"jsonrpc\":\"2.0\",\"id\":9,\n", -32700),
        ("a list", b"[{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}]\n", -32600),
        ("a line over the limit", long.as_bytes(), -32600),
        ("deeply nested", format!("{}\n", "[".repeat(100_000)).as_bytes(), -32700),
    ] {
        client.send_bytes(bytes);
        assert_eq!(client.answer(&Value::Null)["error"]["code"], code, "{what}");
    }
    client.send_bytes(b"\n\r\n   \n");
    assert_eq!(client.fault("no/such/method", json!({}))["code"], -32601);
    let duplicate = b"{\"jsonrpc\":\"2.0\",\"id\":\"t\",\"method\":\"tools/call\",\"params\":{\"name\":\"read\",\
                      \"arguments\":{\"path\":\"a\",\"path\":\"b\"}}}\n";
    client.send_bytes(duplicate);
    assert_eq!(client.answer(&json!("t"))["error"]["code"], -32600, "a duplicate key");
    let large = "y".repeat(10 * 1024 * 1024);
    let wrote = client.call("write", json!({ "path": "large.txt", "content": large }));
    assert!(wrote.get("isError").is_none(), "ten megabytes in a line are a message like any other");
    assert_eq!(payload(&client.call("read", json!({ "path": "hello.txt" })))["total_lines"], 2);
}

#[test]
fn a_message_may_come_in_pieces_and_unknown_notifications_are_ignored() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, json!({}));
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/unheard_of", "params": { "a": 1 } }));
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 999 } }));
    client.send(&json!({ "jsonrpc": "2.0", "id": 77, "result": {} }));
    for piece in ["{\"jsonrpc\":\"2.0\",\"id\":", "\"p\",\"met", "hod\":\"ping\"}", "\n"] {
        client.send_bytes(piece.as_bytes());
    }
    assert_eq!(client.answer(&json!("p"))["result"], json!({}));
    assert!(client.heard.is_empty(), "{:?}", client.heard);
}

/// A call that runs: its tool says so and then never ends.
fn hanging(client: &mut McpClient) -> u64 {
    let id = client.begin("tools/call", json!({ "name": "hangs", "arguments": {} }));
    client.hear_of("notifications/message");
    id
}

#[test]
fn a_cancelled_call_ends_on_record_and_gets_no_answer() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, json!({}));
    let id = hanging(&mut client);
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
    assert_eq!(client.answer(&json!(id))["error"]["code"], -32600, "the id of a running request");
    assert_eq!(client.ask("ping", json!({})), json!({}), "other requests are answered meanwhile");
    client.cancel(id);
    client.end();
    assert_eq!((server.count("tool_call.started"), server.count("tool_call.failed")), (1, 1));
}

#[test]
fn when_a_client_disconnects_its_calls_and_its_run_end_on_record() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, json!({}));
    hanging(&mut client);
    client.end();
    assert_eq!((server.count("tool_call.started"), server.count("tool_call.failed")), (1, 1));
    assert_eq!(server.count("run.ended"), 1);
}

#[test]
fn a_stopped_server_ends_every_call() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, json!({}));
    hanging(&mut client);
    server.server.stop();
    client.end();
    assert_eq!(server.count("tool_call.failed"), 1);
}

#[test]
fn requests_over_the_limit_are_refused() {
    let server = McpTestBackend::new("").serve(McpOptions { max_requests: 1, ..McpOptions::default() });
    let mut client = with_handshake(&server, json!({}));
    let id = hanging(&mut client);
    assert_eq!(client.fault("ping", json!({}))["code"], -32000);
    client.cancel(id);
    client.end();
}
