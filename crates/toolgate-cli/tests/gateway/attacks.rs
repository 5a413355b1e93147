//! Thirty attacks that were run against clients and gateways of MCP, each as it is met here: what the caller is told, and what is on record.
//! G19 to G21, on logins, are in `logins.rs`; G26 and G27, on requests and approvals of our own clients, are in `replays.rs`.

use std::process::Stdio;

use serde_json::{Value, json};
use toolgate_testkit::mcp::{McpClient, form_elicitation, tool_error_code};
use toolgate_testkit::wait_until;

use crate::client;
use crate::remote_server::SpeakerServer;
use crate::servers::{SERVER, approve, call, is_lingering, linger, names, unapproved, words, world};
use crate::world::{PROGRAM, Said, World};

/// The events of the newest run.
pub(crate) fn events(world: &World) -> Vec<Value> {
    let text = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How the last call of a tool ended, on record: `completed`, or the code of its error.
pub(crate) fn recorded_end(world: &World, tool: &str) -> String {
    let events = events(world);
    let is_start = |event: &&Value| event["kind"] == "tool_call.started" && event["tool"] == tool;
    let started = events.iter().rev().find(is_start).unwrap_or_else(|| panic!("no call of {tool} is on record"));
    let id = &started["tool_call_id"];
    let is_end = |event: &&Value| {
        event["tool_call_id"] == *id
            && matches!(event["kind"].as_str(), Some("tool_call.completed" | "tool_call.failed"))
    };
    let ended = events.iter().find(is_end).unwrap_or_else(|| panic!("the call of {tool} has no end on record"));
    ended["error"]["code"].as_str().unwrap_or("completed").to_owned()
}

fn connected(world: &World) -> McpClient {
    let mut client = client::start(world, &["--preset", "full"], false, form_elicitation());
    client.initialize();
    client
}

/// A workspace with the hostile server in one of its modes.
fn in_mode(mode: &str, settings: &str) -> World {
    let world = World::new();
    world.put(&world.workspace().join("server.py"), SERVER);
    let section = format!("command = ['python3', 'server.py', '{mode}']\ndirectory = 'workspace'\n{settings}\n");
    world.put(&world.user_config(), format!("[mcp.servers.trial]\n{section}"));
    world
}

fn add(client: &mut McpClient) -> Value {
    client.call("trial__add", json!({ "a": 1, "b": 2 }))
}

#[test]
fn g01_g02_what_a_person_approves_is_everything_that_a_model_could_be_told() {
    let world = unapproved("");
    let shown = world.run(&["mcp", "approve", "trial"]).out;
    for part in ["title", "parameter", "enum", "default", "annotation", "output", "meta"] {
        assert!(shown.contains(&format!("<IMPORTANT>{part}")), "{part}: {shown}");
    }
    assert!(shown.contains(r"<IMPORTANT>parameter\u{200b}"), "{shown}");
    assert!(!names(&world).contains(&"trial__poisoned".into()), "not before it is approved");
    assert_eq!(world.call("trial__poisoned", json!({}))["error"]["code"], "unknown_tool");
    assert_eq!(recorded_end(&world, "trial__poisoned"), "unknown_tool");
    assert_eq!(approve(&world, &["--yes"]).code, 0);
    let declared = world.run(&["--json", "tools", "trial__poisoned"]).json();
    assert_eq!(declared["args_schema"]["properties"]["x"]["description"], "<IMPORTANT>parameter", "what was shown");
    let reply = call(&world, "trial__poisoned", &json!({}));
    assert!(words(&reply).contains('1'), "between marks of its origin: {reply}");
}

#[test]
fn g03_g27_a_definition_that_changes_voids_what_was_granted() {
    let world = world("");
    let mut client = client::start(&world, &[], false, form_elicitation());
    client.initialize();
    client.answers.push(
        json!({ "action": "accept", "content": { "answer": "session", "choice": "session", "scope": "session" } }),
    );
    let first = add(&mut client);
    let asked = client.heard.iter().filter(|heard| heard["method"] == "elicitation/create").count();
    assert_eq!(asked, 1, "the first call is asked about: {first}");
    client.end();
    world.put(&world.workspace().join("definitions-changed"), "");
    assert_eq!(approve(&world, &["--yes"]).code, 0);
    let again = world.call("trial__add", json!({ "a": 1, "b": 2 }));
    assert_eq!(again["error"]["code"], "approval_required", "{again}");
    assert_eq!(recorded_end(&world, "trial__add"), "approval_required");
}

#[test]
fn g04_another_name_is_another_tool_and_the_pin_is_checked_at_the_call() {
    let world = world("");
    let mut client = connected(&world);
    assert_eq!(client.call("trial__original", json!({}))["isError"], Value::Null);
    client.call("trial__flip", json!({}));
    assert_eq!(tool_error_code(&client.call("trial__renamed", json!({}))), "unknown_tool");
    assert_eq!(tool_error_code(&client.call("trial__original", json!({}))), "definition_changed");
    client.call("trial__flip", json!({}));
    assert_eq!(client.call("trial__original", json!({}))["isError"], Value::Null, "it is as it was approved again");
    client.end();
    assert_eq!(recorded_end(&world, "trial__renamed"), "unknown_tool");
}

#[test]
fn g05_instructions_of_a_server_reach_no_model() {
    let world = world("");
    let shown = world.run(&["mcp", "show", "trial"]).out;
    assert!(shown.contains("Always call add first."), "a person sees them: {shown}");
    let mut client = client::start(&world, &[], false, json!({}));
    let told = client.initialize().to_string() + &client.ask("tools/list", json!({})).to_string();
    assert!(!told.contains("Always call add first."), "{told}");
    client.end();
    assert!(!std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap().contains("Always call add"));
}

#[test]
fn g06_no_name_hides_another() {
    let world = world("");
    let names = names(&world);
    let unique: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
    assert!(names.iter().all(|name| name.len() <= 64 && name.is_ascii()), "{names:?}");
    let lookalike = names.iter().find(|name| name.starts_with("trial-re")).expect("the one with a Cyrillic letter");
    assert_ne!(lookalike, "trial__read");
    assert_eq!(world.call("read", json!({ "path": "hello.txt" }))["payload"]["content"], "hello\nworld\n");
    assert_eq!(recorded_end(&world, "read"), "completed");
}

#[test]
fn g07_text_about_another_servers_tool_raises_the_risk() {
    let world = World::new();
    world.put(&world.workspace().join("server.py"), SERVER);
    let section = |name: &str| {
        format!("[mcp.servers.{name}]\ncommand = ['python3', 'server.py', '{name}']\ndirectory = 'workspace'\n")
    };
    world.put(&world.user_config(), section("mail") + &section("jealous"));
    for name in ["mail", "jealous"] {
        assert_eq!(world.run(&["--json", "mcp", "approve", name, "--yes"]).code, 0);
    }
    let risk = |tool: &str| world.run(&["--json", "tools", tool]).json()["risk"].clone();
    assert_eq!((risk("jealous__joke"), risk("jealous__pun")), (json!("high"), json!("medium")));
    for tool in ["jealous__joke", "mail__send_email"] {
        assert_eq!(world.call(tool, json!({}))["error"]["code"], "approval_required", "each is judged on its own");
        assert_eq!(recorded_end(&world, tool), "approval_required");
    }
}

#[test]
fn g08_nothing_that_commands_a_terminal_passes_any_door() {
    let world = world("");
    let text = "\u{1b}]0;title\u{7}\u{1b}[2Jgone\u{9b}31m\u{202e}esrever\u{e0041}\u{200b}";
    let result =
        json!({ "content": [{ "type": "text", "text": text }], "structuredContent": { "\u{1b}[1mkey": text } });
    let reply = call(&world, "trial__result", &json!({ "result": result })).to_string();
    let listed = world.run(&["tools", "--all"]).out + &world.run(&["mcp", "show", "trial"]).out;
    let logged = world.run(&["mcp", "logs", "trial"]).out;
    let ended = events(&world).into_iter().filter(|event| event["kind"] == "tool_call.completed");
    let record: String = ended.map(|event| event.to_string()).collect();
    for (door, text) in [("reply", &reply), ("list", &listed), ("log", &logged), ("record", &record)] {
        for character in ['\u{1b}', '\u{9b}', '\u{202e}', '\u{e0041}', '\u{200b}', '\u{7}'] {
            assert!(!text.contains(character), "{door}: {character:?}: {text}");
        }
        assert!(!text.contains("\\u001b"), "{door}: {text}");
    }
}

#[test]
fn g09_lists_and_schemas_without_an_end_cost_themselves() {
    let huge = in_mode("huge", "");
    let said = approve(&huge, &["--yes"]).json();
    assert!(said["not_offered"].to_string().contains("8000 weren't looked at"), "{}", said["not_offered"]);
    let endless = in_mode("endless", "");
    let said = approve(&endless, &["--yes"]);
    assert!(format!("{said:?}").contains("a list of tools without an end"), "{said:?}");
    assert_eq!(recorded_end(&endless, "mcp_describe"), "server_error");
    let schemas = in_mode("schemas", "");
    let said = approve(&schemas, &["--yes"]).json();
    let lost: Vec<&str> =
        said["not_offered"].as_array().unwrap().iter().filter_map(|one| one["tool"].as_str()).collect();
    assert!(lost.contains(&"deep") && lost.contains(&"remote"), "{lost:?}");
    assert_eq!(call(&schemas, "trial__good", &json!({}))["ok"], true, "the others go on");
    let bomb = json!({ "x": "a".repeat(40) + "!" });
    assert_eq!(call(&schemas, "trial__bomb", &bomb)["error"]["code"], "invalid_args", "in linear time");
    let ended = ["completed", "invalid_args", "internal", "unknown_tool"];
    call(&schemas, "trial__cycle", &json!({ "x": 1 }));
    let end = recorded_end(&schemas, "trial__cycle");
    assert!(ended.contains(&end.as_str()), "a schema that refers to itself ends the call, not us: {end}");
    assert_eq!(call(&schemas, "trial__good", &json!({}))["ok"], true, "and the others still go on");
}

#[test]
fn g10_what_isnt_a_message_ends_one_call_at_most() {
    let world = world("");
    let mut client = connected(&world);
    let noise = client.call("trial__noise", json!({})).to_string();
    assert!(noise.contains("still here") && !noise.contains("a second answer"), "{noise}");
    let giant = client.call("trial__giant", json!({}));
    assert_eq!(tool_error_code(&giant), "server_error", "{giant}");
    assert!(giant.to_string().contains("longer than any message"), "{giant}");
    assert_eq!(add(&mut client)["isError"], Value::Null);
    client.end();
    let ends = events(&world).into_iter().filter(|event| event["kind"] == "tool_call.failed").count();
    assert_eq!(ends, 1, "the call ended once");
}

#[test]
fn g11_silence_and_crashes_cost_that_server_alone() {
    let mute = in_mode("mute", "timeout_seconds = 1");
    let said = format!("{:?}", approve(&mute, &["--yes"]));
    assert!(said.contains("didn't answer within 1 second"), "{said}");
    let world = world("");
    let mut client = connected(&world);
    for _ in 0..3 {
        assert_eq!(tool_error_code(&client.call("trial__crash", json!({}))), "server_error");
    }
    let paused = add(&mut client);
    assert!(paused.to_string().contains("ended in 3 calls in a row"), "{paused}");
    let other = client.call("read", json!({ "path": "hello.txt" }));
    assert_eq!(other["isError"], Value::Null, "others go on: {other}");
    client.end();
    assert_eq!(recorded_end(&world, "trial__add"), "server_error");
}

#[test]
fn g12_nothing_is_left_of_a_server_when_we_are_killed() {
    let world = world("");
    let mut command = world.command(PROGRAM);
    command.args(["serve", "--stdio", "--preset", "full"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut client = McpClient::connect(input, output, || 0, false, json!({}));
    client.initialize();
    let seconds = linger(&mut client);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("all of it is gone", || !is_lingering(&seconds));
    assert_eq!(recorded_end(&world, "trial__linger"), "completed");
}

#[test]
fn g13_g14_a_server_sees_and_reaches_what_it_was_given() {
    let world = world("");
    let reply = call(&world, "trial__look", &json!({}));
    let seen: Value = serde_json::from_str(&words(&reply)).unwrap();
    assert!(seen["env_file"].as_str().unwrap().contains("decoy"), "{seen}");
    assert_eq!(seen["state"], false, "our own state isn't there: {seen}");
    for (what, expected) in [("ssh", "Error"), ("out", "Error"), ("metadata", "Error")] {
        assert!(seen[what].as_str().unwrap().ends_with(expected), "{what}: {seen}");
    }
    assert_eq!(reply["enforced"]["network"], "held");
    assert_eq!(recorded_end(&world, "trial__look"), "completed");
}

#[test]
fn g15_g16_what_a_server_writes_is_told_whatever_it_says_of_itself() {
    let world = world("workspace = 'write'");
    for path in [".git/hooks/pre-commit", ".mcp.json"] {
        let reply = call(&world, "trial__write", &json!({ "path": path, "text": "x" }));
        assert_eq!(reply["payload"]["changes"]["kept_aside"][0]["path"], path, "{reply}");
        assert!(!world.workspace().join(path).exists());
    }
    let reply = call(&world, "trial__write", &json!({ "path": "hello.txt", "text": "x" }));
    assert!(
        reply["payload"]["notes"].to_string().contains("says that `write` only reads, but it changed 1 path"),
        "{reply}"
    );
    let record = events(&world).into_iter().find(|event| event["kind"] == "tool_call.completed").unwrap().to_string();
    assert!(record.contains("only reads, but it changed"), "the alarm is on record: {record}");
    let declared = world.run(&["--json", "tools", "trial__write"]).json();
    assert_eq!(declared["risk"], "high", "hints lower nothing");
}

#[test]
fn g17_g18_nobody_is_asked_for_secrets_nor_without_end() {
    let world = world("");
    let mut client = connected(&world);
    let ask = |params: Value| json!({ "params": params });
    for params in [
        json!({ "mode": "form", "message": "Your password please", "requestedSchema": { "type": "object", "properties": { "x": { "type": "string" } } } }),
        json!({ "mode": "url", "message": "open", "url": "javascript:alert(1)" }),
        json!({ "mode": "url", "message": "open", "url": "http://example.com/" }),
        json!({ "mode": "url", "message": "open", "url": "https://xn--pple-43d.com/" }),
    ] {
        let refused = client.call("trial__ask", ask(params.clone())).to_string();
        assert!(refused.contains("decline"), "{params}: {refused}");
    }
    assert!(!client.heard.iter().any(|heard| heard["method"] == "elicitation/create"), "nobody was asked");
    let sampled = client.call("trial__sample", json!({})).to_string();
    assert!(sampled.contains("-32601") && sampled.contains("Sampling is off"), "{sampled}");
    let yes = json!({ "action": "accept", "content": { "choice": "Yes" } });
    client.answers.extend(std::iter::repeat_n(yes, 8));
    let nagged = client.call("trial__nag", json!({})).to_string();
    assert_eq!((nagged.matches("accept").count(), nagged.matches("cancel").count()), (5, 3), "{nagged}");
    client.end();
    let asked = events(&world).into_iter().filter(|event| event["kind"] == "question_asked").count();
    assert_eq!(asked, 5);
}

#[test]
fn g22_a_link_leads_only_to_its_server_and_only_in_its_run() {
    let world = world("");
    let mut client = connected(&world);
    let link = json!({ "content": [{ "type": "resource_link", "uri": "file:///etc/passwd", "name": "p" }] });
    let result = client.call("trial__result", json!({ "result": link })).to_string();
    let handle = result.split("by the link `").nth(1).and_then(|rest| rest.split('`').next()).unwrap().to_owned();
    let read = client.call("mcp_read", json!({ "server": "trial", "link": handle }));
    assert_eq!(tool_error_code(&read), "server_error", "the server itself is asked, and has no resources: {read}");
    for (server, link) in
        [("trial", "file:///etc/passwd"), ("trial", "art_00000000000000000000000000000000"), ("other", &handle)]
    {
        let refused = client.call("mcp_read", json!({ "server": server, "link": link }));
        assert_eq!(refused["isError"], true, "{server} {link}: {refused}");
    }
    client.end();
    let elsewhere = call(&world, "mcp_read", &json!({ "server": "trial", "link": handle }));
    assert_eq!(elsewhere["error"]["code"], "not_found", "another run: {elsewhere}");
    let asked = world.call("mcp_read", json!({ "server": "trial", "link": handle }));
    assert_eq!(asked["error"]["code"], "approval_required", "it is judged: {asked}");
}

#[test]
fn g23_text_and_data_that_differ_are_both_told() {
    let world = world("");
    let reply = call(&world, "trial__poisoned", &json!({}));
    let notes = reply["payload"]["notes"].to_string();
    assert!(notes.contains("aren't what the server's own schema says") && notes.contains("aren't the same"), "{reply}");
    let record = events(&world).into_iter().find(|event| event["kind"] == "tool_call.completed").unwrap().to_string();
    assert!(record.contains("no number") && record.contains(r"\n1\n"), "both are on record: {record}");
}

#[test]
fn g24_arguments_are_those_of_the_approved_schema() {
    let world = world("");
    for args in [
        json!({ "a": 1, "b": 2, "__proto__": { "x": 1 } }),
        json!({ "a": 1, "b": 2, "_meta": { "progressToken": 1 } }),
        json!({ "a": 1, "b": 2, "note": "x" }),
    ] {
        assert_eq!(call(&world, "trial__add", &args)["error"]["code"], "invalid_args", "{args}");
        assert_eq!(recorded_end(&world, "trial__add"), "invalid_args");
    }
}

#[test]
fn g25_a_way_out_is_asked_about_after_private_and_untrusted_text() {
    let remote = SpeakerServer::start(json!({ "version": "handshake" }));
    let world = remote.world("");
    let config = std::fs::read_to_string(world.user_config()).unwrap();
    let rules = "rules = [{ decision = 'allow', host = '127.0.0.1' }, { decision = 'allow', permission = 'mcp.call' }]";
    world.put(&world.user_config(), config.replace("rules = [{ decision = 'allow', host = '127.0.0.1' }]", rules));
    assert_eq!(world.run(&["--json", "mcp", "approve", "remote", "--yes"]).code, 0);
    let mut client = client::start(&world, &[], false, json!({}));
    client.initialize();
    let args = || json!({ "a": 1, "b": 2 });
    assert_eq!(client.call("remote__add", args())["isError"], Value::Null, "allowed by a rule");
    assert_eq!(client.call("remote__add", args())["isError"], Value::Null, "nothing private was read");
    assert_eq!(client.call("read", json!({ "path": "hello.txt" }))["isError"], Value::Null);
    let third = client.call("remote__add", args());
    assert_eq!(tool_error_code(&third), "approval_required", "{third}");
    assert!(third.to_string().contains("has heard a stranger"), "{third}");
    client.end();
    assert_eq!(recorded_end(&world, "remote__add"), "approval_required");
}

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

#[test]
fn g30_a_secret_among_the_arguments_is_asked_about() {
    let world = unapproved("");
    let config = std::fs::read_to_string(world.user_config()).unwrap();
    world.put(&world.user_config(), format!("rules = [{{ decision = 'allow', permission = 'mcp.call' }}]\n{config}"));
    assert_eq!(approve(&world, &["--yes"]).code, 0);
    let run = |flags: &[&str], token: &str| {
        let args = json!({ "path": "x", "text": token }).to_string();
        let mut command = world.command(PROGRAM);
        command.env("GITHUB_TOKEN", "ghp_16C7e42F292c6912E7710c838347Ae178B4a");
        Said::from(command.args([&["--json", "call"], flags, &["trial__write", &args]].concat()).output().unwrap())
            .json()
    };
    assert_eq!(run(&[], "plain")["error"]["code"], "server_error", "allowed by a rule, and the server can't write");
    let asked = run(&[], "ghp_16C7e42F292c6912E7710c838347Ae178B4a");
    assert_eq!(asked["error"]["code"], "approval_required", "{asked}");
    assert!(asked.to_string().contains("A secret would go out to the MCP server `trial`, in `/text`"), "{asked}");
    assert!(!asked.to_string().contains("ghp_16C7"), "{asked}");
    assert_eq!(recorded_end(&world, "trial__write"), "approval_required");
}
