//! Approvals by elicitation: what the person sees, what each answer does, and states that are not valid.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use toolgate_testkit::mcp::{delete_call, edit_call, elicitation_answer, form_elicitation, tool_error_code};

use crate::backend::McpTestServer;
use crate::stdio_client::{stateless, with, with_handshake};

/// A server on which edits need an approval.
fn careful() -> McpTestServer {
    McpTestServer::configured("[[rules]]\ndecision = \"ask\"\ntool = \"edit\"\n")
}

/// The call once more, with the state of its first result and this answer.
fn answered(call: Value, state: &Value, answer: Value) -> Value {
    with(with(call, "requestState", state.clone()), "inputResponses", json!({ "approval": answer }))
}

#[test]
fn the_person_sees_effects_and_scopes_and_the_approved_call_runs() {
    let server = careful();
    let mut client = with_handshake(&server, form_elicitation());
    client.answers = vec![elicitation_answer("yes")];
    let done = client.ask("tools/call", edit_call());
    assert!(done.get("isError").is_none() && server.read("hello.txt") == "hello\nmoon\n", "{done}");
    let asked = client.hear_of("elicitation/create");
    let message = asked["params"]["message"].as_str().unwrap();
    for part in ["May this run? edit", "write hello.txt", "this one call", "until this session ends"] {
        assert!(message.contains(part), "{part} is missing in {message}");
    }
    client.end();
    for kind in ["approval_required", "approval_granted", "tool_call.started", "tool_call.completed"] {
        assert_eq!(server.count(kind), 1, "{kind}");
    }
}

#[test]
fn every_other_answer_refuses_the_call() {
    let server = McpTestServer::start();
    for (answer, code) in [
        (elicitation_answer("no"), "approval_denied"),
        (json!({ "action": "decline" }), "approval_denied"),
        (json!({ "action": "cancel" }), "approval_required"),
        (elicitation_answer("whatever"), "approval_required"),
    ] {
        let mut client = with_handshake(&server, form_elicitation());
        client.answers = vec![answer.clone()];
        assert_eq!(tool_error_code(&client.ask("tools/call", delete_call())), code, "{answer}");
        assert_eq!(server.read("hello.txt"), "hello\nworld\n");
    }
}

#[test]
fn a_client_without_forms_is_told_that_an_approval_is_required() {
    let server = McpTestServer::start();
    for mut client in [with_handshake(&server, json!({})), stateless(&server, json!({ "elicitation": { "url": {} } }))]
    {
        assert_eq!(tool_error_code(&client.ask("tools/call", delete_call())), "approval_required");
    }
}

#[test]
fn a_yes_for_the_run_holds_for_its_client_alone() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, form_elicitation());
    client.answers = vec![elicitation_answer("run")];
    client.ask("tools/call", delete_call());
    server.backend.workspace.file("hello.txt", "again");
    assert!(client.ask("tools/call", delete_call()).get("isError").is_none(), "nobody is asked a second time");
    server.backend.workspace.file("hello.txt", "again");
    let mut other = with_handshake(&server, json!({}));
    assert_eq!(tool_error_code(&other.ask("tools/call", delete_call())), "approval_required");
}

#[test]
fn cancelling_a_call_cancels_its_question() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, form_elicitation());
    let id = client.begin("tools/call", delete_call());
    let asked = client.hear_of("elicitation/create");
    client.cancel(id);
    let cancelled = client.hear_of("notifications/cancelled");
    assert_eq!(cancelled["params"], json!({ "requestId": asked["id"], "reason": "cancelled" }));
    // An answer that comes too late changes nothing.
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": elicitation_answer("yes") }));
    client.ask("ping", json!({}));
    assert_eq!(server.read("hello.txt"), "hello\nworld\n");
}

