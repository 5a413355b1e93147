//! Every route, as it is meant to be used.

use serde_json::{Value, json};

use super::server::Server;

#[test]
fn a_call_is_answered_with_the_same_reply_as_everywhere() {
    let server = Server::start();
    let mut client = server.owner();
    let reply = client.call("read", json!({ "path": "hello.txt" }));
    assert_eq!((reply["ok"].clone(), reply["payload"]["content"].clone()), (json!(true), json!("hello\nworld\n")));
    let local = server.world.call("read", json!({ "path": "hello.txt" }));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&reply), keys(&local));
    let refused = client.call("read", json!({ "path": ".env" }));
    assert_eq!(refused["error"]["code"], "sensitive_path");
    let unknown = client.call("raed", json!({}));
    assert_eq!(unknown["error"]["code"], "unknown_tool", "a call that fails is a reply all the same");
}

#[test]
fn what_is_no_call_is_a_problem_in_the_one_shape() {
    let server = Server::start();
    let mut client = server.owner();
    let table = [
        (client.request("POST", "/v1/calls", &[], Some(&json!("text"))), 400, "invalid_args"),
        (client.post("/v1/calls", &json!({ "args": {} })), 400, "invalid_args"),
        (client.post("/v1/calls", &json!([null, "list"])), 400, "invalid_args"),
        (client.post("/v1/sessions", &json!([null, null])), 400, "invalid_request"),
        (client.post("/v1/calls", &json!({ "name": "read", "extra": 1 })), 400, "invalid_args"),
        (client.post("/v1/calls?wait=perhaps", &json!({ "name": "list" })), 400, "invalid_request"),
        (client.post("/v1/calls", &json!({ "name": "list", "tool_call_id": "x".repeat(300) })), 400, "invalid_request"),
        (client.get("/v1/calls"), 405, "method_not_allowed"),
        (client.get("/v1/nothing"), 404, "not_found"),
        (client.get("/v1/runs/run_none"), 404, "not_found"),
        (client.get("/v1/runs/..%2F..%2Fetc"), 404, "not_found"),
        (client.get("/v1/runs/run_none/events"), 404, "not_found"),
        (client.get("/v1/runs?limit=0"), 400, "invalid_request"),
        (client.get("/v1/artifacts/art_none"), 404, "not_found"),
        (client.get("/v1/approvals/ask_none"), 404, "not_found"),
        (client.post("/v1/approvals/ask_none", &json!({ "answer": "approve" })), 404, "not_found"),
        (client.post("/v1/approvals/ask_none", &json!({ "answer": "perhaps" })), 400, "invalid_request"),
        (client.delete("/v1/sessions/none"), 404, "not_found"),
        (client.delete("/v1/calls/none"), 404, "not_found"),
        (client.post("/v1/sessions", &json!({ "id": "../x" })), 400, "invalid_request"),
        (client.post("/v1/sessions", &json!({ "wait_seconds": 999_999 })), 400, "invalid_request"),
        (client.get("/v1/changes?run=run_none"), 404, "not_found"),
        (client.get("/v1/inbox?limit=0"), 400, "invalid_request"),
        (client.get("/v1/inbox/task_none"), 404, "not_found"),
    ];
    for (response, status, code) in table {
        assert_eq!((response.status, response.code().as_str()), (status, code), "{response:?}");
        let error = &response.json()["error"];
        assert!(error["message"].is_string() && error["hint"].is_string(), "{error}");
    }
    client.raw(b"POST /v1/calls HTTP/1.1\r\nHost: ");
    client.raw(server.address.to_string().as_bytes());
    client.raw(
        format!(
            "\r\nAuthorization: Bearer {}\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{{}}",
            server.token
        )
        .as_bytes(),
    );
    let response = client.receive();
    assert_eq!((response.status, response.code().as_str()), (415, "unsupported_media_type"));
}

#[test]
fn runs_events_tree_tools_and_changes_are_told() {
    let server = Server::start();
    let (session, mut client) = server.session(&json!({}));
    let run = session["run"].as_str().unwrap();
    client.call("write", json!({ "path": "new.txt", "content": "one\n" }));
    let reply = client.call("edit", json!({ "path": "hello.txt", "find": "hello", "replace": "bye" }));
    assert_eq!(reply["ok"], true, "{reply}");

    let tools = client.get("/v1/tools").json();
    assert!(tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "read"), "{tools}");
    let runs = client.get("/v1/runs").json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "a session sees its own run alone: {runs}");
    assert_eq!((&runs["runs"][0]["calls"], &runs["runs"][0]["front_end"]), (&json!(2), &json!("http")));
    let shown = client.get(&format!("/v1/runs/{run}")).json();
    assert_eq!(shown["calls"][1]["tool"], "edit");
    let tree = client.get(&format!("/v1/runs/{run}/tree")).json();
    assert_eq!(tree["turns"][0]["calls"].as_array().unwrap().len(), 2, "{tree}");

    let first = client.get(&format!("/v1/runs/{run}/events?limit=2")).json();
    assert_eq!((first["events"].as_array().unwrap().len(), &first["next"]), (2, &json!(2)));
    let rest = client.get(&format!("/v1/runs/{run}/events?after=2")).json();
    assert_eq!((&rest["events"][0]["seq"], &rest["next"]), (&json!(3), &Value::Null));

    let changes = client.get("/v1/changes").json();
    assert_eq!(changes["changes"].as_array().unwrap().len(), 2, "{changes}");
    let call = changes["changes"][1]["call"].clone();
    assert_eq!(changes["changes"][1]["changes"][0]["path"], "hello.txt");
    let undone = client.post("/v1/undo", &json!({ "call": call })).json();
    assert_eq!(undone["payload"]["undone"], json!(["hello.txt"]), "{undone}");
    assert_eq!(server.world.read("hello.txt"), "hello\nworld\n");
}

