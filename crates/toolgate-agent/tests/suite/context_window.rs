//! The conversation stays within the context window, and replaced results can be read back.

use std::sync::Arc;

use serde_json::json;
use toolgate_agent::model::ConversationEntry;
use toolgate_agent::{AgentLimits, PastConversation};
use toolgate_contract::{EventPayload, FinishReason, TokenUsage};

use crate::improvising::Improvising;
use crate::resume::Watched;
use crate::server::{ModelServer, Play, chat};
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

/// Reads a long file again and again, each time another part of it; asked for a summary, it gives one.
fn reads(times: usize) -> String {
    let turn = |turn: usize| {
        let limit = 300 - turn;
        format!("[[turns]]\ncalls = [{{ tool = 'read', args = {{ path = 'long.txt', limit = {limit} }} }}]\n")
    };
    let reads: String = (0..times).map(turn).collect();
    let summary = "[[turns]]\nagent = 'summary'\ntext = 'The list says milk.'\ntokens = { input = 7, output = 3 }\n";
    format!("{reads}[[turns]]\ntext = 'Done.'\n{}", summary.repeat(4))
}

#[tokio::test]
async fn the_model_summarizes_what_no_longer_fits_and_the_record_gives_it_back() {
    let world = world();
    world.file("long.txt", "a line of some length to fill the room\n".repeat(400));
    let model = Watched::new(&reads(8));
    let outcome = work(&world, model.clone(), AgentLimits { context: 20_000, ..controls() }).await;
    assert_eq!(outcome.finish, FinishReason::Answered, "{}", outcome.summary);
    let summaries = world.events().into_iter().filter_map(|event| match event.payload {
        EventPayload::ContextSummarized { text, tokens, .. } => Some((text, tokens)),
        _ => None,
    });
    let summaries: Vec<(String, TokenUsage)> = summaries.collect();
    assert!(!summaries.is_empty());
    let used = summaries.iter().fold(TokenUsage::default(), |mut all, (_, tokens)| {
        all += *tokens;
        all
    });
    assert_eq!(outcome.tokens, used, "what a summary costs is counted");
    let last = model.shown().pop().unwrap();
    let ConversationEntry::Told(first) = &last[0] else { panic!("{:?}", last[0]) };
    assert_eq!(*first, summaries.last().unwrap().0);
    assert!(first.contains("The list says milk."), "{first}");
    let id = first.lines().find_map(|line| line.strip_prefix("- read: ")).expect("results are named");
    let (_, mut file) = toolgate_contract::Artifacts::open(world.run.artifacts.as_ref(), id).unwrap();
    let mut kept = String::new();
    std::io::Read::read_to_string(&mut file, &mut kept).unwrap();
    assert!(kept.contains("a line of some length"), "an old result is still readable");
    let past = PastConversation::rebuild(world.events(), world.run.artifacts.as_ref(), world.gate.redactor()).unwrap();
    assert_eq!(past.entries[..last.len()], last, "the record has the same conversation");
    assert_eq!(past.answers, 9);
}

/// A provider whose window is smaller than ours says so; what it was shown is shortened until it fits.
#[tokio::test]
async fn a_provider_that_says_it_is_too_long_gets_less() {
    let world = world();
    world.file("long.txt", "a line of some length to fill the room\n".repeat(400));
    let too_long = || {
        let error = json!({ "message": "This model's maximum context length is 8192 tokens.",
            "code": "context_length_exceeded" });
        Play::status("400 Bad Request", json!({ "error": error }))
    };
    let read = |limit: u32| Play::calls("read", &json!({ "path": "long.txt", "limit": limit }).to_string());
    let plays =
        [read(290), read(291), read(292), read(293), too_long(), Play::says("It was long."), Play::says("Done.")];
    let server = ModelServer::start(plays).await;
    let outcome = work(&world, chat_model(&server), controls()).await;
    assert_eq!(outcome.answer(), Some("Done."), "{}", outcome.summary);
    let seen = server.seen();
    let size = |index: usize| seen[index].body["messages"].to_string().len();
    assert!(size(6) < size(4) * 8 / 10, "{} after {}", size(6), size(4));
    assert!(seen[6].body["messages"][1]["content"].as_str().unwrap().contains("It was long."));

    // There is nothing old yet, so the first of the two results goes.
    let plays = [read(290), read(291), too_long(), Play::says("Done.")];
    let server = ModelServer::start(plays).await;
    let outcome = work(&world, chat_model(&server), controls()).await;
    assert_eq!(outcome.answer(), Some("Done."), "{}", outcome.summary);
    let shown = server.seen()[3].body["messages"].to_string();
    assert_eq!(shown.matches("was removed to save context").count(), 1, "{shown}");

    let hopeless = crate::world::world();
    let server = ModelServer::start([too_long()]).await;
    let outcome = work(&hopeless, chat_model(&server), controls()).await;
    assert_eq!((outcome.finish, server.seen().len()), (FinishReason::ContextLimit, 1), "{}", outcome.summary);
}

#[tokio::test]
async fn tokens_are_estimated_where_the_stream_has_no_usage() {
    let world = world();
    let answer = chat(&[json!({ "content": "Twelve bytes" })], "stop");
    let without: String = answer.split_inclusive("\n\n").filter(|event| !event.contains("usage")).collect();
    let server = ModelServer::start([Play::events(without)]).await;
    let outcome = work(&world, chat_model(&server), controls()).await;
    assert_eq!((outcome.finish, outcome.tokens.output), (FinishReason::Answered, 3));
    assert!(outcome.tokens.input > 1_000, "{:?}", outcome.tokens);
}
