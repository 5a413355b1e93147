//! G26 and G27: requests whose head says something else than their body, sessions of others, and approvals that are used for something
//! that nobody approved.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use toolgate_testkit::mcp::{elicitation_answer, form_elicitation, tool_error_code};

use crate::attacks::{events, recorded_end};
use crate::client;
use crate::servers::world;
use crate::world::{PROGRAM, World};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// `toolgate serve` over HTTP, until it is dropped.
struct HttpServer {
    child: Child,
    address: String,
    token: String,
}

impl HttpServer {
    fn start(world: &World) -> Self {
        let mut command = world.command(PROGRAM);
        command.args(["--json", "--preset", "full", "serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let address = ready["listening"].as_str().unwrap().split_once("://").unwrap().1.to_owned();
        let token = std::fs::read_to_string(ready["token_file"].as_str().unwrap()).unwrap().trim().to_owned();
        Self { child, address, token }
    }

    /// The status, the session's id and the body of the answer.
    fn post(&self, token: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Option<String>, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (path, body) = ("/mcp", body.to_string());
        let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{more}\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let session = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.to_owned())
        });
        (status, session, body.to_owned())
    }

    /// A session of its own, and the token for it.
    fn token_of_another(&self) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST /v1/sessions HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
            self.address, self.token
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let session: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
        session["token"].as_str().unwrap().to_owned()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn add_call() -> Value {
    let meta = json!({ VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let params = json!({ "name": "trial__add", "arguments": { "a": 1, "b": 2 }, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

/// The events of all runs of a workspace.
fn all_events(world: &World) -> Vec<Value> {
    let runs = std::fs::read_dir(world.last_run().parent().unwrap()).unwrap().flatten();
    let texts = runs.filter_map(|run| std::fs::read_to_string(run.path().join("events.jsonl")).ok());
    texts.flat_map(|text| text.lines().map(parsed).collect::<Vec<_>>()).collect()
}

/// How many calls of a tool are on record.
fn recorded_calls(world: &World, tool: &str) -> usize {
    let events = all_events(world);
    events.iter().filter(|event| event["kind"] == "tool_call.started" && event["tool"] == tool).count()
}

/// How many requests are on record that were refused for this reason.
fn recorded_refusals(world: &World, code: &str) -> usize {
    let events = all_events(world);
    events.iter().filter(|event| event["kind"] == "request.refused" && event["code"] == code).count()
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_default()
}

#[test]
fn g26_the_body_decides_and_a_head_that_says_otherwise_is_refused() {
    let world = world("");
    let server = HttpServer::start(&world);
    let (version, method) = (("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"));
    for name in ["read", "trial__look", "trial__ADD"] {
        let (status, _, body) = server.post(&server.token, &[version, method, ("Mcp-Name", name)], &add_call());
        assert_eq!((status, body.contains("-32020")), (400, true), "{name}: {body}");
    }
    let (status, _, body) = server.post(&server.token, &[version, method], &add_call());
    assert_eq!((status, body.contains("-32020")), (400, true), "without the header: {body}");
    let (status, _, body) = server.post(&server.token, &[version, method, ("Mcp-Name", "trial__add")], &add_call());
    assert!(status == 200 && body.contains("3"), "{body}");
    drop(server);
    assert_eq!(recorded_calls(&world, "trial__add"), 1, "what was refused was never called");
    for tool in ["read", "trial__look"] {
        assert_eq!(recorded_calls(&world, tool), 0, "{tool}: the head calls nothing");
    }
    assert_eq!(recorded_refusals(&world, "header_mismatch"), 4, "each refusal is on record");
}

#[test]
fn g26_a_session_is_no_use_to_another_client() {
    let world = world("");
    let server = HttpServer::start(&world);
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "one", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let (status, session, body) = server.post(&server.token, &[], &hello);
    assert_eq!(status, 200, "{body}");
    let session = session.expect("a session");
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
                       "params": { "name": "trial__add", "arguments": { "a": 1, "b": 2 } } });
    let headers = [("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Session-Id", session.as_str())];
    let (status, _, body) = server.post(&server.token_of_another(), &headers, &call);
    assert!(status == 404 || status == 403, "another's session: {status} {body}");
    let (status, _, body) = server.post("no-token-of-ours", &headers, &call);
    assert_eq!(status, 401, "{body}");
    let guessed = [("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Session-Id", "0123456789abcdef0123456789abcdef")];
    let (status, _, body) = server.post(&server.token, &guessed, &call);
    assert_eq!(status, 404, "a guessed session: {body}");
    let (status, _, body) = server.post(&server.token, &headers, &call);
    assert!(status == 200 && body.contains('3'), "its own client: {body}");
    drop(server);
    assert_eq!(recorded_calls(&world, "trial__add"), 1, "only the call of its own client");
    assert_eq!(recorded_refusals(&world, "unknown_session"), 2, "another's session and a guessed one");
    assert_eq!(recorded_refusals(&world, "unauthorized"), 1, "the token that isn't ours");
}

#[test]
fn g27_an_approval_is_for_these_arguments_and_once() {
    let world = world("");
    let mut client = client::start(&world, &[], true, form_elicitation());
    let call = |a: i64| json!({ "name": "trial__add", "arguments": { "a": a, "b": 2 } });
    let asked = client.ask("tools/call", call(1));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let name = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let yes = elicitation_answer("yes");
    let with_state = |mut call: Value| {
        call["requestState"] = asked["requestState"].clone();
        call["inputResponses"] = json!({ name.as_str(): yes });
        call
    };
    // Other arguments, and another tool, with the person's yes to the first ones.
    let mut other = with_state(call(1));
    other["name"] = json!("trial__look");
    other["arguments"] = json!({});
    for changed in [with_state(call(99)), other] {
        let refused = client.fault("tools/call", changed);
        assert!(
            refused["message"].as_str().unwrap().contains("wasn't issued to this session for this call"),
            "{refused}"
        );
    }
    let mut forged = with_state(call(1));
    forged["requestState"] = json!(format!("{}x", asked["requestState"].as_str().unwrap()));
    assert!(client.fault("tools/call", forged)["message"].as_str().unwrap().contains("`requestState` was refused"));
    let done = client.ask("tools/call", with_state(call(1)));
    assert!(done["content"][0]["text"].as_str().unwrap().contains("\n3\n"), "{done}");
    let again = client.fault("tools/call", with_state(call(1)));
    assert!(again["message"].as_str().unwrap().contains("it was used before or has expired"), "{again}");
    let next = client.ask("tools/call", call(1));
    assert_eq!(next["resultType"], "input_required", "once is once: {next}");
    client.end();
    let refusals: Vec<Value> = events(&world).into_iter().filter(|event| event["kind"] == "request.refused").collect();
    assert_eq!(refusals.len(), 4, "{refusals:?}");
    assert!(refusals.iter().all(|refusal| refusal["code"] == "bad_state"), "{refusals:?}");
    let completed = events(&world).into_iter().filter(|event| event["kind"] == "tool_call.completed").count();
    assert_eq!(completed, 1, "one call ran");
}

#[test]
fn g27_a_grant_for_one_tool_and_definition_is_no_grant_for_another() {
    let world = world("");
    let mut client = client::start(&world, &[], false, form_elicitation());
    client.initialize();
    client.answers.push(elicitation_answer("session"));
    assert_eq!(client.call("trial__add", json!({ "a": 1, "b": 2 }))["isError"], Value::Null);
    assert_eq!(client.call("trial__add", json!({ "a": 5, "b": 6 }))["isError"], Value::Null, "the session's grant");
    client.answers.push(json!({ "action": "decline" }));
    let other = client.call("trial__look", json!({}));
    assert_eq!(other["isError"], true, "another tool is asked about: {other}");
    client.answers.push(elicitation_answer("yes"));
    client.call("trial__change", json!({}));
    let changed = client.call("trial__add", json!({ "a": 1, "b": 2 }));
    assert_eq!(tool_error_code(&changed), "definition_changed", "granted, but not for this definition: {changed}");
    client.end();
    assert_eq!(recorded_end(&world, "trial__add"), "definition_changed");
}
