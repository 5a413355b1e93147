//! The events of a run: pages, and a live stream that resumes.

use axum::body::BodyDataStream;
use futures_util::StreamExt;
use serde_json::{Value, json};
use toolgate_contract::{Clock, Event, EventPayload, ProcessOutput, Stream};
use toolgate_runtime::EventSink;

use crate::test_server::{ConsoleTestServer, OWNER};

/// The live stream of a run, from the event after this one on.
async fn follow(server: &ConsoleTestServer, run: &Value, after: Option<&str>) -> BodyDataStream {
    let path = format!("/v1/runs/{}/events", run.as_str().unwrap());
    let mut headers = vec![("accept", "text/event-stream")];
    headers.extend(after.map(|after| ("last-event-id", after)));
    let response = server.send(Some(OWNER), "GET", &path, &headers, None).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-store");
    response.into_body().into_data_stream()
}

async fn next(stream: &mut BodyDataStream) -> String {
    String::from_utf8(stream.next().await.expect("the stream goes on").unwrap().into()).unwrap()
}

/// Reads until these words have come.
async fn read_until(stream: &mut BodyDataStream, words: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(words) {
        seen += &next(stream).await;
    }
    seen
}

#[tokio::test]
async fn events_come_in_pages() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({})).await;
    server.call(&token, "list", json!({})).await;
    let path = format!("/v1/runs/{}/events", session["run"].as_str().unwrap());
    let first = server.get(&token, &format!("{path}?limit=2")).await.json();
    assert_eq!((first["events"].as_array().unwrap().len(), &first["next"]), (2, &json!(2)));
    let rest = server.get(&token, &format!("{path}?after=2")).await.json();
    assert_eq!((&rest["events"][0]["seq"], &rest["next"]), (&json!(3), &Value::Null));
    for wrong in ["?limit=0", "?limit=10001", "?after=x"] {
        assert_eq!(server.get(&token, &format!("{path}{wrong}")).await.problem(), (400, "invalid_request".into()));
    }
    let bad = server.ask(Some(&token), "GET", &path, &[("last-event-id", "x")], None).await;
    assert_eq!(bad.problem(), (400, "invalid_request".into()));
}

#[tokio::test]
async fn a_stream_is_live_resumes_after_an_event_and_ends_with_the_run() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({})).await;
    let mut stream = follow(&server, &session["run"], None).await;
    assert!(next(&mut stream).await.starts_with("id: 1\nevent: run.started\ndata: {\"seq\":1,"));
    server.call(&token, "list", json!({})).await;
    let seen = read_until(&mut stream, "event: tool_call.completed").await;
    assert!(seen.starts_with("id: 2\nevent: tool_call.started\n"), "{seen}");
    drop(stream);

    let mut stream = follow(&server, &session["run"], Some("2")).await;
    assert!(next(&mut stream).await.starts_with("id: 3\n"), "it resumes after the last event seen");
    assert_eq!(server.delete(OWNER, &format!("/v1/sessions/{}", session["id"].as_str().unwrap())).await.status, 204);
    read_until(&mut stream, "event: run.ended").await;
    assert!(stream.next().await.is_none(), "the stream ends with the run");
}

#[tokio::test]
async fn what_processes_write_is_streamed_without_an_id_and_never_recorded() {
    let server = ConsoleTestServer::start();
    let (session, _) = server.session(json!({})).await;
    let (other, _) = server.session(json!({})).await;
    let mut stream = follow(&server, &session["run"], Some("1")).await;
    for (run, text) in [(&other, "elsewhere\n"), (&session, "half way there\n")] {
        let output = ProcessOutput { process: "p1".into(), stream: Stream::Stdout, text: text.into(), skipped: 0 };
        server.workspace.live.live(&Event {
            time: server.workspace.clock.now(),
            run: run["run"].as_str().unwrap().into(),
            turn: None,
            trace_id: None,
            tool_call_id: None,
            payload: EventPayload::ProcessOutput(output),
        });
    }
    let event = next(&mut stream).await;
    let data = event.strip_prefix("event: process.output\ndata: ").unwrap_or_else(|| panic!("{event}"));
    assert_eq!(serde_json::from_str::<Value>(data).unwrap()["text"], "half way there\n");
    let recorded = server.events(&session["run"]).await;
    assert!(recorded.iter().all(|event| event["kind"] != "process.output"));
}

#[tokio::test]
async fn a_stream_ends_when_the_server_closes_with_everything_that_was_recorded() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({})).await;
    server.post(&token, "/v1/calls?wait=false", &json!({ "name": "hangs", "args": {} })).await;
    server.event(&session["run"], "tool_call.started").await;
    let mut stream = follow(&server, &session["run"], None).await;
    server.server.close().await;
    let seen = read_until(&mut stream, "event: run.ended").await;
    assert!(seen.contains("event: tool_call.failed"), "{seen}");
    assert!(stream.next().await.is_none());
}
