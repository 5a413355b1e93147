//! `/mcp`: sessions of their own, statuses, and who is kept out.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::http::server::Server;
use crate::world::{PROGRAM, World};

/// A server with the endpoint alone.
struct Endpoint {
    child: Child,
    address: String,
}

impl Endpoint {
    fn start(world: &World) -> Self {
        let mut command = world.command(PROGRAM);
        let mut child = command.args(["serve", "--conformance"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
        Self { child, address }
    }

    fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Got {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut head = format!("{method} /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += &format!("Host: {}\r\n", self.address);
        }
        if !headers.iter().any(|(name, _)| *name == "Content-Type") {
            head += "Content-Type: application/json\r\n";
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        Got::of(&answer)
    }

    fn initialize(&self) -> String {
        let got = self.send("POST", &[], &request("initialize", json!({ "protocolVersion": "2025-11-25" })));
        got.header("mcp-session-id").unwrap()
    }

    fn in_session(&self, session: &str, method: &str, params: Value) -> Got {
        self.send("POST", &[("Mcp-Session-Id", session)], &request(method, params))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn request(method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// A response.
struct Got {
    status: u16,
    head: String,
    body: Value,
}

impl Got {
    fn of(answer: &str) -> Self {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        // An answer that takes long becomes a stream, whose last event it is.
        let last = body.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or(body);
        Self { status, head: head.to_lowercase(), body: serde_json::from_str(last).unwrap_or_default() }
    }

    fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
    }
}

#[test]
fn each_session_is_its_own_and_ends() {
    let world = World::new();
    let endpoint = Endpoint::start(&world);
    let (ada, ben) = (endpoint.initialize(), endpoint.initialize());
    assert_ne!(ada, ben);
    let read = json!({ "name": "read", "arguments": { "path": "hello.txt" } });
    for session in [&ada, &ben] {
        let got = endpoint.in_session(session, "tools/call", read.clone());
        assert_eq!(got.body["result"]["structuredContent"]["total_lines"], 2, "{}", got.body);
    }
    let runs = std::fs::read_dir(world.workspace().join(".toolgate/runs")).unwrap().count();
    assert_eq!(runs, 2, "a run for each");
    assert_eq!(endpoint.send("DELETE", &[("Mcp-Session-Id", &ada)], "").status, 204);
    assert_eq!(endpoint.in_session(&ada, "tools/list", json!({})).status, 404);
    assert_eq!(endpoint.in_session(&ben, "tools/list", json!({})).status, 200);
    assert_eq!(endpoint.send("POST", &[], &request("tools/list", json!({}))).status, 400, "a session is needed");
    assert_eq!(endpoint.send("GET", &[], "").status, 405);
    assert_eq!(endpoint.send("PUT", &[], "").status, 405);
}

#[test]
fn another_sessions_artifact_is_not_found() {
    let world = World::new();
    let endpoint = Endpoint::start(&world);
    let (ada, ben) = (endpoint.initialize(), endpoint.initialize());
    let command = json!({ "name": "shell", "arguments": { "command": "seq 1 30000" } });
    let got = endpoint.in_session(&ada, "tools/call", command);
    let content = got.body["result"]["content"].as_array().unwrap().clone();
    let uri = content.iter().find(|part| part["type"] == "resource_link").unwrap()["uri"].clone();
    let read = |session| endpoint.in_session(session, "resources/read", json!({ "uri": uri })).body;
    assert!(read(&ada)["result"]["contents"][0]["text"].is_string());
    endpoint.in_session(&ben, "tools/call", json!({ "name": "list", "arguments": {} }));
    assert_eq!(read(&ben)["error"]["code"], -32602);
}

#[test]
fn pages_of_other_sites_and_other_names_of_this_machine_are_kept_out() {
    let world = World::new();
    let endpoint = Endpoint::start(&world);
    let body = request("initialize", json!({ "protocolVersion": "2025-11-25" }));
    for (headers, status) in [
        (vec![("Host", "evil.example.com")], 403),
        (vec![("Origin", "https://evil.example.com")], 403),
        (vec![("Origin", "null")], 403),
        (vec![("Content-Type", "text/plain")], 415),
        (vec![("Origin", "http://localhost:3000")], 200),
    ] {
        assert_eq!(endpoint.send("POST", &headers, &body).status, status, "{headers:?}");
    }
}

#[test]
fn the_body_decides_and_headers_have_to_agree() {
    let world = World::new();
    let endpoint = Endpoint::start(&world);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = request("tools/call", json!({ "name": "list", "arguments": {}, "_meta": meta }));
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let method = ("Mcp-Method", "tools/call");
    for (headers, code) in [
        (vec![version, method, ("Mcp-Name", "list")], None),
        (vec![version, method, ("Mcp-Name", "=?base64?bGlzdA==?=")], None),
        (vec![version, method, ("Mcp-Name", "read")], Some(-32020)),
        (vec![version, ("Mcp-Method", "ping"), ("Mcp-Name", "list")], Some(-32020)),
        (vec![version, method], Some(-32020)),
        (vec![("MCP-Protocol-Version", "2025-11-25"), method, ("Mcp-Name", "list")], Some(-32020)),
    ] {
        let got = endpoint.send("POST", &headers, &body);
        assert_eq!(got.body["error"]["code"].as_i64(), code, "{headers:?}");
        assert_eq!(got.status, if code.is_some() { 400 } else { 200 }, "{headers:?}");
    }
}

#[test]
fn behind_the_door_of_the_http_server_mcp_is_the_owners() {
    let server = Server::start();
    let initialize = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize });
    let (_, mut session) = server.session(&json!({}));
    assert_eq!(server.stranger().post("/mcp", &body).status, 401);
    assert_eq!(session.post("/mcp", &body).status, 403, "a session's token is held to a set of tools; MCP isn't");
    let answered = server.owner().post("/mcp", &body);
    assert_eq!(answered.status, 200, "{answered:?}");
    assert_eq!(answered.json()["result"]["serverInfo"]["name"], "toolgate");
}
