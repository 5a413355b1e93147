//! The conversation stays within the context window, and replaced results can be read back.

use std::sync::Arc;

use serde_json::json;
use toolgate_agent::AgentLimits;
use toolgate_contract::{EventPayload, FinishReason};

use crate::improvising::Improvising;
use crate::server::{ModelServer, Play};
use crate::world::{chat_model, controls, work, world};

/// The artifact id in a text that the model was told.
fn named_artifact(text: &str) -> Option<String> {
    let start = text.find("Read it again with artifact {\"id\":\"")? + "Read it again with artifact {\"id\":\"".len();
    Some(text[start..].split('"').next()?.to_owned())
}

#[tokio::test]
async fn old_results_are_replaced_and_can_be_read_back() {
    let world = world();
    world.file("long.txt", "a line of some length to fill the room\n".repeat(400));
    let mut turns = Vec::new();
    for turn in 0..8 {
        turns.push(Improvising::call("read", move |_| json!({ "path": "long.txt", "limit": 300 - turn })));
    }
    turns.push(Improvising::call(
        "artifact",
        |told| json!({ "id": named_artifact(told).expect("a mask names its artifact") }),
    ));
    turns.push(Improvising::says("Done."));
    let outcome = work(&world, Arc::new(Improvising::new(turns)), AgentLimits { context: 20_000, ..controls() }).await;
    assert_eq!(outcome.finish, FinishReason::Answered, "{}", outcome.summary);
    let masked = |event: &toolgate_contract::Event| match event.payload {
        EventPayload::ContextMasked { results, bytes, .. } => Some((results, bytes)),
        _ => None,
    };
    let events = world.events();
    let (results, bytes) = events.iter().filter_map(masked).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    assert!(results >= 3 && bytes > results * 10_000, "{results} results, {bytes} bytes");
    let recalled = events.iter().rev().find_map(|event| match &event.payload {
        EventPayload::CallCompleted(ending) => ending.payload.clone(),
        _ => None,
    });
    assert!(recalled.unwrap().to_string().contains("a line of some length"), "the artifact holds the result");
}

#[tokio::test]
async fn what_never_fits_ends_the_work() {
    let world = world();
    let server = ModelServer::start([Play::says("never asked")]).await;
    let outcome = work(&world, chat_model(&server), AgentLimits { context: 10, ..controls() }).await;
    assert_eq!((outcome.finish, server.seen().len()), (FinishReason::ContextLimit, 0));
    assert!(outcome.summary.contains("--context-tokens"), "{}", outcome.summary);
}
