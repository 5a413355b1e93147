//! `toolgate init --for`: an agent's own configuration gets the gate, and keeps everything else.
//! `clients/<client>/` holds a file of that client's documented form before and after, and what a fresh one looks like.

use crate::world::{PROGRAM, World};

const CLIENTS: &[(&str, &str)] = &[
    ("claude", "workspace/.mcp.json"),
    ("cursor", "workspace/.cursor/mcp.json"),
    ("vscode", "workspace/.vscode/mcp.json"),
    ("zed", "workspace/.zed/settings.json"),
    ("codex", "workspace/.codex/config.toml"),
    ("goose", "home/.config/goose/config.yaml"),
    ("gemini", "workspace/.gemini/settings.json"),
    ("opencode", "workspace/opencode.json"),
    ("copilot", "home/.copilot/mcp-config.json"),
];

fn fixture(world: &World, client: &str, name: &str) -> String {
    let file = format!("{}/tests/program/clients/{client}/{name}", env!("CARGO_MANIFEST_DIR"));
    let workspace = world.workspace().canonicalize().unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    text.replace("PROGRAM", PROGRAM).replace("WORKSPACE", &workspace.display().to_string())
}

#[test]
fn the_entry_is_added_once_and_nothing_else_changes() {
    for (client, file) in CLIENTS {
        let world = World::new();
        let file = world.workspace().parent().unwrap().join(file);
        world.put(&file, fixture(&world, client, "before"));
        let said = world.run(&["init", "--for", client, "--write"]);
        assert_eq!(said.code, 0, "{client}: {said:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), fixture(&world, client, "after"), "{client}");
        let again = world.run(&["init", "--for", client, "--write"]);
        assert!(again.out.contains("already"), "{client}: {again:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), fixture(&world, client, "after"), "{client}");
    }
}

#[test]
fn a_fresh_file_is_what_was_printed() {
    for (client, file) in CLIENTS {
        let world = World::new();
        let file = world.workspace().parent().unwrap().join(file);
        let printed = world.run(&["init", "--for", client]);
        assert_eq!((printed.code, printed.out.as_str()), (0, fixture(&world, client, "fresh").as_str()), "{client}");
        assert!(printed.err.contains(&file.display().to_string()), "{client}: {printed:?}");
        assert!(!file.exists(), "{client}: printing writes nothing");
        assert_eq!(world.run(&["init", "--for", client, "--write"]).code, 0);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), printed.out, "{client}");
    }
}

#[test]
fn a_file_in_another_form_is_left_alone_and_the_person_is_told_what_to_add() {
    for (client, file, odd) in [
        ("claude", "workspace/.mcp.json", "{ \"mcpServers\": [] }"),
        ("claude", "workspace/.mcp.json", "not json"),
        ("vscode", "workspace/.vscode/mcp.json", "{ /* no end"),
        ("zed", "workspace/.zed/settings.json", "{ \"a\": 1, \"a\": 2 }"),
        ("codex", "workspace/.codex/config.toml", "mcp_servers = { docs = { command = \"x\" } }\n"),
        ("codex", "workspace/.codex/config.toml", "= broken"),
        ("goose", "home/.config/goose/config.yaml", "extensions: {}\n"),
        ("goose", "home/.config/goose/config.yaml", "extensions:\n  - type: builtin\n"),
    ] {
        let world = World::new();
        let file = world.workspace().parent().unwrap().join(file);
        world.put(&file, odd);
        let said = world.run(&["init", "--for", client, "--write"]);
        assert_eq!(said.code, 1, "{client} {odd}: {said:?}");
        assert!(said.err.contains("by hand") && said.out.contains("toolgate"), "{client} {odd}: {said:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), odd, "{client}");
    }
}
