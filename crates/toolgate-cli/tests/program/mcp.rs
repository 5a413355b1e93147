//! `toolgate serve --stdio`, message by message: both protocol versions, approvals, and clients that vanish. What needs no
//! program is tested in `toolgate-mcp`.

mod approvals;
pub(crate) mod client;
mod robust;

use std::io::{Read, Write};

use serde_json::{Value, json};
use toolgate_testkit::mcp::payload;

use crate::world::World;

/// Tokens that the default list of tools may cost, at four bytes each: all of it, and what a client shows its model of it.
/// Raise them on purpose only.
const WHOLE: usize = 11_600;
const SHOWN: usize = 5_700;

fn names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn a_client_with_a_handshake_reads_edits_and_runs() {
    let world = World::new();
    let mut client = client::with_handshake(&world, json!({}));
    let list = client.ask("tools/list", json!({}));
    assert!(names(&list).contains(&"read") && names(&list).contains(&"shell"));
    let read = client.call("read", json!({ "path": "hello.txt" }));
    assert_eq!(read["content"][0]["text"], "hello\nworld\n");
    client.call("edit", json!({ "path": "hello.txt", "find": "world", "replace": "moon" }));
    assert_eq!(world.read("hello.txt"), "hello\nmoon\n");
    let ran = client.call("shell", json!({ "command": "wc -l < hello.txt" }));
    assert_eq!(ran["structuredContent"]["stdout"].as_str().unwrap().trim(), "2", "{ran}");
    assert_eq!(client.end(), 0);
    let said = world.run(&["audit", "verify"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_client_whose_requests_stand_alone_needs_no_handshake() {
    let world = World::new();
    let mut client = client::stateless(&world, json!({}));
    let found = client.ask("server/discover", json!({}));
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
    assert_eq!(found["resultType"], "complete");
    let read = client.call("read", json!({ "path": "hello.txt" }));
    assert_eq!(read["content"][0]["text"], "hello\nworld\n");
    assert_eq!(read.get("structuredContent"), None, "the same bytes aren't sent twice");
    let gone = client.fault("ping", json!({}));
    assert_eq!(gone["code"], -32601, "{gone}");
}

#[test]
fn the_list_of_tools_is_fit_for_any_client() {
    let world = World::new();
    let mut client = client::stateless(&world, json!({}));
    let list = client.ask("tools/list", json!({}));
    for tool in list["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() < 60 && tool["title"].is_string() && tool["description"].is_string());
        let is_content = ["artifact", "fetch", "image", "read", "skill"].contains(&name);
        assert_eq!(tool.get("outputSchema").is_none(), is_content, "{name}");
        for schema in [tool.get("inputSchema"), tool.get("outputSchema")].into_iter().flatten() {
            assert_eq!(schema["type"], "object", "{name}");
            for clause in ["anyOf", "oneOf", "allOf", "$ref"] {
                assert!(schema.get(clause).is_none(), "{name} has {clause} at its top");
            }
        }
        let hints = &tool["annotations"];
        let reads = ["artifact", "find", "grep", "image", "list", "read", "stat"].contains(&name);
        assert!(hints["readOnlyHint"] == true || !reads, "{name}");
        // What an agent notes for itself changes, and takes nothing from anybody.
        let notes = ["memory", "plan", "todo_write"].contains(&name);
        assert!(hints["readOnlyHint"] == false || !notes, "{name}");
        assert_eq!(hints["readOnlyHint"] == true || notes, hints["destructiveHint"] == false, "{name}");
    }
    let shown = |tool: &Value| {
        ["name", "description", "inputSchema"].map(|field| tool[field].to_string().len()).iter().sum::<usize>()
    };
    let shown: usize = list["tools"].as_array().unwrap().iter().map(shown).sum::<usize>() / 4;
    let whole = list["tools"].to_string().len() / 4;
    println!("the default list of tools costs about {whole} tokens, of which models are shown {shown}");
    assert!(whole <= WHOLE && shown <= SHOWN, "{whole} tokens, {shown} shown");
}

#[test]
fn the_list_can_be_narrowed_and_what_is_not_on_it_is_not_run() {
    let world = World::new();
    let mut client = client::start(&world, &["--tools", "read,edit"], false, json!({}));
    client.initialize();
    assert_eq!(names(&client.ask("tools/list", json!({}))), ["edit", "read"]);
    let refused = client.call("list", json!({}));
    let mut all = client::with_handshake(&world, json!({}));
    assert!(!names(&all.ask("tools/list", json!({}))).contains(&"commit"), "people commit");
    let mut committing = client::start(&world, &["--tools", "shell,commit"], false, json!({}));
    committing.initialize();
    assert!(names(&committing.ask("tools/list", json!({}))).contains(&"commit"), "it was asked for");
    assert_eq!(refused["_meta"]["toolgate/error"]["code"], "tool_not_allowed");
    drop(client);
    let said = world.run(&["serve", "--stdio", "--tools", "reed"]);
    assert!(said.code == 2 || said.code == 1, "{said:?}");
    assert!(said.err.contains("there is no tool `reed`") && said.err.contains("reading"), "{said:?}");
}

#[test]
fn more_than_a_tool_states_can_be_asked_for() {
    let world = World::new();
    let mut client = client::with_handshake(&world, json!({}));
    let listed = client.ask("tools/list", json!({}));
    let has_it = |tool: &&Value| tool["inputSchema"]["properties"]["requested_permissions"].is_object();
    let having: Vec<Value> = listed["tools"].as_array().unwrap().iter().filter(has_it).cloned().collect();
    assert_eq!(names(&json!({ "tools": having })), ["script", "shell"]);
    let mut ask =
        |tool: &str, right: &str| client.call(tool, json!({ "command": "true", "requested_permissions": [right] }));
    let asked = ask("shell", "net.connect=ok.example:22");
    let words = asked["content"][0]["text"].as_str().unwrap();
    assert!(words.starts_with("error[approval_required]"), "{asked}");
    assert!(words.contains("--permit net.connect=ok.example:22"), "{asked}");
    assert_eq!(ask("list", "unsandboxed")["_meta"]["toolgate/error"]["code"], "invalid_args", "`list` runs nothing");
    let args = json!({ "command": "true", "requested_permissions": ["everything"] });
    let fault = client.fault("tools/call", json!({ "name": "shell", "arguments": args }));
    assert!(fault["message"].as_str().unwrap().contains("there is no right `everything`"), "{fault}");
}

#[test]
fn secrets_in_bytes_that_are_no_text_are_replaced() {
    let world = World::new();
    world.put(&world.user_config(), "network.allow = ['127.0.0.1']");
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", server.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-thing\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(format!("{head}\0\0 postgres://app:hunter2hunter2@db/app \0").as_bytes());
    });
    let mut client = client::stateless(&world, json!({}));
    let fetched = client.call("fetch", json!({ "url": url }));
    let uri = format!("toolgate://artifact/{}", payload(&fetched)["artifact"].as_str().unwrap());
    let content = client.ask("resources/read", json!({ "uri": uri }))["contents"][0].clone();
    assert_eq!(content["mimeType"], "application/x-thing");
    assert_eq!(content["text"], "\0\0 postgres://app:***REDACTED***@db/app \0", "{content}");
}

#[test]
fn a_client_learns_what_would_become_of_a_call_without_making_it() {
    let world = World::new();
    let mut client = client::with_handshake(&world, json!({}));
    let mut check = |name: &str, args: Value| {
        let params = json!({ "name": name, "arguments": args, "_meta": { "toolgate/check": true } });
        let result = client.ask("tools/call", params);
        let said: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(said, result["structuredContent"], "{result}");
        said
    };
    assert_eq!(check("write", json!({ "path": "new.txt", "content": "" })), json!({ "decision": "allow" }));
    let asked = check("delete", json!({ "path": "hello.txt" }));
    assert_eq!(asked["decision"], "ask", "{asked}");
    assert!(asked["reason"].is_string(), "{asked}");
    let denied = check("shell", json!({ "command": "rm -rf /" }));
    assert_eq!((&denied["decision"], &denied["error"]["code"]), (&json!("deny"), &json!("policy_denied")), "{denied}");
    assert_eq!(client.end(), 0);
    assert!(!world.workspace().join("new.txt").exists() && world.workspace().join("hello.txt").exists());
    let record: Value = serde_json::from_str(&world.run(&["runs", "export"]).out).unwrap_or_default();
    let calls = record["events"].as_array().into_iter().flatten().filter(|event| event["tool"].is_string()).count();
    assert_eq!(calls, 0, "{record}");
}
