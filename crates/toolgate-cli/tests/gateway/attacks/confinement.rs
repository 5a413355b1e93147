//! G13 to G16: what a server sees, reaches and writes, and what it says of that.

use serde_json::{Value, json};
use toolgate_testkit::wait_until;

use super::{add, events, in_mode, recorded_end};
use crate::client;
use crate::servers::{approve, call, unapproved, words, world};
use crate::world::World;

#[test]
fn g13_g14_a_server_sees_and_reaches_what_it_was_given() {
    let world = world("");
    let reply = call(&world, "trial__look", &json!({}));
    let seen: Value = serde_json::from_str(&words(&reply)).unwrap();
    assert!(seen["env_file"].as_str().unwrap().contains("decoy"), "{seen}");
    assert_eq!(seen["state"], false, "our own state isn't there: {seen}");
    for what in ["ssh", "out", "metadata", "tunnel"] {
        assert!(
            seen[what].as_str().unwrap().ends_with("Error") || seen[what].as_str().unwrap() == "gaierror",
            "{what}: {seen}"
        );
    }
    assert_eq!(seen["neighbours"], json!(["trial"]), "of other servers' homes it sees nothing");
    assert_eq!(reply["enforced"]["network"], "held");
    assert_eq!(recorded_end(&world, "trial__look"), "completed");
    let ended = events(&world).into_iter().find(|event| event["kind"] == "tool_call.completed").unwrap();
    let denied = reply["payload"]["denied"].to_string();
    let names = ["192.0.2.1", "169.254.169.254", "secret.tunnel.example"].map(|host| format!("{host} wasn't reached"));
    for what in names.iter().map(String::as_str).chain(["`.env` wasn't read"]) {
        assert!(denied.contains(what), "the reply names it: {what}: {reply}");
        assert!(ended["denials"].to_string().contains(what), "and the record: {what}: {ended}");
    }
    assert!(denied.contains("`hosts` of the MCP server `trial`"), "who could change that: {denied}");
    assert!(!denied.contains("net.connect="), "no call can ask for it: {denied}");
    let printed = world.run(&["call", "--approve", "trial__look"]);
    assert!(printed.err.contains("192.0.2.1 wasn't reached"), "a person is told too: {printed:?}");
}

#[test]
fn g14_a_server_that_cant_start_without_a_host_says_which() {
    let world = in_mode("fetched", "");
    let said = approve(&world, &[]);
    assert_ne!(said.code, 0, "{said:?}");
    for part in ["packages.example wasn't reached", "`hosts` of the MCP server `trial`"] {
        assert!(said.err.contains(part), "{part}: {said:?}");
    }
    assert_eq!(recorded_end(&world, "mcp_describe"), "server_error");
    let failed = events(&world).into_iter().find(|event| event["kind"] == "tool_call.failed").unwrap();
    assert!(failed["denials"].to_string().contains("packages.example"), "on record: {failed}");
}

#[test]
fn g14_a_tool_that_fails_for_want_of_a_host_says_which() {
    let world = world("");
    let reply = call(&world, "trial__phone", &json!({}));
    assert_eq!(reply["error"]["code"], "server_error", "{reply}");
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.contains("Its sandbox: home.example wasn't reached"), "what failed, and why: {message}");
    assert_eq!(recorded_end(&world, "trial__phone"), "server_error");
}

/// A workspace with the hostile server, whose tools a rule allows, so that nobody is asked and hosts are still denied.
fn allowed() -> World {
    let world = unapproved("");
    let config = std::fs::read_to_string(world.user_config()).unwrap();
    world.put(&world.user_config(), format!("rules = [{{ decision = 'allow', permission = 'mcp.call' }}]\n{config}"));
    assert_eq!(approve(&world, &["--yes"]).code, 0);
    world
}

#[test]
fn g14_what_was_denied_before_a_call_was_cancelled_is_on_record_with_it() {
    let world = allowed();
    let mut client = client::start(&world, &[], false, json!({}));
    client.initialize();
    let waiting = json!({ "name": "trial__wait", "arguments": {}, "_meta": { "progressToken": 1 } });
    let waiting = client.begin("tools/call", waiting);
    client.hear_of("notifications/progress");
    client.cancel(waiting);
    let is_cancelled = |event: &Value| event["error"]["code"] == "cancelled";
    wait_until("the call ends", || events(&world).iter().any(is_cancelled));
    client.end();
    let cancelled = events(&world).into_iter().find(is_cancelled).unwrap();
    assert!(cancelled["denials"].to_string().contains("waited.example wasn't reached"), "{cancelled}");
}

#[test]
fn g14_a_server_that_is_shared_tells_of_each_denial_in_the_call_of_it() {
    let world = allowed();
    let mut client = client::start(&world, &[], false, json!({}));
    client.initialize();
    for round in ["first", "second"] {
        let seen = client.call("trial__look", json!({})).to_string();
        assert!(seen.contains("192.0.2.1 wasn't reached"), "{round}: {seen}");
        let sum = add(&mut client).to_string();
        assert!(!sum.contains("192.0.2.1"), "{round}: {sum}");
    }
    client.end();
    let denials = events(&world).into_iter().filter(|event| event["denials"].to_string().contains("192.0.2.1")).count();
    assert_eq!(denials, 2, "on record with the calls that they belong to");
}

#[test]
fn g15_g16_what_a_server_writes_is_told_whatever_it_says_of_itself() {
    let world = world("workspace = 'write'");
    for path in [".git/hooks/pre-commit", ".mcp.json"] {
        let reply = call(&world, "trial__write", &json!({ "path": path, "text": "x" }));
        assert_eq!(reply["payload"]["changes"]["kept_aside"][0]["path"], path, "{reply}");
        assert!(!world.workspace().join(path).exists());
    }
    let before = world.read("hello.txt");
    let reply = call(&world, "trial__write", &json!({ "path": "hello.txt", "text": "x" }));
    assert!(
        reply["payload"]["notes"].to_string().contains("says that `write` only reads, but it changed 1 path"),
        "{reply}"
    );
    let record = events(&world).into_iter().find(|event| event["kind"] == "tool_call.completed").unwrap().to_string();
    assert!(record.contains("only reads, but it changed"), "the alarm is on record: {record}");
    let declared = world.run(&["--json", "tools", "trial__write"]).json();
    assert_eq!(declared["risk"], "high", "hints lower nothing");
    assert_eq!(world.run(&["undo", "last"]).code, 0);
    assert_eq!(world.read("hello.txt"), before);
    let outside = world.home().join(".config/toolgate/planted").display().to_string();
    for path in ["/etc/planted", "/tmp/../root/planted", outside.as_str()] {
        let reply = call(&world, "trial__write", &json!({ "path": path, "text": "x" }));
        assert!(!std::path::Path::new(path).exists(), "{path}: {reply}");
        assert!(["completed", "server_error"].contains(&recorded_end(&world, "trial__write").as_str()), "{path}");
    }
}
