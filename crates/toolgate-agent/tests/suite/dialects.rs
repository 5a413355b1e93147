//! Agents whose model is spoken to in a dialect: the same loop, record and limits, in other words.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_agent::model::{ConversationEntry, Model};
use toolgate_agent::{Agent, PastConversation};
use toolgate_contract::{Call, CancellationToken, ErrorCode, Event, EventPayload, FinishReason};
use toolgate_dialects::{DIALECTS, DialectSet, Parameter, ParameterKind};
use toolgate_runtime::Ceiling;
use toolgate_workspace::DialectSession;

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

/// A session without any tool stays one, whatever name a call comes by: every dialect's every tool ends at the gate.
#[tokio::test]
async fn no_dialect_reaches_a_tool_that_the_session_may_not_use() {
    let world = world();
    let mut session = world.session();
    session.ceilings.push(Ceiling { source: "nothing".into(), tools: Vec::new() });
    for dialect in DIALECTS {
        let dialects = DialectSession::new(dialect.name.parse().unwrap(), world.path());
        for tool in dialect.tools {
            let call = Call::new(tool.name, fitting(tool.parameters), world.clock.as_ref());
            let made = dialects.perform(call, &world.gate, &session, CancellationToken::new()).await;
            assert!(!made.reply.ok, "{} {}: {made:?}", dialect.name, tool.name);
        }
    }
    let ran = world.events().into_iter().filter(|event| matches!(event.payload, EventPayload::CallCompleted(_)));
    assert_eq!(ran.count(), 0);
    let refused = |event: &Event| match &event.payload {
        EventPayload::CallFailed { error, .. } => error.code == ErrorCode::ToolNotAllowed,
        _ => false,
    };
    let refused = world.events().iter().filter(|event| refused(event)).count();
    assert!(refused > 60, "most calls reach the gate and are refused there: {refused}");
}

/// Arguments that fit: of every required parameter.
fn fitting(parameters: &[Parameter]) -> Value {
    let value = |kind: ParameterKind| match kind {
        ParameterKind::Text => json!("notes.md"),
        ParameterKind::Integer(least, _) => json!(least.max(1)),
        ParameterKind::Boolean => json!(true),
        ParameterKind::Choice(words) => json!(words[0]),
        ParameterKind::Texts => json!(["notes.md"]),
        ParameterKind::Objects(fields) => json!([fitting(fields)]),
        ParameterKind::Object(fields) => fitting(fields),
        ParameterKind::Any => json!({}),
    };
    let required = parameters.iter().filter(|parameter| parameter.required);
    Value::Object(required.map(|parameter| (parameter.name.to_owned(), value(parameter.kind))).collect())
}
