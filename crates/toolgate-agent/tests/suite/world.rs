//! A workspace with an agent in it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolgate_agent::model::{ChatCompletions, Key, Model, Wire};
use toolgate_agent::{Agent, Controls, Outcome, Retries};
use toolgate_contract::{CancellationToken, Event, Happening};
use toolgate_testkit::World;

use crate::server::ModelServer;

pub(crate) const KEY: &str = "sk-tests-0123456789abcdef";

/// All tools, and a file to read.
pub(crate) fn world() -> World {
    let world = World::new(toolgate_tools::all().into_iter().chain(toolgate_agent::tools()), "");
    world.file("notes.md", "milk\n");
    world
}

/// Limits that don't keep a test waiting.
pub(crate) fn controls() -> Controls {
    let retries = Retries { most: 3, first: Duration::from_millis(1), longest: Duration::from_millis(2) };
    Controls { retries, ..Controls::default() }
}

/// A model behind this server, by chat completions.
pub(crate) fn chat_model(server: &ModelServer) -> Arc<dyn Model> {
    let key = Key::new(KEY).unwrap();
    let wire = Wire::new(&server.url, Some(("authorization", "Bearer ", &key))).unwrap();
    Arc::new(ChatCompletions::new("test-model", wire.with_patience(Duration::from_secs(4))))
}

/// Lets an agent work on a task.
pub(crate) async fn work(world: &World, model: Arc<dyn Model>, controls: Controls) -> Outcome {
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
pub(crate) fn trail(world: &World) -> Vec<String> {
    world.trail().into_iter().filter(|kind| !kind.starts_with("turn.")).collect()
}

/// How the calls failed.
pub(crate) fn failed_calls(world: &World) -> Vec<String> {
    let code = |event: &Event| match &event.happening {
        Happening::CallFailed { error, .. } => Some(error.code.to_string()),
        _ => None,
    };
    world.events().iter().filter_map(code).collect()
}
