//! Old and new clients with old and new servers, on stdio and over HTTP: calls, questions to the person, progress, cancelling, changed
//! lists and resources come through in every pair.

use serde_json::{Value, json};
use toolgate_testkit::mcp::{McpClient, form_elicitation, tool_error_code};
use toolgate_testkit::wait_until;

use crate::client;
use crate::remote_server::{SPEAKER, SpeakerServer};
use crate::world::World;

/// A workspace with `speaker.py` as a program, in one of the protocol versions.
fn program(version: &str, settings: &str) -> World {
    let world = World::new().file("speaker.py", SPEAKER);
    let options = json!({ "version": version, "step_seconds": 0.4 }).to_string();
    let command = format!("command = ['python3', 'speaker.py', '{options}']\ndirectory = 'workspace'");
    world.put(&world.user_config(), format!("[mcp.servers.remote]\n{command}\n{settings}\n"));
    world
}

fn approved(world: &World) {
    let said = world.run(&["--json", "mcp", "approve", "remote", "--yes"]);
    assert_eq!(said.code, 0, "{said:?}");
}

fn connected(world: &World, is_stateless: bool) -> McpClient {
    approved(world);
    let mut client = client::start(world, &["--preset", "full"], is_stateless, form_elicitation());
    if !is_stateless {
        client.initialize();
    }
    client
}

/// Everything that has to come through, for one pair.
fn everything_comes_through(world: &World, is_stateless: bool, pair: &str) {
    let mut client = connected(world, is_stateless);
    let sum = client.call("remote__add", json!({ "a": 2, "b": 3 }));
    assert!(sum["content"][0]["text"].as_str().unwrap().contains("\n5\n"), "{pair}: {sum}");
    progress_comes_through(&mut client, pair);
    resources_come_through(&mut client, pair);
    question_comes_through(&mut client, is_stateless, pair);
    cancelling_comes_through(&mut client, pair);
    list_changes_come_through(&mut client, is_stateless, pair);
    let changed = client.call("remote__add", json!({ "a": 2, "b": 3 }));
    assert_eq!(tool_error_code(&changed), "definition_changed", "{pair}");
    client.end();
    let record = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    for kind in ["question_asked", "question_answered", "display", "\"code\":\"definition_changed\""] {
        assert!(record.contains(kind), "{pair}: {kind} is on record");
    }
}

fn progress_comes_through(client: &mut McpClient, pair: &str) {
    let params = json!({ "name": "remote__steps", "arguments": {}, "_meta": { "progressToken": "mine" } });
    let done = client.ask("tools/call", params);
    assert!(done["content"][0]["text"].as_str().unwrap().contains("all steps"), "{pair}: {done}");
    let heard: Vec<&Value> = client.heard.iter().filter(|told| told["method"] == "notifications/progress").collect();
    let words: Vec<&str> = heard.iter().filter_map(|told| told["params"]["message"].as_str()).collect();
    assert!(words.iter().any(|words| words.contains("remote: 2 of 3: step 2")), "{pair}: {words:?}");
    assert!(heard.iter().all(|told| told["params"]["progressToken"] == "mine"), "{pair}");
}

fn resources_come_through(client: &mut McpClient, pair: &str) {
    let listed = client.call("mcp_resources", json!({ "server": "remote" }))["structuredContent"].clone();
    let resource = &listed["resources"][0];
    assert_eq!((&resource["name"], &resource["description"]), (&json!("A note"), &json!("red")), "{pair}: {listed}");
    let read = client.call("mcp_read", json!({ "server": "remote", "link": resource["link"] }));
    assert!(read["content"][0]["text"].as_str().unwrap().contains("what note://1 says"), "{pair}: {read}");
    let linked = client.call("remote__link", json!({}));
    let text = linked.to_string();
    let link = text.split("by the link `").nth(1).and_then(|rest| rest.split('`').next());
    let link = link.unwrap_or_else(|| panic!("{pair}: {linked}"));
    let read = client.call("mcp_read", json!({ "server": "remote", "link": link }));
    assert!(read["content"][0]["text"].as_str().unwrap().contains("what note://7 says"), "{pair}: {read}");
}

