//! Calls through the gate: results, refusals, progress, log messages and roots.

use serde_json::{Value, json};
use toolgate_testkit::mcp::tool_error_code;

use crate::backend::McpTestServer;
use crate::stdio_client::{connect, stateless, with, with_handshake};

#[test]
fn with_a_handshake_a_result_is_text_and_structured() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, json!({}));
    let read = client.call("read", json!({ "path": "hello.txt" }));
    assert_eq!(read["structuredContent"]["content"], "hello\nworld\n");
    let text: Value = serde_json::from_str(read["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, read["structuredContent"]);
    client.call("edit", json!({ "path": "hello.txt", "find": "world", "replace": "moon" }));
    assert_eq!(server.read("hello.txt"), "hello\nmoon\n");
    client.end();
    assert_eq!((server.count("tool_call.started"), server.count("tool_call.completed")), (2, 2));
}

#[test]
fn without_a_handshake_a_result_is_structured_only() {
    let server = McpTestServer::start();
    let mut client = stateless(&server, json!({}));
    let read = client.call("read", json!({ "path": "hello.txt" }));
    assert_eq!(read["structuredContent"]["content"], "hello\nworld\n");
    assert_eq!((&read["content"], &read["resultType"]), (&json!([]), &json!("complete")));
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
    assert_eq!(client.call("read", json!({ "path": "src/a.txt" }))["structuredContent"]["content"], "a\n");
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
    assert_eq!(client.call("read", read_other)["structuredContent"]["content"], "b\n", "new roots are asked for");
}
