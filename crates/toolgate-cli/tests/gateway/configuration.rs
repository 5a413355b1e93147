//! Which servers there are: added and removed from the shell, and taken over from other clients.

use serde_json::json;

use crate::world::World;

#[test]
fn servers_are_added_and_removed_from_the_shell() {
    let world = World::new();
    world.put(&world.user_config(), "# mine\npreset = 'workspace'\n");
    let added = world.run(&[
        "mcp",
        "add",
        "time",
        "--host",
        "example.com",
        "--access",
        "write",
        "--",
        "mcp-server-time",
        "--zone",
        "UTC",
    ]);
    assert_eq!(added.code, 0, "{added:?}");
    let shown = world.run(&["--json", "mcp", "show", "time"]).json();
    assert_eq!(shown["config"]["command"], json!(["mcp-server-time", "--zone", "UTC"]), "{shown}");
    assert_eq!((&shown["config"]["workspace"], &shown["approved"]), (&json!("write"), &json!(false)));
    assert_ne!(world.run(&["mcp", "add", "time", "--", "x"]).code, 0, "it is there already");
    for name in ["a__b", "a b", "x]\n[tools", &"n".repeat(40)] {
        let refused = world.run(&["mcp", "add", name, "--", "x"]);
        assert_ne!(refused.code, 0, "{name}: {refused:?}");
    }
    assert_eq!(world.run(&["mcp", "remove", "time"]).code, 0);
    assert_eq!(std::fs::read_to_string(world.user_config()).unwrap().trim_end(), "# mine\npreset = 'workspace'");
    assert_ne!(world.run(&["mcp", "remove", "time"]).code, 0);
}

#[test]
fn servers_of_other_clients_are_taken_over_without_their_secrets() {
    let world = World::new()
        .file(
            ".mcp.json",
            r#"{ "mcpServers": {
                // Comments are allowed.
                "git hub": { "command": "npx", "args": ["-y", "server-github"], "env": { "GITHUB_TOKEN": "ghp_plain", "MODE": "x" } },
                "remote": { "url": "https://mcp.example.com", "headers": { "Authorization": "Bearer plain-token" } },
                "strange": { "type": "sse", "url": "https://mcp.example.com" },
                "toolgate": { "command": "/usr/bin/toolgate", "args": ["serve", "--stdio"] },
            } }"#,
        )
        .file(".vscode/mcp.json", r#"{ "servers": { "db": { "command": "db", "env": { "URL": "${env:DB_URL}" } } } }"#);
    world.put(
        &world.home().join(".codex/config.toml"),
        "[mcp_servers.time]\ncommand = 'mcp-server-time'\nargs = ['--utc']\n",
    );
    let user = r#"{ "servers": { "notes": { "type": "stdio", "command": "notes-server" } } }"#;
    world.put(&world.home().join(".config/Code/User/mcp.json"), user);
    world.put(&world.workspace().join(".codex/config.toml"), "[mcp_servers.local]\ncommand = 'local-server'\n");
    let asked = world.run(&["--json", "mcp", "import"]);
    assert_eq!(
        (asked.code, &asked.json()["servers"]),
        (4, &json!(["git-hub", "remote", "db", "local", "time", "notes"])),
        "{asked:?}"
    );
    let taken = world.run(&["mcp", "import", "--yes"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    assert!(taken.err.contains("`strange` speaks a protocol of 2024"), "{taken:?}");
    let config = std::fs::read_to_string(world.user_config()).unwrap();
    assert!(
        !config.contains("ghp_plain")
            && !config.contains("plain-token")
            && config.contains(r#"secrets."GITHUB_TOKEN" = "env:GITHUB_TOKEN""#),
        "{config}"
    );
    let shown = world.run(&["--json", "mcp", "show", "time"]).json();
    assert_eq!(shown["config"]["command"], json!(["mcp-server-time", "--utc"]));
    let remote = world.run(&["--json", "mcp", "show", "remote"]).json();
    assert_eq!(
        remote["config"],
        json!({ "url": "https://mcp.example.com", "bearer": "env:REMOTE_TOKEN", "workspace": "read", "directory": "home" })
    );
    let db = world.run(&["--json", "mcp", "show", "db"]).json();
    assert_eq!(db["config"]["secrets"]["URL"], "env:DB_URL");
    assert!(world.run(&["mcp", "import"]).out.contains("no server that you don't have already"));
    let doctor = world.run(&["doctor"]);
    assert!(doctor.out.contains("nothing is approved of db, git-hub, local, notes, remote, time"), "{}", doctor.out);
}
