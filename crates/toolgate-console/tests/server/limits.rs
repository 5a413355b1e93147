//! Limits: each has its status and code, and there is room again when somebody leaves.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolgate_console::HttpLimits;
use toolgate_contract::CancellationToken;

use crate::test_server::{ConsoleTestServer, HttpAnswer, OWNER};

fn start(limits: HttpLimits) -> ConsoleTestServer {
    ConsoleTestServer::with("", limits)
}

fn assert_busy(answer: &HttpAnswer, status: u16, code: &str) {
    assert_eq!(answer.problem(), (status, code.to_owned()));
    assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
}

/// Begins a call that doesn't end by itself.
async fn hang(server: &ConsoleTestServer, token: &str, id: &str) -> HttpAnswer {
    let call = json!({ "name": "hangs", "args": {}, "tool_call_id": id });
    server.post(token, "/v1/calls?wait=false", &call).await
}

#[tokio::test]
async fn calls_are_limited_for_a_session_and_for_all() {
    let server = start(HttpLimits { calls: 3, calls_per_session: 2, ..HttpLimits::default() });
    let ((_, ada), (_, ben)) = (server.session(json!({})).await, server.session(json!({})).await);
    for (token, id) in [(&ada, "call-1"), (&ada, "call-2")] {
        assert_eq!(hang(&server, token, id).await.status, 202);
    }
    assert_busy(&hang(&server, &ada, "call-3").await, 429, "too_many_calls");
    assert_eq!(server.call(&ben, "list", json!({})).await["ok"], true, "another session has its own limit");
    assert_eq!(hang(&server, &ben, "call-4").await.status, 202);
    let over = hang(&server, &ben, "call-5").await;
    assert_busy(&over, 429, "too_many_calls");
    assert!(over.json()["error"]["message"].as_str().unwrap().contains("3 calls running"), "{over:?}");
    assert_eq!(server.delete(&ada, "/v1/calls/call-1").await.status, 202);
    while server.post(&ada, "/v1/calls", &json!({ "name": "list" })).await.status != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn sessions_are_limited() {
    let server = start(HttpLimits { sessions: 2, ..HttpLimits::default() });
    let (first, _) = server.session(json!({})).await;
    server.session(json!({})).await;
    assert_busy(&server.post(OWNER, "/v1/sessions", &json!({})).await, 429, "too_many_sessions");
    assert_eq!(server.delete(OWNER, &format!("/v1/sessions/{}", first["id"].as_str().unwrap())).await.status, 204);
    server.session(json!({})).await;
}

#[tokio::test]
async fn bodies_are_limited() {
    let server = start(HttpLimits { body_bytes: 1000, ..HttpLimits::default() });
    let long = json!({ "name": "write", "args": { "path": "long.txt", "content": "x".repeat(2000) } });
    for path in ["/v1/calls", "/v1/sessions", "/v1/undo"] {
        assert_eq!(server.post(OWNER, path, &long).await.problem(), (413, "body_too_large".into()), "{path}");
        let told = [("content-length", "2000")];
        assert_eq!(server.ask(Some(OWNER), "POST", path, &told, Some(&long)).await.status, 413, "{path}");
    }
    assert!(!server.workspace.path().join("long.txt").exists());
}

#[tokio::test]
async fn a_server_that_stops_takes_no_more_calls() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({})).await;
    hang(&server, &token, "call-1").await;
    server.server.close().await;
    assert_busy(&hang(&server, &token, "call-2").await, 503, "stopping");
    let kinds: Vec<_> = server.events(&session["run"]).await.iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(kinds.last(), Some(&json!("run.ended")), "{kinds:?}");
}

/// Sends a request and returns what comes first.
async fn health(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1:8731\r\n\r\n").await.unwrap();
    first_bytes(stream).await
}

async fn first_bytes(stream: &mut TcpStream) -> String {
    let mut bytes = [0; 4096];
    let count = stream.read(&mut bytes).await.unwrap_or(0);
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

#[tokio::test]
async fn connections_are_limited_and_malformed_bytes_are_recorded() {
    let server = start(HttpLimits { connections: 1, ..HttpLimits::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, ConsoleTestServer { workspace, server, router }) = (CancellationToken::new(), server);
    let serving = tokio::spawn(server.serve(listener, stop.clone()));
    let mut first = TcpStream::connect(address).await.unwrap();
    assert!(health(&mut first).await.starts_with("HTTP/1.1 200 "));
    let mut second = TcpStream::connect(address).await.unwrap();
    let refused = first_bytes(&mut second).await;
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after: 1"), "{refused}");
    drop(first);
    loop {
        let mut third = TcpStream::connect(address).await.unwrap();
        third.write_all(b"GET / HTTP/9.9\r\n\r\n").await.unwrap();
        let answer = first_bytes(&mut third).await;
        if !answer.starts_with("HTTP/1.1 503 ") {
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
            break;
        }
    }
    stop.cancel();
    serving.await.unwrap();
    let request = axum::http::Request::get("/v1/runs?session=http")
        .header("host", "127.0.0.1:8731")
        .header("authorization", format!("Bearer {OWNER}"))
        .body(axum::body::Body::empty())
        .unwrap();
    assert_eq!(tower::ServiceExt::oneshot(router, request).await.unwrap().status(), 200);
    let state = &workspace.state;
    let runs = toolgate_journal::list_runs(state.path()).unwrap();
    let recorded = runs.iter().flat_map(|run| toolgate_journal::read_events(&state.run_dir(run).unwrap()).unwrap());
    assert!(recorded.map(|event| event.unwrap().line).any(|line| line.contains("\"malformed\"")));
}
