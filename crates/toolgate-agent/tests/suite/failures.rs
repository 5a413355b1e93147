//! A model server that fails in every way: each failure ends with its own reason and its events.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_agent::AgentLimits;
use toolgate_agent::model::JsonProtocol;
use toolgate_contract::{EventPayload, FinishReason};
use toolgate_testkit::wait_until_async;

use crate::server::{ModelServer, Play, chat};
use crate::world::{KEY, chat_model, controls, failed_calls, freeze_clock_once, told, trail, work, world};

/// Why the model failed, and when it was retried.
fn model_failures(world: &toolgate_testkit::TestWorkspace) -> Vec<(String, Option<u64>)> {
    let failure = |event: toolgate_contract::Event| match event.payload {
        EventPayload::ModelFailed { reason, retry_in_ms, .. } => Some((reason, retry_in_ms)),
        _ => None,
    };
    world.events().into_iter().filter_map(failure).collect()
}

#[tokio::test]
async fn a_call_and_an_answer() {
    let world = world();
    let server = ModelServer::start([Play::calls("read", r#"{"path":"notes.md"}"#), Play::says("Milk.")]).await;
    let outcome = work(&world, chat_model(&server), controls()).await;
    assert_eq!((outcome.finish, outcome.answer(), outcome.turns), (FinishReason::Answered, Some("Milk."), 2));
    assert_eq!((outcome.tokens.input, outcome.tokens.output), (20, 10));
    let kinds =
        ["agent.started", "model.said", "tool_call.started", "tool_call.completed", "model.said", "agent.ended"];
    assert_eq!(trail(&world), kinds);
    let seen = server.seen();
    assert!(told(&seen[1].body).contains("milk"), "{:?}", seen[1].body);
    assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let events = world.events();
    let read = events.iter().find(|event| event.tool_call_id.is_some()).unwrap();
    assert_eq!((read.turn, read.trace_id.as_deref()), (Some(1), Some(outcome.id.as_str())));
}

/// What a model can get wrong in a call, and how that call fails.
#[tokio::test]
async fn wrong_calls_are_told_to_the_model_and_recorded() {
    let huge = format!(r#"{{"path":"a","content":"{}"}}"#, "x".repeat(3 << 20));
    let table = [
        ("read", r#"{"path": "notes.md""#, "invalid_args", "not JSON"),
        ("read", "[1, 2]", "invalid_args", "object"),
        ("raed", r#"{"path":"notes.md"}"#, "unknown_tool", "Did you mean `read`?"),
        ("read", r#"{"file":"notes.md"}"#, "invalid_args", "path"),
        ("read", r#"{"path":"../../etc/passwd"}"#, "path_outside_workspace", "next:"),
        ("write", huge.as_str(), "invalid_args", "at most 2097152 are taken"),
    ];
    for (tool, arguments, code, words) in table {
        let world = world();
        let server = ModelServer::start([Play::calls(tool, arguments), Play::says("I see.")]).await;
        let outcome = work(&world, chat_model(&server), controls()).await;
        assert_eq!(outcome.finish, FinishReason::Answered, "{tool}: {}", outcome.summary);
        assert_eq!(failed_calls(&world), [code], "{tool}");
        let told = told(&server.seen()[1].body);
        assert!(told.contains(&format!("error[{code}]")) && told.contains(words), "{tool}: {told}");
        assert_eq!(trail(&world)[1..4], ["model.said", "tool_call.started", "tool_call.failed"], "{tool}");
    }
}

#[tokio::test]
async fn an_answer_that_is_empty_is_a_fault_and_three_in_a_row_end_the_work() {
    let once = world();
    let server = ModelServer::start([Play::says(""), Play::says("Milk.")]).await;
    assert_eq!(work(&once, chat_model(&server), controls()).await.finish, FinishReason::Answered);
    assert_eq!(trail(&once)[2], "model.misunderstood");
    assert!(told(&server.seen()[1].body).contains("no words and no calls"));

    let always = world();
    let server = ModelServer::start([Play::says("  ")]).await;
    assert_eq!(work(&always, chat_model(&server), controls()).await.finish, FinishReason::InvalidAnswers);
    let kinds = ["model.said", "model.misunderstood"];
    assert_eq!(trail(&always)[1..], [&kinds[..], &kinds, &kinds, &["agent.ended"]].concat());
}

#[tokio::test]
async fn the_neutral_protocol_takes_calls_and_refuses_what_has_neither() {
    let world = world();
    let plays = [
        Play::says("Let me look!"),
        Play::says(r#"{"tool_calls":[],"final_answer":""}"#),
        Play::says(r#"{"tool_calls":[{"name":"read","arguments":{"path":"notes.md"}}],"final_answer":""}"#),
        Play::says(r#"{"tool_calls":[],"final_answer":"Milk."}"#),
    ];
    let server = ModelServer::start(plays).await;
    let model = Arc::new(JsonProtocol::over(chat_model(&server)));
    let outcome = work(&world, model, controls()).await;
    assert_eq!(outcome.answer(), Some("Milk."));
    let kinds = ["model.said", "model.misunderstood"];
    assert_eq!(trail(&world)[1..7], [&kinds[..], &kinds, &["model.said", "tool_call.started"]].concat());
    let seen = server.seen();
    assert!(seen[0].body.get("tools").is_none(), "the tools are explained in words");
    assert!(seen[0].body["messages"][0]["content"].as_str().unwrap().contains("grep: "));
    assert!(told(&seen[2].body).contains("Both `tool_calls` and `final_answer` are empty"));
    assert!(told(&seen[3].body).contains("[read]") && told(&seen[3].body).contains("milk"));
}

/// Temporary failures are retried, and their reason is recorded.
#[tokio::test]
async fn temporary_failures_are_retried() {
    let half = &chat(&[json!({ "content": "Mil" })], "stop")[..60];
    let table = [
        (Play::cut(half), "broke"),
        (Play::events(half), "broke off"),
        (Play::events("data: <html>busy</html>\n\n"), "isn't JSON"),
        (Play::status("500 Internal Server Error", json!({ "error": { "message": "boom" } })), "500"),
        (Play::status("529 Overloaded", json!({ "error": { "type": "overloaded_error" } })), "529"),
        (Play::events("data: {\"error\":{\"message\":\"worker died\"}}\n\n"), "worker died"),
    ];
    for (play, words) in table {
        let world = world();
        let server = ModelServer::start([play, Play::says("Milk.")]).await;
        let outcome = work(&world, chat_model(&server), controls()).await;
        assert_eq!(outcome.answer(), Some("Milk."), "{words}: {}", outcome.summary);
        let failures = model_failures(&world);
        assert_eq!(failures.len(), 1, "{words}");
        assert!(failures[0].0.contains(words) && failures[0].1.is_some(), "{failures:?}");
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_is_asked_again() {
    let world = world();
    let half = &chat(&[json!({ "content": "Mil" })], "stop")[..60];
    let server = ModelServer::start([Play::stalls(half), Play::says("Milk.")]).await;
    let silence = async {
        freeze_clock_once("the server has fallen silent", || server.sent_chunks() == 1).await;
        wait_until_async("the silence is noticed", || !model_failures(&world).is_empty()).await;
        tokio::time::resume();
    };
    let (outcome, ()) = tokio::join!(work(&world, chat_model(&server), controls()), silence);
    assert_eq!(outcome.answer(), Some("Milk."), "{}", outcome.summary);
    let failures = model_failures(&world);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].0.contains("sent nothing") && failures[0].1.is_some(), "{failures:?}");
    assert!(failures[0].0.contains(&server.url), "the address is named: {failures:?}");
}

#[tokio::test]
async fn a_provider_that_asks_for_time_gets_it() {
    let world = world();
    let busy = Play::status("429 Too Many Requests", json!({ "error": { "message": "slow down" } }));
    let plays = [busy.clone().header("retry-after", "1"), busy.header("retry-after-ms", "40"), Play::says("Milk.")];
    let server = ModelServer::start(plays).await;
    assert_eq!(work(&world, chat_model(&server), controls()).await.finish, FinishReason::Answered);
    let waits: Vec<Option<u64>> = model_failures(&world).into_iter().map(|(_, wait)| wait).collect();
    assert_eq!(waits, [Some(1_000), Some(40)]);
}

#[tokio::test]
async fn more_time_than_is_left_ends_the_work_at_once() {
    let world = world();
    let busy = Play::status("429 Too Many Requests", json!({})).header("retry-after", "7200");
    let server = ModelServer::start([busy]).await;
    let outcome = work(&world, chat_model(&server), controls()).await;
    assert_eq!(outcome.finish, FinishReason::TimeLimit);
    assert!(outcome.summary.contains("7200s"), "{}", outcome.summary);
}

#[tokio::test]
async fn permanent_failures_are_not_retried_and_no_key_is_shown() {
    for (status, words) in
        [("401 Unauthorized", "Check the key"), ("400 Bad Request", "400"), ("404 Not Found", "Check the model's name")]
    {
        let world = world();
        let body = json!({ "error": { "message": format!("Incorrect API key provided: {KEY}") } });
        let server = ModelServer::start([Play::status(status, body)]).await;
        let outcome = work(&world, chat_model(&server), controls()).await;
        assert_eq!((outcome.finish, server.seen().len()), (FinishReason::ModelFailed, 1), "{status}");
        assert!(outcome.summary.contains(words), "{}", outcome.summary);
        let record = serde_json::to_string(&world.events()).unwrap();
        assert!(!record.contains(KEY) && !outcome.summary.contains(KEY), "{record}");
        assert_eq!(trail(&world), ["agent.started", "model.failed", "agent.ended"]);
    }
    let spent = json!({ "error": { "code": "insufficient_quota", "message": "You exceeded your quota." } });
    let server = ModelServer::start([Play::status("429 Too Many Requests", spent)]).await;
    assert_eq!(work(&world(), chat_model(&server), controls()).await.finish, FinishReason::ModelFailed);
    assert_eq!(server.seen().len(), 1, "money doesn't come back by waiting");
}

#[tokio::test]
async fn failures_without_end_use_up_the_tries_or_open_the_circuit() {
    let broken = || Play::status("500 Internal Server Error", json!({}));
    let tries = world();
    let server = ModelServer::start([broken()]).await;
    let outcome = work(&tries, chat_model(&server), controls()).await;
    assert_eq!((outcome.finish, server.seen().len()), (FinishReason::ModelFailed, 4), "one try and three more");
    let last = model_failures(&tries).pop().unwrap();
    assert_eq!(last.1, None, "the last one says that it was the last");

    let circuit = world();
    let server = ModelServer::start([broken()]).await;
    let outcome = work(&circuit, chat_model(&server), AgentLimits { failures: 2, ..controls() }).await;
    assert_eq!((outcome.finish, server.seen().len()), (FinishReason::CircuitOpen, 2));
}

#[tokio::test]
async fn an_unreachable_server_is_reported() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let wire = toolgate_agent::model::ModelEndpoint::new(&url, None).unwrap();
    let model = Arc::new(toolgate_agent::model::ChatCompletions::new("m", wire));
    let outcome = work(&world(), model, controls()).await;
    assert_eq!(outcome.finish, FinishReason::ModelFailed);
    assert!(outcome.summary.contains("can't be reached"), "{}", outcome.summary);
}

#[tokio::test]
async fn an_endless_answer_is_aborted() {
    let world = world();
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"".to_owned() + &"la ".repeat(200_000) + "\"}}]}\n\n";
    let server = ModelServer::start([Play::endless(&piece, Duration::ZERO)]).await;
    let outcome = work(&world, chat_model(&server), controls()).await;
    assert_eq!(outcome.finish, FinishReason::ModelFailed);
    assert!(outcome.summary.contains("exceeds the size limit"), "{}", outcome.summary);
}

#[tokio::test]
async fn more_calls_than_a_turn_may_hold_are_not_carried_out() {
    let world = world();
    let call = |index: u32| {
        let function = json!({ "name": "list", "arguments": "{}" });
        json!({ "tool_calls": [{ "index": index, "id": index.to_string(), "type": "function", "function": function }] })
    };
    let many: Vec<_> = (0..65).map(call).collect();
    let server = ModelServer::start([Play::events(chat(&many, "tool_calls")), Play::says("Fewer, then.")]).await;
    assert_eq!(work(&world, chat_model(&server), controls()).await.finish, FinishReason::Answered);
    assert_eq!(trail(&world), ["agent.started", "model.said", "model.misunderstood", "model.said", "agent.ended"]);
    assert!(told(&server.seen()[1].body).contains("65 calls at once"));
}
