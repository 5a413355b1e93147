//! Calls through the gate: results, refusals, progress, log messages and roots.

use serde_json::{Value, json};
use toolgate_testkit::mcp::{payload, tool_error_code};

use crate::backend::McpTestServer;
use crate::stdio_client::{connect, stateless, with, with_handshake};

#[test]
fn fields_are_structured_and_text_in_every_version() {
    let server = McpTestServer::start();
    server.backend.workspace.file("second.txt", "2\n");
    for mut client in [with_handshake(&server, json!({})), stateless(&server, json!({}))] {
        let list = client.call("list", json!({ "limit": 1 }));
        assert_eq!(list["structuredContent"]["has_more"], true, "{list}");
        let cursor = list["structuredContent"]["next_cursor"].as_str().unwrap_or_else(|| panic!("no cursor: {list}"));
        let text: Value = serde_json::from_str(list["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text["entries"], list["structuredContent"]["entries"]);
        let next = client.call("list", json!({ "cursor": cursor }));
        assert!(!next["structuredContent"]["entries"].as_array().unwrap().is_empty(), "{next}");
        client.end();
    }
}

#[test]
fn what_was_cut_or_replaced_is_said_among_the_fields_too() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, json!({}));
    server.backend.workspace.file("settings.txt", "DB_PASSWORD=hunter2hunter2\n");
    let cut = client.call("big", json!({ "lines": 40_000 }));
    assert!(cut["structuredContent"]["truncated"]["lines"].as_u64().unwrap() > 0, "{cut}");
    assert!(cut["structuredContent"]["truncated"]["artifact"].as_str().unwrap().starts_with("art_"), "{cut}");
    let found = client.call("grep", json!({ "pattern": "PASSWORD", "path": "settings.txt" }));
    assert_eq!(found["structuredContent"]["redacted"], true, "{found}");
    assert!(!found.to_string().contains("hunter2"), "{found}");
    client.end();
}

#[test]
fn a_file_is_plain_text_once_with_its_fields_beside_it() {
    let server = McpTestServer::start();
    for mut client in [with_handshake(&server, json!({})), stateless(&server, json!({}))] {
        let read = client.call("read", json!({ "path": "hello.txt" }));
        assert!(read.get("structuredContent").is_none(), "clients show it in place of the text: {read}");
        assert_eq!(read["content"][0]["text"], "hello\nworld\n");
        let fields: Value = serde_json::from_str(read["content"][1]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&fields["total_lines"], fields.get("content")), (&json!(2), None), "{read}");
        assert_eq!(read["_meta"]["toolgate/fields"], fields);
        let tools = client.ask("tools/list", json!({}));
        let tools = tools["tools"].as_array().unwrap();
        let has_schema =
            |name: &str| tools.iter().any(|tool| tool["name"] == name && tool.get("outputSchema").is_some());
        assert_eq!((has_schema("read"), has_schema("list")), (false, true));
        client.end();
    }
}

#[test]
fn every_call_is_recorded_once() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, json!({}));
    client.call("read", json!({ "path": "hello.txt" }));
    client.call("edit", json!({ "path": "hello.txt", "find": "world", "replace": "moon" }));
    assert_eq!(server.read("hello.txt"), "hello\nmoon\n");
    client.end();
    assert_eq!((server.count("tool_call.started"), server.count("tool_call.completed")), (2, 2));
}

#[test]
fn a_client_of_the_oldest_version_gets_text_only() {
    let server = McpTestServer::start();
    let mut client = connect(&server, false, json!({}));
    client.ask("initialize", json!({ "protocolVersion": "2024-11-05" }));
    let read = client.call("read", json!({ "path": "hello.txt" }));
    assert!(read.get("structuredContent").is_none() && read["content"][0]["text"].is_string(), "{read}");
    let list = client.ask("tools/list", json!({}));
    assert!(list["tools"].as_array().unwrap().iter().all(|tool| tool.get("outputSchema").is_none()));
}

#[test]
fn a_refusal_says_what_why_and_what_next() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, json!({}));
    let refused = client.call("read", json!({ "path": ".env" }));
    assert_eq!((&refused["isError"], tool_error_code(&refused)), (&json!(true), "sensitive_path"));
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("error[sensitive_path]:") && text.contains("\nrule: ") && text.contains("\nnext: "),
        "{text}"
    );
    for (tool, args, code) in [
        ("raed", json!({}), "unknown_tool"),
        ("read", json!({ "path": 7 }), "invalid_args"),
        ("read", json!({ "path": "../../etc/passwd" }), "path_outside_workspace"),
    ] {
        assert_eq!(tool_error_code(&client.call(tool, args)), code);
    }
    assert_eq!(client.fault("tools/call", json!({}))["code"], -32602, "no name");
}

#[test]
fn what_a_tool_says_reaches_the_client_as_progress_and_log() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, json!({}));
    let call = json!({ "name": "display", "arguments": { "content": "half way", "level": "info" } });
    client.ask("tools/call", with(call.clone(), "_meta", json!({ "progressToken": "p" })));
    let progress = client.hear_of("notifications/progress");
    assert_eq!(progress["params"], json!({ "progressToken": "p", "progress": 1, "message": "half way" }));
    assert_eq!(client.hear_of("notifications/message")["params"]["data"]["content"], "half way");
    client.heard.clear();
    assert_eq!(client.fault("logging/setLevel", json!({ "level": "loud" }))["code"], -32602);
    client.ask("logging/setLevel", json!({ "level": "error" }));
    client.ask("tools/call", call);
    assert!(client.heard.is_empty(), "neither a token nor a severe message: {:?}", client.heard);
}

#[test]
fn roots_narrow_the_workspace() {
    let server = McpTestServer::start();
    server.backend.workspace.file("src/a.txt", "a\n").file("other/b.txt", "b\n");
    let mut client = with_handshake(&server, json!({ "roots": {} }));
    client.roots = vec![format!("file://{}/src", server.backend.workspace.path().display()), "file:///etc".into()];
    assert_eq!(payload(&client.call("read", json!({ "path": "src/a.txt" })))["content"], "a\n");
    let read_other = json!({ "path": "other/b.txt" });
    for (tool, args) in [
        ("read", read_other.clone()),
        ("list", json!({})),
        ("read", json!({ "path": "/etc/hostname" })),
        ("shell", json!({ "command": "cat other/b.txt" })),
    ] {
        let refused = client.call(tool, args);
        assert_eq!(tool_error_code(&refused), "path_outside_workspace", "{tool}: {refused}");
    }
    client.roots = vec![format!("file://{}", server.backend.workspace.path().display())];
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    assert_eq!(payload(&client.call("read", read_other))["content"], "b\n", "new roots are asked for");
}
