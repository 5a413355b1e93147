//! Lists of tools: ceilings, pages, and what clients hear when their list changes.

use serde_json::{Value, json};
use toolgate_mcp::McpOptions;
use toolgate_runtime::Ceiling;
use toolgate_testkit::mcp::{McpClient, tool_error_code};

use crate::backend::{McpTestBackend, McpTestServer};
use crate::stdio_client::{stateless, with_handshake};

const SKILL: &str = "---\nname: review\ndescription: Reads and judges.\nallowed-tools: Read\n---\nLook closely.\n";
const CHANGED: &str = "notifications/tools/list_changed";

fn names(client: &mut McpClient) -> Vec<String> {
    let list = client.ask("tools/list", json!({}));
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_tool_above_the_ceiling_is_neither_listed_nor_run() {
    let mut backend = McpTestBackend::new("");
    backend.ceilings.push(Ceiling { source: "a test".into(), tools: vec!["read".into(), "edit".into()] });
    let server = backend.serve(McpOptions::default());
    for mut client in [with_handshake(&server, json!({})), stateless(&server, json!({}))] {
        assert_eq!(names(&mut client), ["edit", "read"]);
        assert_eq!(tool_error_code(&client.call("list", json!({}))), "tool_not_allowed");
    }
}

#[test]
fn a_list_comes_in_pages() {
    let server = McpTestBackend::new("").serve(McpOptions { page_size: 5, ..McpOptions::default() });
    let mut client = with_handshake(&server, json!({}));
    let (mut names, mut params) = (Vec::new(), json!({}));
    loop {
        let page = client.ask("tools/list", params);
        let tools = page["tools"].as_array().unwrap();
        assert!(!tools.is_empty() && tools.len() <= 5);
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        match page["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    let mut unique = names.clone();
    unique.dedup();
    assert!(names.len() > 10 && unique == names && names.contains(&"read".to_owned()), "{names:?}");
    assert_eq!(client.fault("tools/list", json!({ "cursor": "from-900" }))["code"], -32602);
}

#[test]
fn every_tool_is_described_in_the_form_that_clients_take() {
    let server = McpTestServer::start();
    let mut client = stateless(&server, json!({}));
    let list = client.ask("tools/list", json!({}));
    for tool in list["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(tool["title"].is_string() && tool["description"].is_string(), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        let is_content = ["artifact", "fetch", "image", "read", "skill"].contains(&name);
        assert_eq!(tool["outputSchema"]["type"], if is_content { Value::Null } else { json!("object") }, "{name}");
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{name}");
    }
    let has_it = |tool: &&Value| tool["inputSchema"]["properties"]["requested_permissions"].is_object();
    let having = list["tools"].as_array().unwrap().iter().filter(has_it);
    assert_eq!(having.map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(), ["script", "shell"]);
    let args = json!({ "command": "true", "requested_permissions": ["everything"] });
    let fault = client.fault("tools/call", json!({ "name": "shell", "arguments": args }));
    assert!(fault["message"].as_str().unwrap().contains("there is no right `everything`"), "{fault}");
}

fn with_skill() -> McpTestServer {
    let server = McpTestServer::start();
    server.backend.workspace.file("home/skills/review/SKILL.md", SKILL);
    server
}

fn load_skill(client: &mut McpClient) {
    assert!(names(client).contains(&"delete".into()));
    let loaded = client.call("skill", json!({ "name": "review" }));
    assert!(loaded.get("isError").is_none(), "{loaded}");
    client.hear_of(CHANGED);
    assert!(!names(client).contains(&"delete".into()));
}

#[test]
fn a_loaded_skill_changes_the_list_of_its_client_alone() {
    let server = with_skill();
    let mut client = with_handshake(&server, json!({}));
    let mut other = with_handshake(&server, json!({}));
    other.call("read", json!({ "path": "hello.txt" }));
    load_skill(&mut client);
    assert_eq!(tool_error_code(&client.call("delete", json!({ "path": "hello.txt" }))), "tool_not_allowed");
    assert!(names(&mut other).contains(&"delete".into()));
    assert!(other.heard.iter().all(|message| message["method"] != CHANGED));
}

#[test]
fn a_client_that_listens_hears_of_changes() {
    let server = with_skill();
    let mut client = stateless(&server, json!({}));
    let id = client.begin("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let acknowledged = client.hear_of("notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({ "toolsListChanged": true }));
    load_skill(&mut client);
    let told = client.hear_of(CHANGED);
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(id));
}

#[test]
fn an_announcement_reaches_every_client() {
    let server = McpTestServer::start();
    let mut clients = [(); 2].map(|()| with_handshake(&server, json!({})));
    server.server.tools_changed();
    for client in &mut clients {
        client.hear_of(CHANGED);
    }
}
