//! How a dialect is chosen: by flag for every front end, by a client's announced name, and by the model that an agent works with.

use serde_json::{Value, json};

use crate::mcp::client;
use crate::world::World;

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn several_dialects_are_spoken_at_once_unless_a_name_would_mean_two_things() {
    let world = World::new();
    let mut client = client::start(&world, &["--dialect", "claude,codex,native"], false, json!({}));
    client.initialize();
    let list = client.ask("tools/list", json!({}));
    let offered = names(&list["tools"]);
    assert!(["Read", "exec_command", "read", "artifact"].iter().all(|name| offered.contains(name)), "{offered:?}");
    assert_eq!(offered.iter().filter(|name| **name == "artifact").count(), 1);
    let mut text = |tool: &str, args: Value| client.call(tool, args)["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text("Read", json!({ "file_path": "hello.txt" })), "1\thello\n2\tworld\n3\t");
    assert!(text("exec_command", json!({ "cmd": "echo hi" })).ends_with("Output:\nhi\n"));
    assert_eq!(text("read", json!({ "path": "hello.txt" })), "hello\nworld\n");
    assert!(text("Reed", json!({})).starts_with("error[unknown_tool]"), "with native tools, the gate says it");
    for (flags, words) in [
        (["tools", "--dialect", "claude,claude-2.0"], "claude and claude-2.0 both have a tool `Read`"),
        (["tools", "--dialect", "codex-2026-01,native"], "codex-2026-01 and native both have a tool `shell`"),
        (["serve", "--stdio", "--dialect=codex-2026-01,native"], "both have a tool `shell`"),
    ] {
        let said = world.run(&flags);
        assert!(said.code == 2 && said.err.contains(words), "{said:?}");
    }
}

#[test]
fn a_client_is_spoken_to_in_the_dialect_of_its_name() {
    let config = "[dialects.clients]\ntester = 'claude'\nother = 'codex'\n";
    let world = World::new();
    world.put(&world.user_config(), config);
    for is_stateless in [false, true] {
        let mut client = client::start(&world, &[], is_stateless, json!({}));
        if !is_stateless {
            client.initialize();
        }
        let list = client.ask("tools/list", json!({}));
        assert!(names(&list["tools"]).contains(&"Read"), "{list}");
        let result = client.call("Read", json!({ "file_path": "hello.txt", "limit": 1 }));
        assert_eq!(result["content"][0]["text"], "1\thello", "{result}");
    }
    let mut client = client::start(&world, &["--dialect", "native"], false, json!({}));
    client.initialize();
    let list = client.ask("tools/list", json!({}));
    assert!(names(&list["tools"]).contains(&"read"), "the flag is stronger: {list}");
    world.put(&world.user_config(), "[dialects.clients]\ntester = 'clod'\n");
    let said = world.run(&["serve", "--stdio"]);
    assert!(said.code != 0 && said.err.contains("`dialects.clients` of `tester`"), "{said:?}");
}

/// A script that reads, edits and runs as Claude Code's model does.
const SCRIPT: &str = r#"
[[turns]]
calls = [{ tool = "Read", args = { file_path = "hello.txt" } }]

[[turns]]
expect = ["2\tworld"]
calls = [{ tool = "Edit", args = { file_path = "hello.txt", old_string = "world", new_string = "moon" } },
         { tool = "Bash", args = { command = "cd / ; exit 3" } }, { tool = "Reed" }]

[[turns]]
expect = ["has been updated successfully", "Exit code 3", "No such tool available: Reed"]
text = "Done."
tokens = { input = 1000, output = 100 }

[[turns]]
expect = ["Go on"]
calls = [{ tool = "Read", args = { file_path = "hello.txt", limit = 2 } }]

[[turns]]
expect = ["2\tmoon"]
text = "Still done."
"#;

#[test]
fn an_agent_works_and_goes_on_in_a_dialect() {
    let world = World::new().file("script.toml", SCRIPT);
    let model = ["run", "--model", "scripted:script.toml"];
    let said = world.run(&[&model[..], &["--dialect", "claude", "Do it."]].concat());
    assert_eq!((said.code, said.out.as_str()), (0, "Done.\n"), "{said:?}");
    assert_eq!(world.read("hello.txt"), "hello\nmoon\n");
    let record = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    assert!(record.contains(r#""dialect":"claude""#) && record.contains(r#""tool":"edit""#), "{record}");
    let said = world.run(&[&model[..], &["--continue", "Go on."]].concat());
    assert_eq!((said.code, said.out.as_str()), (0, "Still done.\n"), "a run goes on in its dialect: {said:?}");
    world.put(&world.user_config(), "[model]\ndialect = 'clod'\n");
    let said = world.run(&[&model[..], &["Do it."]].concat());
    assert!(said.code != 0 && said.err.contains("`model.dialect`") && said.err.contains("`clod`"), "{said:?}");
    let said = world.run(&[&model[..], &["--dialect", "auto", "Do it."]].concat());
    let knows_native = said.code != 0 && said.err.contains("There is no tool named `Read`");
    assert!(knows_native, "a scripted model knows the native tools: {said:?}");
}
