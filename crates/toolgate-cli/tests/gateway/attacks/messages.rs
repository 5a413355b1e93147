//! G8 to G12: characters that command a terminal, messages that are none, lists without an end, silence, crashes, and what is left.

use std::process::Stdio;

use serde_json::{Value, json};
use toolgate_testkit::mcp::{McpClient, tool_error_code};
use toolgate_testkit::wait_until;

use super::{add, connected, events, in_mode, record, recorded_end};
use crate::servers::{approve, call, is_lingering, linger, world};
use crate::world::PROGRAM;

/// Commands a terminal, or hides what it says.
const UNSEEN: &str = "\u{1b}]0;title\u{7}\u{1b}[2Jgone\u{9b}31m\u{202e}esrever\u{e0041}\u{200b}";

/// Whether nothing of it is in a text.
#[track_caller]
fn is_clean(door: &str, text: &str) {
    for character in ['\u{1b}', '\u{9b}', '\u{202e}', '\u{e0041}', '\u{200b}', '\u{7}'] {
        assert!(!text.contains(character), "{door}: {character:?}: {text}");
    }
    for escape in ["\\u001b", "\\u0007", "\\u009b"] {
        assert!(!text.to_lowercase().contains(escape), "{door}: {text}");
    }
}

#[test]
fn g08_nothing_that_commands_a_terminal_passes_any_door() {
    let world = world("");
    let result =
        json!({ "content": [{ "type": "text", "text": UNSEEN }], "structuredContent": { "\u{1b}[1mkey": UNSEEN } });
    let reply = call(&world, "trial__result", &json!({ "result": result }));
    let ended = events(&world).into_iter().filter(|event| event["kind"] == "tool_call.completed");
    is_clean("record", &ended.map(|event| event.to_string()).collect::<String>());
    is_clean("reply", &reply.to_string());
    let failed = json!({ "result": { "isError": true, "content": [{ "type": "text", "text": UNSEEN }] } });
    is_clean("error", &call(&world, "trial__result", &failed).to_string());
    let link = json!({ "content": [{ "type": "resource_link", "uri": UNSEEN, "name": UNSEEN }, { "type": UNSEEN }] });
    is_clean("link", &call(&world, "trial__result", &json!({ "result": link })).to_string());
    is_clean("crash", &call(&world, "trial__crash", &json!({})).to_string());
    is_clean("log", &world.run(&["mcp", "logs", "trial"]).out);
    is_clean("list", &(world.run(&["tools", "--all"]).out + &world.run(&["mcp", "show", "trial"]).out));
    let printed = world.run(&["call", "--approve", "trial__result", &json!({ "result": result }).to_string()]);
    assert!(printed.out.contains("esrever"), "{printed:?}");
    is_clean("terminal", &(printed.out + &printed.err));
}

#[test]
fn g08_what_a_server_says_meanwhile_is_clean_too() {
    let world = world("");
    let mut client = connected(&world);
    let schema = json!({ "type": "object", "properties": { "colour": { "type": "string", "description": UNSEEN } } });
    let form = json!({ "params": { "mode": "form", "message": UNSEEN, "requestedSchema": schema } });
    client.answers.push(json!({ "action": "accept", "content": { "words": "blue" } }));
    client.call("trial__ask", form);
    let asked = client.hear_of("elicitation/create").to_string();
    assert!(asked.contains("esrever"), "{asked}");
    is_clean("question", &asked);
    let steps = json!({ "name": "trial__tell", "arguments": { "message": UNSEEN }, "_meta": { "progressToken": 1 } });
    client.ask("tools/call", steps);
    let told = client.hear_of("notifications/progress").to_string();
    assert!(told.contains("esrever"), "{told}");
    is_clean("progress", &told);
    client.end();
    let said = events(&world).into_iter().filter(|event| event["kind"] != "tool_call.started");
    is_clean("record", &said.map(|event| event.to_string()).collect::<String>());
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
    assert_eq!(recorded_end(&world, "trial__crash"), "server_error");
}

#[test]
fn g11_a_call_that_got_no_answer_isnt_repeated_and_one_that_ignores_its_cancel_ends() {
    let world = world("");
    let mut client = connected(&world);
    assert_eq!(tool_error_code(&client.call("trial__crash", json!({}))), "server_error");
    let seen = client.call("trial__look", json!({})).to_string();
    assert!(seen.contains(r#"\"crashes\": \"x\""#), "it was called once: {seen}");
    let waiting = client.begin("tools/call", json!({ "name": "trial__wait", "arguments": {} }));
    wait_until("it runs", || record(&world).contains(r#""tool":"trial__wait""#));
    client.cancel(waiting);
    wait_until("the call ends though the server goes on", || {
        events(&world).iter().any(|event| event["error"]["code"] == "cancelled")
    });
    client.end();
    assert_eq!(recorded_end(&world, "trial__wait"), "cancelled");
    let calls = events(&world).into_iter().filter(|event| event["kind"] == "tool_call.started").count();
    assert_eq!(calls, 3, "{}", record(&world));
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
