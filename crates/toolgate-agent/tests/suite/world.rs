//! A workspace with an agent in it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolgate_agent::model::{ApiKey, ChatCompletions, Model, ModelEndpoint};
use toolgate_agent::{Agent, AgentLimits, AgentOutcome, RetryPolicy};
use toolgate_contract::{CancellationToken, Event, EventPayload};
use toolgate_testkit::{LONGEST_WAIT, TestWorkspace, wait_until_async};

use crate::server::ModelServer;

pub(crate) const KEY: &str = "sk-tests-0123456789abcdef";

/// All tools, and a file to read.
pub(crate) fn world() -> TestWorkspace {
    let world = TestWorkspace::new(toolgate_tools::all().into_iter().chain(toolgate_agent::tools()), "");
    world.file("notes.md", "milk\n");
    world
}

/// Limits that don't keep a test waiting.
pub(crate) fn controls() -> AgentLimits {
    let retries = RetryPolicy { most: 3, first: Duration::from_millis(1), longest: Duration::from_millis(2) };
    AgentLimits { retries, ..AgentLimits::default() }
}

/// Freezes Tokio's clock once this is so: from then on, time passes as soon as everything waits for it.
pub(crate) async fn freeze_clock_once(what: &str, is_so: impl FnMut() -> bool) {
    wait_until_async(what, is_so).await;
    tokio::time::pause();
}

/// A model behind this server, by chat completions.
pub(crate) fn chat_model(server: &ModelServer) -> Arc<dyn Model> {
    let key = ApiKey::new(KEY).unwrap();
    let wire = ModelEndpoint::new(&server.url, Some(("authorization", "Bearer ", &key))).unwrap();
    Arc::new(ChatCompletions::new("test-model", wire.with_idle_timeout(LONGEST_WAIT)))
}

/// Lets an agent work on a task.
pub(crate) async fn work(world: &TestWorkspace, model: Arc<dyn Model>, controls: AgentLimits) -> AgentOutcome {
    let agent = Agent::new(model, Arc::clone(&world.gate), world.session(), controls);
    agent.work("What is on the list?", CancellationToken::new()).await
}

/// The replies that a request shows the model, and whatever else it was told after its first task.
pub(crate) fn told(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    let texts = messages.iter().skip(2).filter(|message| message["role"] != "assistant");
    texts.map(|message| message["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join("\n")
}

/// The kinds of the events that aren't about turns, in order.
pub(crate) fn trail(world: &TestWorkspace) -> Vec<String> {
    world.trail().into_iter().filter(|kind| !kind.starts_with("turn.")).collect()
}

/// How the calls failed.
pub(crate) fn failed_calls(world: &TestWorkspace) -> Vec<String> {
    let code = |event: &Event| match &event.payload {
        EventPayload::CallFailed { error, .. } => Some(error.code.to_string()),
        _ => None,
    };
    world.events().iter().filter_map(code).collect()
}
