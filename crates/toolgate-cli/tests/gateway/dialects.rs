//! Tools of servers in clients' own words.

use serde_json::{Value, json};

use crate::client;
use crate::servers::{words, world};

#[test]
fn in_a_dialect_a_servers_tool_has_the_clients_name_for_it() {
    let world = world("");
    let listed = world.run(&["--json", "tools", "--all", "--dialect", "claude"]);
    let is_listed = |name: &str| listed.out.contains(&format!(r#""name":"{name}""#));
    assert!(is_listed("mcp__trial__add") && !is_listed("trial__add"), "{listed:?}");
    for (dialect, name) in [("gemini", "mcp_trial_add"), ("opencode", "trial_add"), ("coder", "trial__add")] {
        let listed = world.run(&["--json", "tools", "--all", "--dialect", dialect]);
        assert!(listed.out.contains(&format!(r#""name":"{name}""#)), "{dialect}: {listed:?}");
    }
    let args = json!({ "a": 1, "b": 2 }).to_string();
    for (dialect, tool) in [
        ("claude", "mcp__trial__add"),
        ("codex-2026-01", "trial/add"),
        ("gemini", "mcp_trial_add"),
        ("opencode", "trial_add"),
        ("opencode", "trial__add"),
    ] {
        let reply = world.run(&["--json", "call", "--approve", "--dialect", dialect, tool, &args]).json();
        assert_eq!((reply["ok"].as_bool(), words(&reply).contains('3')), (Some(true), true), "{reply}");
    }
}

#[test]
fn where_servers_have_many_tools_a_dialect_finds_them() {
    let world = world("");
    let config = std::fs::read_to_string(world.user_config()).unwrap();
    world.put(&world.user_config(), format!("mcp.listed_tools = 3\n{config}"));
    let names = |dialect: &str| -> Vec<String> {
        let mut client = client::start(&world, &["--preset", "full", "--dialect", dialect], false, json!({}));
        client.initialize();
        let listed = client.ask("tools/list", json!({}));
        client.end();
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    for (dialect, finder) in [("claude", "ToolSearch"), ("codex", "tool_search"), ("gemini", "tools_find")] {
        let listed = names(dialect);
        assert!(listed.iter().any(|name| name == finder), "{dialect}: {listed:?}");
        assert!(listed.iter().any(|name| name == "tools_use"), "{dialect}: {listed:?}");
        assert_eq!(listed.iter().any(|name| name == "tools_find"), finder == "tools_find", "{dialect}: {listed:?}");
        assert!(!listed.iter().any(|name| name.contains("trial")), "{dialect}: {listed:?}");
    }
    let found = world.run(&["call", "--dialect", "claude", "ToolSearch", r#"{"query":"select:mcp__trial__add"}"#]);
    let first: Value = serde_json::from_str(found.out.lines().next().unwrap()).unwrap();
    assert_eq!(first["name"], "mcp__trial__add", "{found:?}");
    assert_eq!(first["parameters"]["type"], "object", "{found:?}");
}
