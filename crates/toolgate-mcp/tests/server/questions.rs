//! The agent's own questions, put to the person at the client.

use serde_json::{Value, json};
use toolgate_testkit::mcp::{form_elicitation, tool_error_code};

use crate::backend::McpTestServer;
use crate::stdio_client::{stateless, with, with_handshake};

fn ask() -> Value {
    let choices = json!([{ "label": "left", "description": "along the river" }, { "label": "right" }]);
    json!({ "name": "ask", "arguments": { "question": "Which way?", "choices": choices } })
}

fn says(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[test]
fn a_question_is_shown_as_a_form_and_answered_by_choice_or_in_words() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, form_elicitation());
    let own_words = says(json!({ "choice": "(in my own words)" }));
    client.answers = vec![says(json!({ "choice": "right" })), own_words, says(json!({ "words": "straight on" }))];
    let chosen = client.ask("tools/call", ask());
    assert_eq!(chosen["structuredContent"], json!({ "answer": "right", "choice": 1 }), "{chosen}");
    let said = client.ask("tools/call", ask());
    assert_eq!(said["structuredContent"], json!({ "answer": "straight on" }), "{said}");
    let asked = client.hear_of("elicitation/create");
    assert_eq!(asked["params"]["message"], "Which way?");
    let choice = &asked["params"]["requestedSchema"]["properties"]["choice"];
    assert_eq!(choice["enum"], json!(["left", "right", "(in my own words)"]));
    assert_eq!(choice["enumNames"], json!(["left: along the river", "right", "Something else, in my own words"]));
    assert_eq!(asked["params"]["requestedSchema"]["required"], json!(["choice"]), "no field may stay empty");
    client.end();
    let recorded = serde_json::to_string(&server.recorded()).unwrap();
    assert!(recorded.contains("Which way?") && recorded.contains("person at tester"), "{recorded}");
}

#[test]
fn without_a_handshake_the_question_is_part_of_the_result() {
    let server = McpTestServer::start();
    let mut client = stateless(&server, form_elicitation());
    let first = client.ask("tools/call", ask());
    assert_eq!(first["resultType"], "input_required", "{first}");
    let question = &first["inputRequests"]["answer"];
    assert_eq!(
        (&question["method"], &question["params"]["message"]),
        (&json!("elicitation/create"), &json!("Which way?"))
    );
    let again = with(ask(), "requestState", first["requestState"].clone());
    let again = with(again, "inputResponses", json!({ "answer": says(json!({ "choice": "left" })) }));
    let done = client.ask("tools/call", again);
    assert_eq!(done["structuredContent"], json!({ "answer": "left", "choice": 0 }), "{done}");
}

#[test]
fn without_an_answer_the_model_decides_itself() {
    let server = McpTestServer::start();
    let mut unable = with_handshake(&server, json!({}));
    let mut declining = with_handshake(&server, form_elicitation());
    declining.answers = vec![json!({ "action": "decline" })];
    for (client, said) in [(&mut unable, "No person is available"), (&mut declining, "dismissed the question")] {
        let refused = client.ask("tools/call", ask());
        assert_eq!(tool_error_code(&refused), "no_answer", "{refused}");
        assert!(refused["content"][0]["text"].as_str().unwrap().contains(said), "{refused}");
        assert!(refused["content"][0]["text"].as_str().unwrap().contains("Decide yourself"), "{refused}");
    }
}

fn ask_twice() -> Value {
    let first =
        json!({ "question": "Which way?", "choices": [{ "label": "left" }, { "label": "right" }], "free_text": false });
    let questions = json!([first, { "question": "How fast?" }]);
    json!({ "name": "ask", "arguments": { "questions": questions } })
}

#[test]
fn several_questions_are_answered_one_after_the_other() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, form_elicitation());
    client.answers = vec![says(json!({ "choice": "right" })), says(json!({ "words": "slowly" }))];
    let answered = client.ask("tools/call", ask_twice());
    let expected = json!({ "answers": [
        { "question": "Which way?", "answer": "right", "choice": 1 },
        { "question": "How fast?", "answer": "slowly" },
    ] });
    assert_eq!(answered["structuredContent"], expected, "{answered}");
}

#[test]
fn a_dismissed_question_names_itself_and_the_answers_before_it() {
    let server = McpTestServer::start();
    let mut client = with_handshake(&server, form_elicitation());
    client.answers = vec![says(json!({ "choice": "left" })), json!({ "action": "cancel" })];
    let refused = client.ask("tools/call", ask_twice());
    assert_eq!(tool_error_code(&refused), "no_answer", "{refused}");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("How fast?") && text.contains("Which way?: left"), "{text}");
}

#[test]
fn without_a_handshake_several_questions_are_asked_in_turn() {
    let server = McpTestServer::start();
    let mut client = stateless(&server, form_elicitation());
    let mut reply = client.ask("tools/call", ask_twice());
    for answer in [json!({ "choice": "right" }), json!({ "words": "slowly" })] {
        assert_eq!(reply["resultType"], "input_required", "{reply}");
        let again = with(ask_twice(), "requestState", reply["requestState"].clone());
        reply = client.ask("tools/call", with(again, "inputResponses", json!({ "answer": says(answer) })));
    }
    assert_eq!(reply["structuredContent"]["answers"][1]["answer"], "slowly", "{reply}");
}
