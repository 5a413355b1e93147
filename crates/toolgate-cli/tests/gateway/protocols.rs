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
    client.call("remote__change", json!({}));
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
