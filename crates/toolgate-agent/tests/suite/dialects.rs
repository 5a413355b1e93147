//! Agents whose model is spoken to in a dialect: the same loop, record and limits, in other words.

use std::sync::Arc;

use toolgate_agent::model::{ConversationEntry, Model};
use toolgate_agent::{Agent, PastConversation};
use toolgate_contract::{CancellationToken, FinishReason};
use toolgate_dialects::DialectSet;

use crate::resume::Watched;
use crate::world::{controls, world};

/// In this dialect a file has to be read before it is written, which takes two native calls.
const SCRIPT: &str = r#"
[[turns]]
calls = [{ tool = "Write", args = { file_path = "new.md", content = "a\n" } },
         { tool = "Write", args = { file_path = "notes.md", content = "b\n" } }]

[[turns]]
expect = ["File created successfully at: ", "File has not been read yet."]
calls = [{ tool = "Read", args = { file_path = "notes.md" } }, { tool = "Reed" }, { tool = "Read", args = { file = 1 } }]

[[turns]]
expect = ["     1→milk", "No such tool available: Reed", "InputValidationError"]
text = "Read."

[[turns]]
calls = [{ tool = "Write", args = { file_path = "notes.md", content = "b\n" } }]

[[turns]]
expect = ["has been updated successfully"]
text = "Written."
"#;

fn agent(world: &toolgate_testkit::TestWorkspace, model: &Arc<Watched>, dialect: &str) -> Agent {
    let set: DialectSet = dialect.parse().unwrap();
    let model = Arc::clone(model) as Arc<dyn Model>;
    Agent::new(model, Arc::clone(&world.gate), world.session(), controls()).speaking(set, world.path())
}

fn rebuilt(world: &toolgate_testkit::TestWorkspace) -> PastConversation {
    let events = toolgate_journal::read_events(world.run.path()).unwrap();
    let events = events.map(|recorded| recorded.unwrap().event);
    PastConversation::rebuild(events, world.run.artifacts.as_ref(), world.gate.redactor()).unwrap()
}

#[tokio::test]
async fn the_record_gives_a_conversation_in_a_dialect_back_exactly_with_what_it_remembers() {
    let world = world();
    let model = Watched::new(SCRIPT);
    let mut agent = agent(&world, &model, "claude-2.0");
    let first = agent.say("Look.", CancellationToken::new()).await;
    assert_eq!((first.finish, first.summary.as_str()), (FinishReason::Answered, "Read."));
    let past = rebuilt(&world);
    assert_eq!(past.dialects.as_ref().unwrap().set().to_string(), "claude-2.0");
    let second = agent.say("Write.", CancellationToken::new()).await;
    assert_eq!(second.summary, "Written.", "what was read in the first task may be written in the second");
    let shown = &model.shown()[3];
    assert_eq!(*shown, [past.entries.clone(), vec![ConversationEntry::Told("Write.".into())]].concat());
}

#[tokio::test]
async fn another_process_goes_on_with_what_was_read_before() {
    let world = world();
    let model = Watched::new(SCRIPT);
    agent(&world, &model, "claude-2.0").work("Look.", CancellationToken::new()).await;
    let past = rebuilt(&world);
    let model = Watched::new(SCRIPT);
    let outcome = agent(&world, &model, "claude-2.0").continuing(past).work("Write.", CancellationToken::new()).await;
    assert_eq!(outcome.summary, "Written.", "the versions that the model has seen come back with the record");
}