fn question_comes_through(client: &mut McpClient, is_stateless: bool, pair: &str) {
    let answer = json!({ "action": "accept", "content": { "words": "blue" } });
    let said = match is_stateless {
        false => {
            client.answers.push(answer);
            client.call("remote__ask", json!({}))
        }
        true => {
            let call = json!({ "name": "remote__ask", "arguments": {} });
            let asked = client.ask("tools/call", call.clone());
            assert_eq!(asked["resultType"], "input_required", "{pair}: {asked}");
            let name = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
            assert!(
                asked["inputRequests"].to_string().contains("The MCP server `remote` asks: Which colour?"),
                "{asked}"
            );
            let mut again = call;
            again["requestState"] = asked["requestState"].clone();
            again["inputResponses"] = json!({ name: answer });
            client.ask("tools/call", again)
        }
    };
    assert!(
        said.to_string().contains(r#"{\"action\": \"accept\", \"content\": {\"colour\": \"blue\"}}"#),
        "{pair}: {said}"
    );
}

/// The server changes a tool: the client hears of it, and isn't told of that tool any more.
fn list_changes_come_through(client: &mut McpClient, is_stateless: bool, pair: &str) {
    if is_stateless {
        let wanted = json!({ "notifications": { "toolsListChanged": true, "resourcesListChanged": true } });
        client.begin("subscriptions/listen", wanted);
        client.hear_of("notifications/subscriptions/acknowledged");
    }
    assert!(listed(client).contains(&"remote__add".to_owned()), "{pair}");
    client.call("remote__change", json!({}));
    client.hear_of("notifications/tools/list_changed");
    client.hear_of("notifications/resources/list_changed");
    let now = listed(client);
    assert!(!now.contains(&"remote__add".to_owned()) && now.contains(&"remote__steps".to_owned()), "{pair}: {now:?}");
}

fn listed(client: &mut McpClient) -> Vec<String> {
    let tools = client.ask("tools/list", json!({}));
    tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn cancelling_comes_through(client: &mut McpClient, pair: &str) {
    let waiting = client.begin("tools/call", json!({ "name": "remote__wait", "arguments": {} }));
    // It is running when something after it was answered.
    client.call("remote__add", json!({ "a": 0, "b": 0 }));
    client.cancel(waiting);
    wait_until("the server hears of it", || {
        let said = client.call("remote__stopped", json!({}));
        !said["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{pair}: {said}")).contains("\n[]\n")
    });
}

#[test]
fn old_clients_with_old_servers() {
    everything_comes_through(&program("handshake", ""), false, "old client, old program");
}

#[test]
fn old_clients_with_new_servers() {
    everything_comes_through(&program("stateless", ""), false, "old client, new program");
}

#[test]
fn new_clients_with_old_servers() {
    everything_comes_through(&program("handshake", ""), true, "new client, old program");
}

#[test]
fn new_clients_with_new_servers() {
    everything_comes_through(&program("stateless", ""), true, "new client, new program");
}

#[test]
fn what_a_person_approves_meanwhile_is_offered_and_told() {
    for is_stateless in [false, true] {
        let world = program("handshake", "");
        let approve =
            |what: &[&str]| world.run(&[&["--json", "mcp", "approve", "remote", "--yes"], what].concat()).code;
        assert_eq!(approve(&["steps"]), 0);
        let mut client = client::start(&world, &["--preset", "full"], is_stateless, form_elicitation());
        match is_stateless {
            false => drop(client.initialize()),
            true => {
                client.begin("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
            }
        }
        assert!(!listed(&mut client).contains(&"remote__add".to_owned()));
        assert_eq!(tool_error_code(&client.call("remote__add", json!({ "a": 1, "b": 2 }))), "unknown_tool");
        assert_eq!(approve(&["add"]), 0);
        client.hear_of("notifications/tools/list_changed");
        assert!(listed(&mut client).contains(&"remote__add".to_owned()));
        assert_eq!(client.call("remote__add", json!({ "a": 1, "b": 2 }))["isError"], Value::Null);
        client.end();
    }
}

#[test]
fn a_server_uses_the_clients_model_only_where_that_is_configured() {
    for (version, is_stateless) in
        [("handshake", false), ("stateless", false), ("handshake", true), ("stateless", true)]
    {
        let pair = format!("{version}, new client: {is_stateless}");
        let off = sampled(version, is_stateless, "", json!({ "elicitation": {}, "sampling": {} }));
        assert!(off.0.contains("Sampling is off") && off.0.contains("sampling = true"), "{pair}: {}", off.0);
        let without = sampled(version, is_stateless, "sampling = true", form_elicitation());
        assert!(without.0.contains("has no model for servers"), "{pair}: {}", without.0);
        let on = sampled(version, is_stateless, "sampling = true", json!({ "elicitation": {}, "sampling": {} }));
        assert!(on.0.contains("forty-two"), "{pair}: {}", on.0);
        assert!(on.1.contains(r"What is six times seven?") && on.1.contains(r#""includeContext":"none""#), "{}", on.1);
        assert!(on.1.contains(r#""maxTokens":4096"#), "{pair}: bounded: {}", on.1);
        for words in ["asks the client's model", "The client's model answers", "forty-two"] {
            assert!(on.2.contains(words), "{pair}: `{words}` is on record");
        }
        assert!(!off.2.contains("asks the client's model"), "{pair}");
    }
}

/// A call of a tool that asks the client's model: what the caller is told, what the model was asked, and the record.
fn sampled(version: &str, is_stateless: bool, settings: &str, capabilities: Value) -> (String, String, String) {
    let world = program(version, settings);
    approved(&world);
    let mut client = client::start(&world, &["--preset", "full"], is_stateless, capabilities);
    let answer = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "forty-two" } });
    let mut asked = Value::Null;
    let said = match is_stateless {
        false => {
            client.initialize();
            client.answers.push(answer);
            client.call("remote__sample", json!({}))
        }
        true => {
            let mut call = json!({ "name": "remote__sample", "arguments": {} });
            let first = client.ask("tools/call", call.clone());
            match first["resultType"] == "input_required" {
                true => {
                    asked = first["inputRequests"]["sample"].clone();
                    assert_eq!(asked["method"], "sampling/createMessage", "{first}");
                    call["requestState"] = first["requestState"].clone();
                    call["inputResponses"] = json!({ "sample": answer });
                    client.ask("tools/call", call)
                }
                false => first,
            }
        }
    };
    let heard = client.heard.iter().find(|heard| heard["method"] == "sampling/createMessage").cloned();
    client.end();
    let record = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    (said.to_string(), heard.unwrap_or(asked).to_string(), record)
}

#[test]
fn old_servers_elsewhere() {
    let server = SpeakerServer::start(json!({ "version": "handshake" }));
    let world = server.world("");
    everything_comes_through(&world, false, "old client, old server elsewhere");
    let called = server.messages("tools/call");
    assert!(called.iter().all(|request| request["headers"]["mcp-session-id"].is_string()), "{called:?}");
    assert!(called.iter().all(|request| request["headers"]["mcp-protocol-version"] == "2025-11-25"), "{called:?}");
    wait_until("the session is ended", || server.requests().iter().any(|request| request["method"] == "DELETE"));
}

#[test]
fn old_servers_elsewhere_with_new_clients() {
    let server = SpeakerServer::start(json!({ "version": "handshake" }));
    everything_comes_through(&server.world(""), true, "new client, old server elsewhere");
}

#[test]
fn new_servers_elsewhere_with_old_clients() {
    let server = SpeakerServer::start(json!({ "version": "stateless" }));
    everything_comes_through(&server.world(""), false, "old client, new server elsewhere");
}

#[test]
fn new_servers_elsewhere() {
    let server = SpeakerServer::start(json!({ "version": "stateless" }));
    let world = server.world("");
    everything_comes_through(&world, true, "new client, new server elsewhere");
    let called = server.messages("tools/call");
    assert!(
        called.iter().all(|request| request["headers"]["mcp-name"] == request["body"]["params"]["name"]),
        "{called:?}"
    );
}

#[test]
fn a_call_goes_on_while_the_server_says_that_it_works() {
    let world = program("handshake", "timeout_seconds = 1");
    let mut client = connected(&world, false);
    let done = client.call("remote__steps", json!({}));
    assert!(done["content"][0]["text"].as_str().unwrap().contains("all steps"), "longer than its limit: {done}");
    let late = client.call("remote__wait", json!({}));
    assert_eq!(tool_error_code(&late), "timeout", "{late}");
    client.end();
}

#[test]
fn a_server_elsewhere_is_reached_only_as_policy_lets_it() {
    let server = SpeakerServer::start(json!({ "version": "handshake" }));
    let world = server.world("");
    approved(&world);
    let call = |world: &World| world.run(&["--json", "call", "--approve", "remote__add", r#"{"a":1,"b":2}"#]).json();
    assert_eq!(call(&world)["ok"], true);
    let before = server.requests().len();
    let config = std::fs::read_to_string(world.user_config()).unwrap();
    world.put(&world.user_config(), config.replace("'allow', host", "'deny', host"));
    let refused = call(&world);
    assert_eq!(refused["error"]["code"], "network_denied", "{refused}");
    assert_eq!(server.requests().len(), before, "nothing was sent");
    let record = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    assert!(record.contains("network_denied"), "{record}");
}

#[test]
fn nothing_is_sent_to_where_a_server_redirects() {
    let other = SpeakerServer::start(json!({ "version": "handshake" }));
    let server = SpeakerServer::start(json!({ "version": "handshake", "redirect": other.url("/mcp") }));
    let world = server.world("bearer = 'env:REMOTE_TOKEN'");
    let mut command = world.command(crate::world::PROGRAM);
    command.env("REMOTE_TOKEN", "token-of-the-person");
    let said = crate::world::Said::from(command.args(["mcp", "approve", "remote", "--yes"]).output().unwrap());
    assert_ne!(said.code, 0, "{said:?}");
    assert!(other.requests().is_empty(), "the token went nowhere else");
    assert_eq!(server.requests()[0]["headers"]["authorization"], "Bearer token-of-the-person");
}

#[test]
fn a_lost_answer_is_told_and_the_call_isnt_repeated() {
    let server = SpeakerServer::start(json!({ "version": "handshake", "drop": true }));
    let world = server.world("");
    approved(&world);
    let lost = world.run(&["--json", "call", "--approve", "remote__change", "{}"]).json();
    assert_eq!(lost["error"]["code"], "server_error", "{lost}");
    assert!(lost["error"]["message"].as_str().unwrap().contains("may have had its effect"), "{lost}");
    assert_eq!(server.messages("tools/call").len(), 1);
}

/// What a client's model gets of a call.
fn shown(client: &mut McpClient, tool: &str, args: Value) -> String {
    let result = client.call(tool, args);
    assert_ne!(result["isError"], true, "{tool}: {result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn in_a_dialect_resources_are_listed_and_read_as_its_client_does() {
    let world = program("handshake", "");
    approved(&world);
    let start = |dialect: &str| {
        let mut client = client::start(&world, &["--preset", "full", "--dialect", dialect], false, json!({}));
        client.initialize();
        client
    };
    let mut claude = start("claude");
    let listed: Value =
        serde_json::from_str(&shown(&mut claude, "ListMcpResourcesTool", json!({ "server": "remote" }))).unwrap();
    assert_eq!((&listed[0]["server"], &listed[0]["name"]), (&json!("remote"), &json!("A note")), "{listed}");
    let read = json!({ "server": "remote", "uri": listed[0]["uri"] });
    let read: Value = serde_json::from_str(&shown(&mut claude, "ReadMcpResourceTool", read)).unwrap();
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("what note://1 says"), "{read}");
    let address = claude.call("ReadMcpResourceTool", json!({ "server": "remote", "uri": "note://1" }));
    assert_eq!(address["isError"], true, "an address isn't taken from a model: {address}");
    let all = shown(&mut claude, "ListMcpResourcesTool", json!({}));
    assert_eq!(all, Value::Array(vec![listed[0].clone()]).to_string(), "without a name, those of all servers");
    let sum = shown(&mut claude, "mcp__remote__add", json!({ "a": 2, "b": 3 }));
    assert!(sum.contains("\n5\n"), "the server's text as it is: {sum}");
    claude.end();
    for dialect in ["codex", "codex-2026-01", "opencode"] {
        let mut client = start(dialect);
        let page = shown(&mut client, "list_mcp_resources", json!({ "server": "remote" }));
        let page: Value = serde_json::from_str(&page).unwrap();
        let read = json!({ "server": "remote", "uri": page["resources"][0]["uri"] });
        let read: Value = serde_json::from_str(&shown(&mut client, "read_mcp_resource", read)).unwrap();
        assert_eq!((&page["server"], &read["server"]), (&json!("remote"), &json!("remote")), "{dialect}: {page}");
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("what note://1 says"), "{dialect}: {read}");
        client.end();
    }
    let mut gemini = start("gemini");
    let listed = shown(&mut gemini, "list_mcp_resources", json!({ "serverName": "remote" }));
    let line = listed.strip_prefix("Available MCP Resources:\n- ").unwrap_or_else(|| panic!("{listed}"));
    let (uri, rest) = line.split_once(" | ").unwrap();
    assert_eq!((uri.starts_with("remote:"), rest), (true, "A note | red"), "{listed}");
    let read = shown(&mut gemini, "read_mcp_resource", json!({ "uri": uri }));
    assert!(read.contains("what note://1 says"), "{read}");
    gemini.end();
}
