//! The HTTP endpoint: sessions of their own, statuses, event streams, and requests that are refused.

use axum::Router;
use futures_util::StreamExt;
use serde_json::{Value, json};
use toolgate_mcp::{McpOptions, service};
use toolgate_runtime::Principal;
use toolgate_testkit::mcp::payload;
use tower::ServiceExt;

use crate::backend::{McpTestBackend, McpTestServer};
use crate::http_client::{in_session, initialize, message, request, send, stateless_call};

fn endpoint() -> (McpTestServer, Router) {
    let server = McpTestServer::start();
    let router = service(server.server.clone());
    (server, router)
}

#[tokio::test]
async fn each_session_has_a_run_of_its_own_and_ends() {
    let (server, router) = endpoint();
    let (ada, ben) = (initialize(&router, json!({})).await, initialize(&router, json!({})).await);
    assert_ne!(ada, ben);
    let read = json!({ "name": "read", "arguments": { "path": "hello.txt" } });
    for session in [&ada, &ben] {
        let answer = in_session(&router, session, "tools/call", read.clone()).await;
        assert_eq!(payload(&answer.body()["result"])["total_lines"], 2, "{answer:?}");
    }
    assert_eq!(server.count("run.started"), 3, "one of the workspace, and one for each session");
    let delete = request("DELETE", &[("mcp-session-id", &ada)], String::new());
    assert_eq!(send(&router, delete).await.status, 204);
    assert_eq!(in_session(&router, &ada, "tools/list", json!({})).await.status, 404);
    assert_eq!(in_session(&router, &ben, "tools/list", json!({})).await.status, 200);
    for (method, status) in [("POST", 400), ("GET", 405), ("PUT", 405), ("DELETE", 405)] {
        let answer = send(&router, request(method, &[], message("tools/list", &json!({})))).await;
        assert_eq!(answer.status, status, "{method} without a session");
    }
}

#[tokio::test]
async fn notifications_and_answers_are_accepted_in_a_session() {
    let (_server, router) = endpoint();
    let session = initialize(&router, json!({})).await;
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let answer = json!({ "jsonrpc": "2.0", "id": 9, "result": {} }).to_string();
    for (body, headers, status) in [
        (&initialized, vec![("mcp-session-id", session.as_str())], 202),
        (&initialized, vec![], 202),
        (&initialized, vec![("mcp-session-id", "nobody's")], 404),
        (&answer, vec![("mcp-session-id", session.as_str())], 202),
        (&answer, vec![], 400),
    ] {
        assert_eq!(send(&router, request("POST", &headers, body.clone())).await.status, status, "{body} {headers:?}");
    }
    let malformed = send(&router, request("POST", &[], "{".into())).await;
    assert_eq!((malformed.status, &malformed.body()["error"]["code"]), (400, &json!(-32700)));
}