#[test]
fn events_come_live_and_go_on_where_a_client_was_cut_off() {
    let server = Server::start();
    let (session, mut client) = server.session(&json!({}));
    let path = format!("/v1/runs/{}/events", session["run"].as_str().unwrap());
    let stream = |after: Option<&str>| {
        let mut listener = server.owner();
        let mut headers = vec![("Accept", "text/event-stream")];
        headers.extend(after.map(|after| ("Last-Event-ID", after)));
        listener.send("GET", &path, &headers, None);
        let head = listener.receive_head().unwrap();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        listener
    };
    let mut listener = stream(None);
    let next = |listener: &mut super::client::Client| String::from_utf8(listener.chunk().unwrap()).unwrap();
    assert!(next(&mut listener).starts_with("id: 1\nevent: run.started\ndata: {\"seq\":1,"));
    client.call("list", json!({}));
    let mut seen = String::new();
    while !seen.contains("event: tool_call.completed") {
        seen += &next(&mut listener);
    }
    assert!(seen.starts_with("id: 2\nevent: tool_call.started\n"), "{seen}");
    listener.leave();

    let mut listener = stream(Some("2"));
    assert!(next(&mut listener).starts_with("id: 3\n"), "it goes on behind the last one seen");
    assert_eq!(server.owner().delete(&format!("/v1/sessions/{}", session["id"].as_str().unwrap())).status, 204);
    assert!(next(&mut listener).contains("event: run.ended"));
    assert_eq!(listener.chunk(), None, "the stream ends with the run");
    assert_eq!(client.get("/v1/tools").status, 401, "the token of a session that ended opens nothing");
}

#[test]
fn what_a_command_writes_is_heard_while_it_runs() {
    let server = Server::start();
    let (session, mut client) = server.session(&json!({}));
    let path = format!("/v1/runs/{}/events", session["run"].as_str().unwrap());
    let mut listener = server.owner();
    listener.send("GET", &path, &[("Accept", "text/event-stream")], None);
    assert_eq!(listener.receive_head().unwrap().status, 200);
    let command = "echo half way there; sleep 61.9182";
    client.send("POST", "/v1/calls", &[], Some(&json!({ "name": "shell", "args": { "command": command } })));
    let mut seen = String::new();
    let mut hear = |words: &str| {
        while !seen.contains(words) {
            seen += &String::from_utf8(listener.chunk().expect("the stream goes on")).unwrap();
        }
        seen.clone()
    };
    let heard = hear("event: process.output\ndata: ");
    assert!(!heard.contains("tool_call.completed"), "{heard}");
    let piece = heard.split("event: process.output\ndata: ").nth(1).unwrap().lines().next().unwrap();
    let piece: Value = serde_json::from_str(piece).unwrap();
    assert_eq!((&piece["text"], &piece["run"]), (&json!("half way there\n"), &session["run"]), "{piece}");
    client.leave();
    hear("event: tool_call.failed");
    let recorded = server.events(session["run"].as_str().unwrap());
    assert!(recorded.iter().all(|event| event["kind"] != "process.output"), "it passes, and is never on record");
}

#[test]
fn artifacts_come_whole_or_in_part() {
    let long: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
    let server = Server::start_in(crate::world::World::new().file("long.txt", &long), &[]);
    let (session, mut client) = server.session(&json!({}));
    let reply = client.call("shell", json!({ "command": "cat long.txt" }));
    let artifact = reply["artifacts"]["refs"][0].clone();
    let path = format!("/v1/artifacts/{}", artifact["id"].as_str().unwrap());
    let whole = client.get(&path);
    assert_eq!(whole.status, 200, "{whole:?}");
    assert_eq!(String::from_utf8_lossy(&whole.body), long);
    let tag = whole.header("etag").unwrap().to_owned();
    let part = client.request("GET", &path, &[("Range", "bytes=5-10")], None);
    assert_eq!((part.status, part.body.as_slice()), (206, b"1\nline".as_slice()));
    assert_eq!(part.header("content-range"), Some(format!("bytes 5-10/{}", long.len()).as_str()));
    let outside = client.request("GET", &path, &[("Range", "bytes=9999999-")], None);
    assert_eq!((outside.status, outside.code().as_str()), (416, "outside_range"));
    assert_eq!(client.request("GET", &path, &[("If-None-Match", &tag)], None).status, 304);

    let (_, mut other) = server.session(&json!({}));
    assert_eq!(other.get(&path).status, 404, "another session's artifact doesn't exist");
    let run = session["run"].as_str().unwrap();
    assert_eq!(other.get(&format!("{path}?run={run}")).status, 404, "not even by its run");
    assert_eq!(server.owner().get(&format!("{path}?run={run}")).status, 200, "the owner sees all runs");
}