#[test]
fn without_a_handshake_the_question_is_part_of_the_result_and_its_state_works_once() {
    let server = careful();
    let mut client = stateless(&server, form_elicitation());
    let first = client.ask("tools/call", edit_call());
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(first["inputRequests"]["approval"]["method"], "elicitation/create");
    assert_eq!(server.read("hello.txt"), "hello\nworld\n", "nothing happens before the answer");
    let again = answered(edit_call(), &first["requestState"], elicitation_answer("yes"));
    let done = client.ask("tools/call", again.clone());
    assert_eq!(done["resultType"], "complete");
    assert!(done.get("isError").is_none() && server.read("hello.txt") == "hello\nmoon\n", "{done}");
    let replayed = client.fault("tools/call", again);
    assert!(replayed["message"].as_str().unwrap().contains("used before"), "{replayed}");
    assert_eq!(server.refusals().len(), 1);
}

#[test]
fn a_state_is_valid_for_its_own_call_in_its_own_session() {
    let server = McpTestServer::start();
    server.backend.workspace.file("b.txt", "b\n");
    let mut client = stateless(&server, form_elicitation());
    let state = client.ask("tools/call", delete_call())["requestState"].clone();
    let altered = json!(format!("{}x", state.as_str().unwrap()));
    let other = json!({ "name": "delete", "arguments": { "path": "b.txt" } });
    let mut stranger = stateless(&server, form_elicitation());
    for (what, refused) in [
        ("altered", client.fault("tools/call", answered(delete_call(), &altered, elicitation_answer("yes")))),
        ("of another call", client.fault("tools/call", answered(other, &state, elicitation_answer("yes")))),
        (
            "of another session",
            stranger.fault("tools/call", answered(delete_call(), &state, elicitation_answer("yes"))),
        ),
        ("not a string", client.fault("tools/call", with(delete_call(), "requestState", json!(7)))),
    ] {
        assert_eq!(refused["code"], -32602, "{what}");
        assert!(refused["message"].as_str().unwrap().contains("refused"), "{what}: {refused}");
    }
    assert_eq!((server.read("b.txt").as_str(), server.read("hello.txt").as_str()), ("b\n", "hello\nworld\n"));
    let refusals = server.refusals();
    assert_eq!(refusals.len(), 4);
    assert!(refusals.iter().all(|refusal| refusal.code == "bad_state" && refusal.door == "mcp"));
}

#[test]
fn a_missing_answer_is_no_answer() {
    let server = McpTestServer::start();
    let mut client = stateless(&server, form_elicitation());
    let state = client.ask("tools/call", delete_call())["requestState"].clone();
    assert_eq!(
        tool_error_code(&client.ask("tools/call", with(delete_call(), "requestState", state))),
        "approval_required"
    );
    assert_eq!(server.read("hello.txt"), "hello\nworld\n");
}

#[test]
fn only_so_many_calls_are_suspended_at_a_time() {
    let server = McpTestServer::configured("[[rules]]\ndecision = \"ask\"\ntool = \"writes\"\n");
    let mut client = stateless(&server, form_elicitation());
    let call = |number: usize| json!({ "name": "writes", "arguments": { "path": format!("{number}.txt") } });
    let suspended = 64;
    for number in 0..suspended {
        assert_eq!(client.ask("tools/call", call(number))["resultType"], "input_required");
    }
    assert_eq!(client.fault("tools/call", call(suspended))["code"], -32603);
    client.end();
    assert_eq!(server.backend.writing.0.load(Ordering::SeqCst), 0, "none of them ran");
}

#[test]
fn a_no_with_a_reason_is_asked_for_in_a_second_form() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, form_elicitation());
    let reason = json!({ "action": "accept", "content": { "reason": "it is still needed" } });
    client.answers = vec![elicitation_answer("no_because"), reason];
    let refused = client.ask("tools/call", delete_call());
    assert_eq!(tool_error_code(&refused), "approval_denied", "{refused}");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("it is still needed"), "{refused}");
    assert_eq!(server.read("hello.txt"), "hello\nworld\n");
}
