//! The agent's own questions, put to the person at the client.

use serde_json::{Value, json};

use super::client::Talk;
use super::with;
use crate::world::World;

fn forms() -> Value {
    json!({ "elicitation": {} })
}

fn ask() -> Value {
    let choices = json!([{ "label": "left", "description": "along the river" }, { "label": "right" }]);
    json!({ "name": "ask", "arguments": { "question": "Which way?", "choices": choices } })
}

fn says(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[test]
fn a_question_is_shown_as_a_form_and_answered_by_choice_or_in_words() {
    let world = World::new();
    let mut talk = Talk::legacy(&world, forms());
    talk.answers = vec![says(json!({ "choice": "right" })), says(json!({ "words": "straight on" }))];
    let chosen = talk.ask("tools/call", ask());
    assert_eq!(chosen["structuredContent"], json!({ "answer": "right", "choice": 1 }), "{chosen}");
    let said = talk.ask("tools/call", ask());
    assert_eq!(said["structuredContent"], json!({ "answer": "straight on" }), "{said}");
    let asked = talk.heard.iter().find(|message| message["method"] == "elicitation/create").unwrap();
    assert_eq!(asked["params"]["message"], "Which way?");
    let choice = &asked["params"]["requestedSchema"]["properties"]["choice"];
    assert_eq!(choice["enum"], json!(["left", "right"]));
    assert_eq!(choice["enumNames"], json!(["left: along the river", "right"]));
    talk.end();
    let events = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    assert!(events.contains("Which way?") && events.contains("person at talk"), "{events}");
}

#[test]
fn without_a_handshake_the_question_is_part_of_the_result() {
    let world = World::new();
    let mut talk = Talk::modern(&world, forms());
    let first = talk.ask("tools/call", ask());
    assert_eq!(first["resultType"], "input_required", "{first}");
    let question = &first["inputRequests"]["answer"];
    assert_eq!(
        (&question["method"], &question["params"]["message"]),
        (&json!("elicitation/create"), &json!("Which way?"))
    );
    let again = with(ask(), "requestState", first["requestState"].clone());
    let again = with(again, "inputResponses", json!({ "answer": says(json!({ "choice": "left" })) }));
    let done = talk.ask("tools/call", again);
    assert_eq!(done["structuredContent"], json!({ "answer": "left", "choice": 0 }), "{done}");
}

#[test]
fn where_nobody_answers_the_model_is_told_so() {
    let world = World::new();
    let mut unable = Talk::legacy(&world, json!({}));
    let mut declining = Talk::legacy(&world, forms());
    declining.answers = vec![json!({ "action": "decline" })];
    for talk in [&mut unable, &mut declining] {
        let refused = talk.ask("tools/call", ask());
        assert_eq!(refused["_meta"]["toolgate/error"]["code"], "not_found", "{refused}");
        assert!(refused["content"][0]["text"].as_str().unwrap().contains("Decide yourself"), "{refused}");
    }
}