#[test]
fn a_call_that_is_not_waited_for_tells_its_end_in_the_events() {
    let server = Server::start();
    let (session, mut client) = server.session(&json!({}));
    for (path, headers) in [("/v1/calls?wait=false", vec![]), ("/v1/calls", vec![("Prefer", "respond-async")])] {
        let response = client.request("POST", path, &headers, Some(&json!({ "name": "list" })));
        assert_eq!(response.status, 202, "{response:?}");
        let accepted = response.json();
        assert_eq!(accepted["events"], json!(format!("/v1/runs/{}/events", session["run"].as_str().unwrap())));
        let is_end =
            |event: &Value| event["tool_call_id"] == accepted["tool_call_id"] && event["kind"] == "tool_call.completed";
        while !server.events(session["run"].as_str().unwrap()).iter().any(is_end) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[test]
fn sessions_have_tools_of_their_own() {
    let server = Server::start();
    let (_, mut reader) = server.session(&json!({ "id": "reader", "tools": ["read", "list"] }));
    let tools = reader.get("/v1/tools").json();
    let names: Vec<&str> = tools["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["list", "read"]);
    let refused = reader.call("write", json!({ "path": "x", "content": "" }));
    assert_eq!(refused["error"]["code"], "tool_not_allowed", "{refused}");
    let taken = server.owner().post("/v1/sessions", &json!({ "id": "reader" }));
    assert_eq!((taken.status, taken.code().as_str()), (409, "session_taken"));
    let listed = server.owner().get("/v1/sessions").json();
    assert_eq!((&listed["sessions"][0]["id"], listed["sessions"][0].get("token")), (&json!("reader"), None));
    let as_reader = server.owner().request("GET", "/v1/tools", &[("X-Toolgate-Session", "reader")], None).json();
    assert_eq!(as_reader, tools, "the owner may act in a session");
    for path in ["/v1/sessions", "/metrics"] {
        let refused = reader.get(path);
        assert_eq!((refused.status, refused.code().as_str()), (403, "owner_only"), "{path}");
    }
    assert_eq!(reader.request("GET", "/v1/tools", &[("X-Toolgate-Session", "http")], None).status, 404);
}

#[test]
fn health_needs_no_token_and_metrics_count() {
    let server = Server::start();
    let health = server.stranger().get("/health");
    assert_eq!((health.status, health.json()), (200, json!({ "ok": true })));
    let mut client = server.owner();
    client.call("list", json!({}));
    client.call("read", json!({ "path": "none" }));
    client.call("made-up", json!({}));
    server.stranger().get("/v1/tools");
    let metrics = String::from_utf8(client.get("/metrics").body).unwrap();
    for line in [
        "toolgate_calls_total{tool=\"list\",outcome=\"ok\"} 1",
        "toolgate_calls_total{tool=\"read\",outcome=\"not_found\"} 1",
        "toolgate_calls_total{tool=\"unknown\",outcome=\"unknown_tool\"} 1",
        "toolgate_requests_refused_total{code=\"unauthorized\"} 1",
        "# EOF",
    ] {
        assert!(metrics.contains(line), "{line} is missing in\n{metrics}");
    }
}

#[test]
fn the_description_names_every_route_and_no_other() {
    let server = Server::start();
    let mut client = server.owner();
    let document = client.get("/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in ["get", "post", "put", "delete", "patch"] {
            let path = path.replace("{id}", "some");
            let response = client.request(&method.to_uppercase(), &path, &[], None);
            let is_described = methods.get(method).is_some();
            assert_eq!(response.status != 405, is_described, "{method} {path}: {response:?}");
        }
    }
}

#[test]
fn the_owner_sees_the_inbox_and_nobody_else_does() {
    let server = Server::start();
    let added = server.world.run(&["--json", "inbox", "add", "write it down"]).json();
    let id = added["id"].as_str().unwrap();
    let mut owner = server.owner();
    let tasks = owner.get("/v1/inbox").json();
    assert_eq!((&tasks["tasks"][0]["id"], &tasks["tasks"][0]["state"]), (&json!(id), &json!("waiting")), "{tasks}");
    assert_eq!(owner.get(&format!("/v1/inbox/{id}")).json()["task"], "write it down");
    assert_eq!(server.world.run(&["inbox", "cancel", id]).code, 0);
    assert_eq!(owner.get("/v1/inbox").json()["tasks"], json!([]));
    assert_eq!(owner.get("/v1/inbox?all=true").json()["tasks"][0]["state"], "cancelled");
    let (_, mut session) = server.session(&json!({}));
    for path in ["/v1/inbox".to_owned(), format!("/v1/inbox/{id}")] {
        assert_eq!(session.get(&path).status, 403, "{path}");
    }
}
