//! MCP behind the authentication of the HTTP server.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::Client;
use super::server::Server;

fn initialize() -> Value {
    let client = json!({ "name": "tester", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

const TAKES: (&str, &str) = ("Accept", "application/json, text/event-stream");

/// A client's session.
pub(super) struct ClientSession(String);

impl ClientSession {
    pub(super) fn headers(&self) -> [(&str, &str); 3] {
        [TAKES, ("Mcp-Session-Id", &self.0), ("Mcp-Protocol-Version", "2025-11-25")]
    }

    pub(super) fn ask(&self, client: &mut Client, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": params });
        let answer = client.request("POST", "/mcp", &self.headers(), Some(&body));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.message()
    }

    pub(super) fn call(&self, client: &mut Client, tool: &str, args: Value) -> Value {
        self.ask(client, "tools/call", json!({ "name": tool, "arguments": args }))["result"].clone()
    }
}

/// Shakes hands.
pub(super) fn begin(server: &Server) -> ClientSession {
    begin_on(&mut server.owner())
}

pub(super) fn begin_on(client: &mut Client) -> ClientSession {
    let hello = client.request("POST", "/mcp", &[TAKES], Some(&initialize()));
    assert_eq!(hello.status, 200, "{hello:?}");
    let recorded = ClientSession(hello.header("mcp-session-id").unwrap().to_owned());
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(client.request("POST", "/mcp", &recorded.headers(), Some(&ready)).status, 202);
    recorded
}

pub(super) fn code(result: &Value) -> &str {
    result["_meta"]["toolgate/error"]["code"].as_str().unwrap_or_default()
}

#[test]
fn a_client_with_the_owners_token_speaks_mcp_and_its_calls_are_on_record() {
    let server = Server::start();
    let mut client = server.owner();
    let recorded = begin_on(&mut client);
    let read = recorded.call(&mut client, "read", json!({ "path": "hello.txt" }));
    assert_eq!(read["content"][0]["text"], "hello\nworld\n");
    let runs = client.get("/v1/runs").json();
    let is_mcp = |run: &&Value| run["front_end"] == "mcp" && run["calls"] == 1;
    assert!(runs["runs"].as_array().unwrap().iter().any(|run| is_mcp(&run)), "{runs}");
}

#[test]
fn nobody_comes_to_mcp_without_a_token_and_who_tried_is_on_record() {
    let server = Server::start();
    let in_url = format!("/mcp?token={}", server.token);
    for (mut client, path, more, status, code) in [
        (server.stranger(), "/mcp", TAKES, 401, "unauthorized"),
        (server.owner(), "/mcp", ("Origin", "http://evil.example"), 403, "cross_origin"),
        (server.owner(), "/mcp", ("Host", "evil.example:8731"), 421, "wrong_host"),
        (server.stranger(), in_url.as_str(), TAKES, 400, "token_in_url"),
    ] {
        let refused = client.request("POST", path, &[more], Some(&initialize()));
        assert_eq!((refused.status, refused.code().as_str()), (status, code));
        assert!(server.refusals().contains(&code.to_owned()), "{code} is on record");
    }
}

#[test]
fn another_clients_process_and_output_do_not_exist_and_asking_for_them_is_on_record() {
    let server = Server::start();
    let mut client = server.owner();
    let (ada, ben) = (begin_on(&mut client), begin_on(&mut client));
    let started =
        ada.call(&mut client, "shell", json!({ "command": "seq 1 30000; sleep 61.6417", "background": true }));
    let process = started["structuredContent"]["process"].clone();
    let long = ada.call(&mut client, "shell", json!({ "command": "seq 1 30000" }));
    let content = long["content"].as_array().unwrap();
    let artifact = content.iter().find(|part| part["type"] == "resource_link").unwrap()["name"].clone();
    let mine = ada.call(&mut client, "process", json!({ "action": "read", "process": process }));
    assert!(mine.get("isError").is_none(), "{mine}");
    for (tool, args) in [
        ("process", json!({ "action": "read", "process": process })),
        ("process", json!({ "action": "stop", "process": process })),
        ("artifact", json!({ "id": artifact })),
    ] {
        let refused = ben.call(&mut client, tool, args);
        assert_eq!(code(&refused), "not_found", "{tool}: {refused}");
        let call = refused["_meta"]["toolgate/call"].as_str().unwrap();
        assert_eq!(pairs(&server).get(call), Some(&(1, 1)), "{tool} is on record");
    }
    let still = ada.call(&mut client, "process", json!({ "action": "read", "process": process }));
    assert_eq!(still["structuredContent"]["running"], true, "nobody else stopped it: {still}");
}

/// A request that stands alone, by a client that calls itself so.
pub(super) fn alone(client: &mut Client, name: &str, params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        "io.modelcontextprotocol/clientInfo": { "name": name, "version": "1" },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let tool = params["name"].as_str().unwrap().to_owned();
    let headers =
        [TAKES, ("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool.as_str())];
    client.request("POST", "/mcp", &headers, Some(&body)).message()
}

#[test]
fn another_clients_state_is_refused_and_that_is_on_record() {
    let server = Server::start();
    let mut client = server.owner();
    let call = json!({ "name": "delete", "arguments": { "path": "hello.txt" } });
    let asked = alone(&mut client, "ada", call.clone());
    let mut again = call;
    again["requestState"] = asked["result"]["requestState"].clone();
    again["inputResponses"] = json!({ "approval": { "action": "accept", "content": { "answer": "yes" } } });
    let stolen = alone(&mut client, "ben", again.clone());
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
    assert!(server.world.workspace().join("hello.txt").exists());
    let done = alone(&mut client, "ada", again.clone());
    assert_eq!(done["result"]["resultType"], "complete", "it is good for whom it was made: {done}");
    let replayed = alone(&mut client, "ada", again);
    assert_eq!(replayed["error"]["code"], -32602, "{replayed}");
    let refused = events(&server).into_iter().filter(|event| event["kind"] == "request.refused");
    let refused: Vec<String> = refused.map(|event| event["request"].as_str().unwrap().to_owned()).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    for words in ["wasn't issued to this session", "used before"] {
        assert!(refused.iter().any(|request| request.contains(words)), "{words} is missing: {refused:?}");
    }
}

/// What is on record, of all runs.
fn events(server: &Server) -> Vec<Value> {
    let runs = std::fs::read_dir(server.world.workspace().join(".toolgate/runs")).unwrap();
    let read = |run: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(run.unwrap().path().join("events.jsonl")).unwrap()
    };
    let lines: Vec<String> = runs.map(read).collect();
    lines.iter().flat_map(|run| run.lines()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How often each call began and how often it ended.
fn pairs(server: &Server) -> BTreeMap<String, (u32, u32)> {
    let mut pairs = BTreeMap::<String, (u32, u32)>::new();
    for event in events(server) {
        let Some(call) = event["tool_call_id"].as_str() else { continue };
        let (started, ended) = pairs.entry(call.to_owned()).or_default();
        match event["kind"].as_str().unwrap_or_default() {
            "tool_call.started" => *started += 1,
            "tool_call.completed" | "tool_call.failed" => *ended += 1,
            _ => {}
        }
    }
    pairs
}

#[test]
fn a_hundred_clients_with_a_hundred_calls_each() {
    const CLIENTS: usize = 100;
    const CALLS: usize = 100;
    let server = Server::start();
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.owner();
                let recorded = begin_on(&mut client);
                for call in 0..CALLS {
                    let path = format!("out/{number}.txt");
                    let (tool, args, expected) = match call % 10 {
                        0 => ("write", json!({ "path": path, "content": format!("{call}\n") }), ""),
                        9 => ("read", json!({ "path": ".env" }), "sensitive_path"),
                        _ => ("read", json!({ "path": "hello.txt" }), ""),
                    };
                    let result = recorded.call(&mut client, tool, args);
                    assert_eq!(code(&result), expected, "{result}");
                }
            });
        }
    });
    let pairs = pairs(&server);
    assert_eq!(pairs.len(), CLIENTS * CALLS);
    assert!(pairs.values().all(|pair| *pair == (1, 1)), "no call without its pair");
    for number in 0..CLIENTS {
        assert_eq!(server.world.read(&format!("out/{number}.txt")), "90\n");
    }
}

#[test]
fn what_a_command_of_an_mcp_client_writes_is_heard_over_http() {
    let server = Server::start();
    let mut client = server.owner();
    let recorded = begin_on(&mut client);
    recorded.call(&mut client, "list", json!({}));
    let runs = client.get("/v1/runs").json();
    let run = runs["runs"].as_array().unwrap().iter().find(|run| run["front_end"] == "mcp").unwrap()["id"].clone();
    let mut listener = server.owner();
    let path = format!("/v1/runs/{}/events", run.as_str().unwrap());
    listener.send("GET", &path, &[("Accept", "text/event-stream")], None);
    assert_eq!(listener.receive_head().unwrap().status, 200);
    let params = json!({ "name": "shell", "arguments": { "command": "echo half way there; sleep 61.9183" } });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params });
    client.send("POST", "/mcp", &recorded.headers(), Some(&call));
    let mut seen = String::new();
    while !seen.contains("half way there\\n") {
        seen += &String::from_utf8(listener.chunk().expect("the stream goes on")).unwrap();
    }
    assert!(seen.contains("event: process.output\ndata: "), "{seen}");
}
