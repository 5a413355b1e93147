//! G28 and G29: whose server it is, and whether it is the same as before.

use serde_json::json;

use super::recorded_end;
use crate::servers::{SERVER, approve, call, names, world};
use crate::world::World;

#[test]
fn g28_a_repositorys_own_servers_count_once_it_is_trusted() {
    let world =
        World::new().file(".mcp.json", r#"{ "mcpServers": { "theirs": { "command": "touch", "args": ["pwned"] } } }"#);
    world.put(&world.workspace().join("toolgate.toml"), "[mcp.servers.theirs]\ncommand = ['touch', 'pwned']\n");
    let listed = world.run(&["--json", "mcp", "list"]);
    assert!(!listed.out.contains("theirs"), "{listed:?}");
    assert_ne!(world.run(&["--json", "mcp", "approve", "theirs", "--yes"]).code, 0);
    assert_eq!(world.run(&["trust", "--yes"]).code, 0);
    assert!(world.run(&["--json", "mcp", "list"]).out.contains("theirs"));
    assert!(!world.workspace().join("pwned").exists(), "nothing ran");
    assert_eq!(world.call("theirs__add", json!({}))["error"]["code"], "unknown_tool", "trusted, but not approved");
    assert_eq!(recorded_end(&world, "theirs__add"), "unknown_tool");
}

#[test]
fn g28_another_command_in_a_trusted_repository_is_another_server() {
    let world = World::new().file("server.py", SERVER);
    let settings = |more: &str| {
        let section =
            format!("[mcp.servers.theirs]\ncommand = ['python3', 'server.py'{more}]\ndirectory = 'workspace'\n");
        world.put(&world.workspace().join("toolgate.toml"), section);
        assert_eq!(world.run(&["trust", "--yes"]).code, 0);
    };
    settings("");
    assert_eq!(world.run(&["--json", "mcp", "approve", "theirs", "--yes"]).code, 0);
    let add = || call(&world, "theirs__add", &json!({ "a": 1, "b": 2 }));
    assert_eq!(add()["ok"], true);
    // Even who trusts the file again has approved nothing of this server.
    settings(", '--steal'");
    assert!(!names(&world).iter().any(|name| name.starts_with("theirs__")));
    assert_eq!(add()["error"]["code"], "unknown_tool");
    assert_eq!(recorded_end(&world, "theirs__add"), "unknown_tool");
}

#[test]
fn g29_another_version_of_a_server_waits_for_a_person() {
    let world = world("");
    world.put(&world.workspace().join("upgraded"), "");
    let changed = call(&world, "trial__add", &json!({ "a": 1, "b": 2 }));
    assert_eq!(changed["error"]["code"], "definition_changed", "{changed}");
    assert!(changed["error"]["message"].as_str().unwrap().contains("\"version\":\"2\""), "{changed}");
    assert_eq!(recorded_end(&world, "trial__add"), "definition_changed");
    let shown = approve(&world, &[]).json();
    assert_eq!(
        (&shown["changes"][0]["part"], &shown["changes"][0]["after"]["version"]),
        (&json!("identity"), &json!("2"))
    );
    assert_eq!(approve(&world, &["--yes"]).code, 0);
    assert_eq!(call(&world, "trial__add", &json!({ "a": 1, "b": 2 }))["ok"], true);
}

#[test]
fn g29_a_package_that_changes_under_its_name_and_version_waits_for_a_person() {
    let world = World::new();
    let place = "node_modules/trial-server";
    world.put(&world.workspace().join(place).join("server.py"), SERVER);
    let manifest = world.workspace().join(place).join("package.json");
    world.put(&manifest, r#"{ "name": "trial-server", "version": "1.0.3" }"#);
    let lock = world.workspace().join("package-lock.json");
    world.put(&lock, r#"{ "lockfileVersion": 3 }"#);
    let command = format!("command = ['python3', '{place}/server.py']\ndirectory = 'workspace'\n");
    world.put(&world.user_config(), format!("[mcp.servers.trial]\n{command}"));
    let shown = world.run(&["mcp", "approve", "trial"]).out;
    assert!(shown.contains("trial-server@1.0.3"), "package and version are shown: {shown}");
    assert_eq!(approve(&world, &["--yes"]).code, 0);
    let add = || call(&world, "trial__add", &json!({ "a": 1, "b": 2 }));
    assert_eq!(add()["ok"], true);
    let script = format!("{SERVER}\n# Another program under the same name and version.\n");
    for (path, text) in [
        (world.workspace().join(place).join("server.py"), script.as_str()),
        (lock, r#"{ "lockfileVersion": 3, "packages": { "evil": {} } }"#),
        (manifest, r#"{ "name": "trial-server", "version": "1.0.4" }"#),
    ] {
        world.put(&path, text);
        let changed = add();
        assert_eq!(changed["error"]["code"], "definition_changed", "{}: {changed}", path.display());
        assert!(changed["error"]["message"].as_str().unwrap().contains("wasn't started"), "{changed}");
        assert_eq!(recorded_end(&world, "trial__add"), "definition_changed");
        let asked = approve(&world, &[]).json();
        let change = &asked["changes"][0];
        assert_eq!(change["part"], "identity", "{asked}");
        assert_ne!(change["before"]["installed"], change["after"]["installed"], "{asked}");
        assert_eq!(approve(&world, &["--yes"]).code, 0);
        assert_eq!(add()["ok"], true);
    }
}

#[test]
fn g29_a_package_without_a_version_is_warned_about() {
    let world = World::new();
    world.put(
        &world.user_config(),
        "[mcp.servers.trial]\ncommand = ['npx', '-y', 'server-that-isnt-there']\ntimeout_seconds = 3\n",
    );
    let said = world.run(&["mcp", "approve", "trial"]);
    assert!(format!("{said:?}").contains("has no exact version"), "{said:?}");
    assert_eq!(recorded_end(&world, "mcp_describe"), "server_error", "it couldn't be fetched, and that is on record");
}
