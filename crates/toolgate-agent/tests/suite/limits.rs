//! Every limit ends the work cleanly, with its own finish reason recorded.

use std::sync::Arc;
use std::time::Duration;

use toolgate_agent::{Agent, AgentLimits};
use toolgate_contract::{CancellationToken, EventPayload, FinishReason, ProcessHandle};
use toolgate_testkit::{TestWorkspace, wait_until_async};

use crate::server::{ModelServer, Play};
use crate::world::{chat_model, controls, failed_calls, freeze_clock_once, trail, work, world};

/// How the record says that the work ended.
fn recorded_end(world: &TestWorkspace) -> FinishReason {
    match world.events().pop().unwrap().payload {
        EventPayload::AgentEnded { finish, .. } => finish,
        other => panic!("not an end: {other:?}"),
    }
}

fn reads_on(tool: &str) -> Vec<Play> {
    (0..12).map(|offset| Play::calls(tool, &format!(r#"{{"path":"notes.md","offset":{}}}"#, offset + 1))).collect()
}

#[tokio::test]
async fn turns() {
    let world = world();
    let server = ModelServer::start(reads_on("read")).await;
    let outcome = work(&world, chat_model(&server), AgentLimits { turns: 3, ..controls() }).await;
    assert_eq!(
        (outcome.finish, outcome.turns, recorded_end(&world)),
        (FinishReason::TurnLimit, 3, FinishReason::TurnLimit)
    );
    assert!(outcome.summary.contains("--max-turns"), "{}", outcome.summary);
    let last = server.seen().pop().unwrap().body.to_string();
    assert!(last.contains("This is your last turn"), "the model was told: {last}");
}

#[tokio::test]
async fn tokens() {
    let world = world();
    let server = ModelServer::start(reads_on("read")).await;
    let outcome = work(&world, chat_model(&server), AgentLimits { tokens: 30, ..controls() }).await;
    assert_eq!((outcome.finish, outcome.turns), (FinishReason::TokenLimit, 2), "15 tokens a turn");
    assert_eq!(recorded_end(&world), FinishReason::TokenLimit);
}

/// Less than the time that a call may take, and than a model's server may be silent.
const TIME: Duration = Duration::from_secs(100);

#[tokio::test]
async fn time_ends_a_model_that_drips() {
    let world = world();
    let drip = "data: {\"choices\":[{\"delta\":{\"content\":\"la\"}}]}\n\n";
    let server = ModelServer::start([Play::endless(drip, Duration::from_secs(1))]).await;
    let working = work(&world, chat_model(&server), AgentLimits { time: TIME, ..controls() });
    let (outcome, ()) = tokio::join!(working, freeze_clock_once("the model drips", || server.sent_chunks() > 0));
    assert_eq!((outcome.finish, recorded_end(&world)), (FinishReason::TimeLimit, FinishReason::TimeLimit));
    assert_eq!(server.seen().len(), 1, "it was one answer");
    assert!(server.sent_chunks() > 1, "which went on");
}

#[tokio::test]
async fn time_ends_a_call_that_goes_on() {
    let world = TestWorkspace::new([toolgate_contract::erase(toolgate_testkit::SleepingTool)], "");
    let server = ModelServer::start([Play::calls("sleeps", "{}")]).await;
    let working = work(&world, chat_model(&server), AgentLimits { time: TIME, ..controls() });
    let has_begun = || world.trail().iter().any(|kind| kind == "tool_call.started");
    let (outcome, ()) = tokio::join!(working, freeze_clock_once("the call runs", has_begun));
    assert_eq!(outcome.finish, FinishReason::TimeLimit);
    assert_eq!(failed_calls(&world), ["cancelled"], "the call has its end on record");
}

#[tokio::test]
async fn what_a_command_did_until_the_time_was_over_is_on_record() {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined();
    let arguments =
        r#"{"command":"echo new > made.txt; echo said; sleep 1000","yield_ms":600000,"timeout_seconds":600}"#;
    let server = ModelServer::start([Play::calls("shell", arguments)]).await;
    let working = work(&world, chat_model(&server), AgentLimits { time: TIME, ..controls() });
    let all_time_passes = async {
        let has_spoken = || world.gate.registries().running().iter().any(|one| one.progress().borrow().stdout > 0);
        wait_until_async("the command has spoken", has_spoken).await;
        tokio::time::pause();
        tokio::time::advance(TIME).await;
        tokio::time::resume();
    };
    let (outcome, ()) = tokio::join!(working, all_time_passes);
    assert_eq!(outcome.finish, FinishReason::TimeLimit);
    let events = world.events();
    let end = events.iter().find_map(|event| match &event.payload {
        EventPayload::CallFailed { ending, .. } => Some(ending),
        _ => None,
    });
    let end = end.unwrap_or_else(|| panic!("no end: {:?}", world.trail()));
    assert_eq!((&end.files_changed[..], end.commands_run.len()), (&["made.txt".to_owned()][..], 1), "{end:?}");
    assert_eq!(
        trail(&world)[1..],
        ["model.said", "tool_call.started", "files.changing", "tool_call.failed", "agent.ended"]
    );
}

#[tokio::test]
async fn the_same_call_again_and_again() {
    let world = world();
    let server = ModelServer::start([Play::calls("read", r#"{"path":"notes.md"}"#)]).await;
    let outcome = work(&world, chat_model(&server), controls()).await;
    assert_eq!((outcome.finish, outcome.turns), (FinishReason::NoProgress, 5));
    assert!(outcome.summary.contains("read"), "{}", outcome.summary);
    let told = server.seen()[3].body.to_string();
    assert!(told.contains("Try another way, or finish"), "the model had its chance: {told}");
}

#[tokio::test]
async fn two_alternating_calls() {
    let world = world();
    let read = || Play::calls("read", r#"{"path":"notes.md"}"#);
    let list = || Play::calls("list", "{}");
    let server = ModelServer::start((0..20).map(|turn| if turn % 2 == 0 { read() } else { list() })).await;
    let outcome = work(&world, chat_model(&server), controls()).await;
    assert_eq!((outcome.finish, outcome.turns), (FinishReason::NoProgress, 9));
}

#[tokio::test]
async fn it_is_cancelled_while_the_model_thinks_or_a_tool_works() {
    let thinking = world();
    let server = ModelServer::start([Play::stalls("data: {}\n\n")]).await;
    let model = chat_model(&server);
    assert_eq!(stopped(&thinking, model, "turn.started").await, FinishReason::Cancelled);

    let working = TestWorkspace::new([toolgate_contract::erase(toolgate_testkit::SleepingTool)], "");
    let server = ModelServer::start([Play::calls("sleeps", "{}")]).await;
    assert_eq!(stopped(&working, chat_model(&server), "tool_call.started").await, FinishReason::Cancelled);
    assert_eq!(trail(&working)[1..], ["model.said", "tool_call.started", "tool_call.failed", "agent.ended"]);
}

/// Cancels the work once this is recorded.
async fn stopped(world: &TestWorkspace, model: Arc<dyn toolgate_agent::model::Model>, begun: &str) -> FinishReason {
    let cancel = CancellationToken::new();
    let agent = Agent::new(model, Arc::clone(&world.gate), world.session(), controls());
    let stop = async {
        wait_until_async(begun, || world.trail().iter().any(|kind| kind == begun)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(agent.work("wait", cancel.clone()), stop);
    assert_eq!(recorded_end(world), outcome.finish);
    outcome.finish
}

#[tokio::test]
async fn a_record_that_fails_ends_the_work_before_anything_runs() {
    let world = world();
    let server = ModelServer::start([Play::calls("read", r#"{"path":"notes.md"}"#)]).await;
    let mut session = world.session();
    session.recorder = Arc::new(toolgate_testkit::FailingRecorder::after(2, Arc::new(world.recorder())));
    let agent = Agent::new(chat_model(&server), Arc::clone(&world.gate), session, controls());
    let outcome = agent.work("read", CancellationToken::new()).await;
    assert_eq!(outcome.finish, FinishReason::Unrecorded);
    assert_eq!(world.trail(), ["agent.started", "turn.started"]);
}
