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
fn a_package_that_is_fetched_can_be_reached_where_it_is() {
    let world = World::new();
    let added =
        world.run(&["mcp", "add", "github", "--host", "api.github.com", "--", "npx", "-y", "server-github@1.0.0"]);
    assert!(added.out.contains("It may reach registry.npmjs.org, where its package is fetched from."), "{added:?}");
    let described = world.run(&["mcp", "show", "github"]).out;
    for line in ["workspace: read, starts in its own home", "hosts:     api.github.com, registry.npmjs.org"] {
        assert!(described.contains(line), "{line}: {described}");
    }
    let shown = world.run(&["--json", "mcp", "show", "github"]).json();
    assert_eq!(shown["config"]["hosts"], json!(["api.github.com", "registry.npmjs.org"]));
    world
        .put(&world.user_config(), "[mcp.servers.time]\ncommand = ['npx', 'mcp-server-time@1']\ntimeout_seconds = 3\n");
    let said = world.run(&["mcp", "approve", "time"]);
    assert!(said.err.contains("`npx` fetches it from registry.npmjs.org, which the `hosts` of"), "{said:?}");
}

#[test]
fn what_is_missing_for_a_server_is_said_instead_of_starting_it() {
    let world = World::new();
    let servers = "[mcp.servers.a]\ncommand = ['python3']\nsecrets.KEY = 'env:NOT_SET_ANYWHERE'\n\
                   [mcp.servers.b]\ncommand = ['no-such-program']\n\
                   [mcp.servers.c]\nurl = 'https://mcp.example.com'\nbearer = 'file:/no/such/file'\n";
    world.put(&world.user_config(), servers);
    for (name, expected) in [
        ("a", "a can't be started, as the variable `NOT_SET_ANYWHERE` isn't set"),
        ("b", "b can't be started, as there is no program `no-such-program`"),
        ("c", "c can't be reached, as there is no file `/no/such/file`"),
    ] {
        let refused = world.run(&["mcp", "approve", name]);
        assert!(refused.code != 0 && refused.err.contains(expected), "{name}: {refused:?}");
        assert!(!refused.err.contains("warning:"), "nothing else is said of servers that offer nothing: {refused:?}");
        assert!(world.run(&["doctor"]).out.contains(expected), "{name}");
        let called = world.call(&format!("{name}__add"), json!({}));
        let hint = called["error"]["hint"].as_str().unwrap();
        assert!(hint.contains(&format!("toolgate mcp approve {name}")), "{called}");
    }
}

#[test]
fn what_other_clients_expand_is_expanded_and_secrets_among_arguments_are_left() {
    let token = ["ghp_16C7e42F292c6912E", "7710c838347Ae178B4a"].concat();
    let servers = json!({ "mcpServers": {
        "files": { "command": "npx", "args": ["-y", "server-filesystem@1", "."] },
        "own": { "command": "node", "args": ["${workspaceFolder}/server.js", "${CACHE_OF_NOBODY:-small}"] },
        "elsewhere": { "type": "http", "url": "https://mcp.example.com/${REGION_OF_NOBODY:-eu}" },
        "strange": { "command": "node", "args": ["${input:token}"] },
        "leaky": { "command": "node", "args": ["--token", token] },
    } });
    let world = World::new().file(".mcp.json", servers.to_string());
    let taken = world.run(&["mcp", "import", "--yes"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    for (name, why) in [("strange", "known to that client alone"), ("leaky", "a secret among its arguments")] {
        assert!(taken.err.contains(&format!("`{name}` has")) && taken.err.contains(why), "{name}: {taken:?}");
        assert_ne!(world.run(&["mcp", "show", name]).code, 0, "{name}");
    }
    assert!(!format!("{taken:?}").contains(&token), "{taken:?}");
    let files = world.run(&["--json", "mcp", "show", "files"]).json()["config"].clone();
    assert_eq!(
        (&files["directory"], &files["hosts"]),
        (&json!("workspace"), &json!(["registry.npmjs.org"])),
        "{files}"
    );
    let own = world.run(&["--json", "mcp", "show", "own"]).json()["config"]["command"].clone();
    let elsewhere = world.run(&["--json", "mcp", "show", "elsewhere"]).json()["config"]["url"].clone();
    assert_eq!(elsewhere, "https://mcp.example.com/eu");
    let script = world.workspace().canonicalize().unwrap().join("server.js");
    assert_eq!(own, json!(["node", script, "small"]));
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