#[tokio::test]
async fn other_hosts_origins_and_kinds_of_body_are_refused() {
    let (_server, router) = endpoint();
    let body = message("initialize", &json!({ "protocolVersion": "2025-11-25" }));
    for (headers, status) in [
        (vec![("host", "evil.example.com")], 403),
        (vec![("origin", "https://evil.example.com")], 403),
        (vec![("origin", "null")], 403),
        (vec![("content-type", "text/plain")], 415),
        (vec![("origin", "http://localhost:3000")], 200),
    ] {
        assert_eq!(send(&router, request("POST", &headers, body.clone())).await.status, status, "{headers:?}");
    }
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused() {
    let server = McpTestBackend::new("").serve(McpOptions { max_message_bytes: 100, ..McpOptions::default() });
    let router = service(server.server.clone());
    let body = message("ping", &json!({ "x": "y".repeat(100) }));
    assert_eq!(send(&router, request("POST", &[], body)).await.status, 413);
}

#[tokio::test]
async fn behind_another_server_a_request_needs_its_principal() {
    let server = McpTestBackend::new("").serve(McpOptions { is_preauthenticated: true, ..McpOptions::default() });
    let router = service(server.server.clone());
    let body = message("initialize", &json!({ "protocolVersion": "2025-11-25" }));
    // The outer server has checked the host already.
    let stranger = request("POST", &[("host", "gate.example:8731")], body.clone());
    assert_eq!(send(&router, stranger).await.status, 403);
    let mut owner = request("POST", &[("host", "gate.example:8731")], body);
    owner.extensions_mut().insert(Principal { name: "owner".into(), session: None });
    let answer = send(&router, owner).await;
    assert_eq!(answer.status, 200);
    let mut other =
        request("POST", &[("mcp-session-id", answer.header("mcp-session-id").unwrap())], message("ping", &json!({})));
    other.extensions_mut().insert(Principal { name: "somebody else".into(), session: None });
    assert_eq!(send(&router, other).await.status, 404, "a session belongs to its principal");
}

#[tokio::test]
async fn the_body_decides_and_headers_have_to_agree() {
    let (_server, router) = endpoint();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = message("tools/call", &json!({ "name": "list", "arguments": {}, "_meta": meta }));
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/call");
    for (headers, code) in [
        (vec![version, method, ("mcp-name", "list")], None),
        (vec![version, method, ("mcp-name", "=?base64?bGlzdA==?=")], None),
        (vec![version, method, ("mcp-name", "read")], Some(-32020)),
        (vec![version, ("mcp-method", "ping"), ("mcp-name", "list")], Some(-32020)),
        (vec![version, method], Some(-32020)),
        (vec![("mcp-protocol-version", "2025-11-25"), method, ("mcp-name", "list")], Some(-32020)),
    ] {
        let answer = send(&router, request("POST", &headers, body.clone())).await;
        assert_eq!(answer.body()["error"]["code"].as_i64(), code, "{headers:?}");
        assert_eq!(answer.status, if code.is_some() { 400 } else { 200 }, "{headers:?}");
    }
    let unknown = json!({ "_meta": meta });
    let headers = [version, ("mcp-method", "no/such/method")];
    let answer = send(&router, request("POST", &headers, message("no/such/method", &unknown))).await;
    assert_eq!((answer.status, &answer.body()["error"]["code"]), (404, &json!(-32601)));
}

#[tokio::test]
async fn an_answer_with_messages_before_it_is_an_event_stream() {
    let (_server, router) = endpoint();
    let call = json!({ "arguments": { "content": "half way", "level": "info" }, "_meta": { "progressToken": 7 } });
    let answer = send(&router, stateless_call("display", call)).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("cache-control"), Some("no-cache, no-transform"));
    let progress = json!({ "progressToken": 7, "progress": 1, "message": "half way" });
    assert_eq!(answer.messages[0]["params"], progress, "{answer:?}");
    assert_eq!(answer.body()["result"]["resultType"], "complete", "{answer:?}");
}

#[tokio::test]
async fn a_question_reaches_the_client_in_the_stream_and_its_answer_comes_in_a_request() {
    let (server, router) = endpoint();
    let session = initialize(&router, json!({ "elicitation": {} })).await;
    let params = json!({ "name": "delete", "arguments": { "path": "hello.txt" } });
    let call = request("POST", &[("mcp-session-id", &session)], message("tools/call", &params));
    let mut stream = router.clone().oneshot(call).await.unwrap().into_body().into_data_stream();
    let asked: Value = event(&stream.next().await.unwrap().unwrap());
    assert_eq!(asked["method"], "elicitation/create");
    let yes = json!({ "action": "accept", "content": { "answer": "yes" } });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": yes }).to_string();
    assert_eq!(send(&router, request("POST", &[("mcp-session-id", &session)], answer)).await.status, 202);
    let done = event(&stream.next().await.unwrap().unwrap());
    assert!(done["result"].get("isError").is_none(), "{done}");
    assert!(!server.backend.workspace.path().join("hello.txt").exists());
}

/// The message in one event.
fn event(bytes: &[u8]) -> Value {
    let text = std::str::from_utf8(bytes).unwrap();
    let data = text.strip_prefix("event: message\ndata: ").unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(data.trim_end()).unwrap()
}

#[tokio::test]
async fn disconnecting_cancels_the_request() {
    let (server, router) = endpoint();
    let call = stateless_call("hangs", json!({ "arguments": {}, "_meta": { "progressToken": 1 } }));
    let mut stream = router.oneshot(call).await.unwrap().into_body().into_data_stream();
    assert_eq!(event(&stream.next().await.unwrap().unwrap())["method"], "notifications/progress");
    drop(stream);
    while server.count("tool_call.failed") == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn messages_that_belong_to_no_request_come_in_a_stream_of_their_own() {
    let (server, router) = endpoint();
    let session = initialize(&router, json!({})).await;
    let get = |accept: &str| request("GET", &[("mcp-session-id", &session), ("accept", accept)], String::new());
    assert_eq!(send(&router, get("application/json")).await.status, 406);
    let mut stream = router.clone().oneshot(get("text/event-stream")).await.unwrap().into_body().into_data_stream();
    server.server.tools_changed();
    let told = event(&stream.next().await.unwrap().unwrap());
    assert_eq!(told["method"], "notifications/tools/list_changed");
    server.server.stop();
    assert!(stream.next().await.is_none(), "the stream ends with the server");
}
