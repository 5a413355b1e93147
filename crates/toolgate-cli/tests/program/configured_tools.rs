//! `[tools.NAME]`: tools of the user's own, which take the one path like every other.

use serde_json::json;

use crate::world::World;

const CONFIG: &str = r#"
[tools.shout]
description = "Writes a text in capital letters to a file."
shell = "printf %s {text} | tr a-z A-Z > {file}"
schema = { type = "object", required = ["text", "file"], properties = { text = { type = "string" }, file = { type = "string" } } }
effects = { write = ["$.file"] }

[tools.words]
description = "Shows the words that it was given."
command = ["printf", "[%s]", "{first}", "second={second}", "{{third}}"]
risk = "high"
schema = { type = "object", required = ["first"], properties = { first = { type = "string" }, second = { type = "integer" } } }

[tools.read]
description = "Would replace a built-in tool."
command = ["true"]

[tools.broken]
description = "Has a schema that is none."
command = ["true", "{x}"]
schema = { type = "object", properties = { x = { type = "strinng" } } }
"#;

fn world() -> World {
    let world = World::new().file(".env", "TOKEN=secret-of-the-workspace\n");
    world.put(&world.user_config(), CONFIG);
    world
}

#[test]
fn a_configured_tool_is_judged_confined_recorded_and_undone() {
    let world = world();
    let reply = world.call("shout", json!({ "text": "it's $HOME", "file": "loud.txt" }));
    assert_eq!((reply["ok"].as_bool(), &reply["payload"]["exit_code"]), (Some(true), &json!(0)), "{reply}");
    assert_eq!(world.read("loud.txt"), "IT'S $HOME");
    assert_eq!(reply["artifacts"]["files_changed"], json!(["loud.txt"]), "{reply}");
    assert_eq!(world.run(&["undo", "last"]).code, 0);
    assert!(!world.workspace().join("loud.txt").exists());
    let hidden = world.call("shout", json!({ "text": "x", "file": ".env" }));
    assert_eq!(hidden["error"]["code"], "sensitive_path", "{hidden}");
    let refused = world.run(&["--preset", "read-only", "--json", "call", "shout", r#"{"text":"x","file":"y"}"#]).json();
    assert_eq!(refused["error"]["code"], "policy_denied", "{refused}");
}

#[test]
fn every_argument_is_one_word_and_none_is_an_option() {
    let world = world();
    let stdout = |args| world.call("words", args)["payload"]["stdout"].clone();
    assert_eq!(stdout(json!({ "first": "a b; $(id)", "second": 2 })), "[a b; $(id)][second=2][{third}]");
    assert_eq!(stdout(json!({ "first": "" })), "[][{third}]", "what is left out isn't there");
    for (args, expected) in [
        (json!({ "first": "-v" }), "would read as an option"),
        (json!({ "first": "a", "secnd": 1 }), "did you mean `second`?"),
        (json!({}), "/first: is missing"),
    ] {
        let refused = world.call("words", args);
        assert_eq!(refused["error"]["code"], "invalid_args", "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(expected), "{refused}");
    }
}

#[test]
fn what_cannot_be_used_costs_itself_and_is_named() {
    let world = world();
    let said = world.run(&["--json", "tools", "--all"]);
    for expected in
        ["The tool `read` of your configuration is left out.", "The tool `broken` of your configuration is left out."]
    {
        assert!(said.err.contains(expected), "{expected}: {}", said.err);
    }
    let tools = said.lines();
    let of = |name: &str| tools.iter().filter(|tool| tool["name"] == name).count();
    assert_eq!((of("read"), of("words"), of("broken")), (1, 1, 0));
    assert!(world.run(&["call", "read", r#"{"path":"hello.txt"}"#]).out.contains("world"), "the built-in one");
}

#[test]
fn a_workspaces_own_tools_count_once_it_is_trusted() {
    let world = World::new().file("toolgate.toml", "[tools.hi]\ndescription = 'Greets.'\ncommand = ['echo', 'hi']\n");
    let before = world.run(&["--json", "call", "hi", "{}"]);
    assert_eq!(before.json()["error"]["code"], "unknown_tool");
    assert!(before.err.contains("the tool `hi` is ignored until you trust this workspace"), "{}", before.err);
    assert_eq!(world.run(&["trust", "--yes"]).code, 0);
    assert_eq!(world.call("hi", json!({}))["payload"]["stdout"], "hi\n");
}
