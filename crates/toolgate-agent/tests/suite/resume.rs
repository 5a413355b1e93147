//! A conversation goes on: with a second task, with messages while it works, and from the record after every point at
//! which a process can be killed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use toolgate_agent::model::{
    ConversationEntry, Model, ModelAnswer, ModelError, ModelRequest, ModelScript, OnText, ScriptedModel,
};
use toolgate_agent::{Agent, PastConversation, ResumeError};
use toolgate_contract::{
    BoxFuture, CancellationToken, Event, EventPayload, FinishReason, MessageOrigin, ModelCall, erase,
};
use toolgate_runtime::Session;
use toolgate_testkit::{FailingRecorder, TestWorkspace, WritingTool};

use crate::world::controls;

/// Follows a script, and keeps what it was shown.
pub(crate) struct Watched {
    inner: ScriptedModel,
    shown: Mutex<Vec<Vec<ConversationEntry>>>,
}

impl Watched {
    pub(crate) fn new(script: &str) -> Arc<Self> {
        let inner = ScriptedModel::new(ModelScript::parse(script).unwrap());
        Arc::new(Self { inner, shown: Mutex::default() })
    }

    pub(crate) fn shown(&self) -> Vec<Vec<ConversationEntry>> {
        self.shown.lock().unwrap().clone()
    }
}

impl Model for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest<'a>,
        on_text: OnText<'a>,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        self.shown.lock().unwrap().push(request.entries.to_vec());
        self.inner.answer(request, on_text)
    }
}

const TWO_WRITES: &str = r#"
[[turns]]
text = "Two things."
calls = [{ tool = "writes", args = { path = "a" } }, { tool = "writes", args = { path = "b" } }]

[[turns]]
text = "One more."
calls = [{ tool = "writes", args = { path = "c" } }]

[[turns]]
text = "Done."

[[turns]]
text = "Still done."
"#;

/// A tool that counts how often it wrote.
fn world() -> (TestWorkspace, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let world = TestWorkspace::new([erase(WritingTool(Arc::clone(&count)))], "preset = \"full\"");
    (world, count)
}

fn agent(world: &TestWorkspace, model: &Arc<Watched>, session: Session) -> Agent {
    Agent::new(Arc::clone(model) as Arc<dyn Model>, Arc::clone(&world.gate), session, controls())
}

fn rebuilt(world: &TestWorkspace) -> Result<PastConversation, ResumeError> {
    PastConversation::rebuild(world.events(), world.run.artifacts.as_ref(), world.gate.redactor())
}

#[tokio::test]
async fn the_record_gives_the_conversation_back_exactly() {
    let (world, _) = world();
    let model = Watched::new(TWO_WRITES);
    let mut agent = agent(&world, &model, world.session());
    let first = agent.say("Write.", CancellationToken::new()).await;
    assert_eq!(first.finish, FinishReason::Answered, "{}", first.summary);
    let past = rebuilt(&world).unwrap();
    assert_eq!((past.answers, past.finish), (3, Some(FinishReason::Answered)));
    let second = agent.say("And now?", CancellationToken::new()).await;
    assert_eq!(second.summary, "Still done.");
    let shown = model.shown().pop().unwrap();
    let expected = [past.entries, vec![ConversationEntry::Told("And now?".into())]].concat();
    assert_eq!(shown, expected, "the second task follows what the record says");
    let continues = world.events().into_iter().filter_map(|event| match event.payload {
        EventPayload::AgentStarted { continues, .. } => Some(continues),
        _ => None,
    });
    assert_eq!(continues.collect::<Vec<_>>(), [None, Some(first.id)]);
    assert_eq!(rebuilt(&world).unwrap().entries.len(), shown.len() + 1, "both tasks are one conversation");
}

#[tokio::test]
async fn a_message_steers_and_one_that_comes_with_the_answer_is_not_lost() {
    let (world, _) = world();
    let model = Watched::new(TWO_WRITES);
    let agent = agent(&world, &model, world.session());
    agent.messages().put("Be quick.".into());
    let outcome = agent.work("Write.", CancellationToken::new()).await;
    assert_eq!(outcome.finish, FinishReason::Answered);
    let told = ConversationEntry::Told("Be quick.".into());
    assert_eq!(model.shown()[0][1], told);
    assert!(
        world
            .events()
            .iter()
            .any(|event| event.payload
                == EventPayload::ModelTold { text: "Be quick.".into(), by: MessageOrigin::Person })
    );
    assert_eq!(rebuilt(&world).unwrap().entries[1], told);
}

/// The record ends after each of its writes in turn, as after a kill. Whatever had started and not ended is shown to the
/// model, and no call is made a second time.
#[tokio::test]
async fn after_a_kill_at_any_point_no_call_is_repeated_unnoticed() {
    let mut kills = 0;
    for writes in 1.. {
        let (world, count) = world();
        let mut session = world.session();
        session.recorder = Arc::new(FailingRecorder::after(writes, Arc::clone(&session.recorder)));
        let outcome = agent(&world, &Watched::new(TWO_WRITES), session).work("Write.", CancellationToken::new()).await;
        let before = world.events();
        let model = Watched::new(TWO_WRITES);
        let past = rebuilt(&world).unwrap();
        let resumed = agent(&world, &model, world.session()).continuing(past);
        let ended = resumed.work("Go on.", CancellationToken::new()).await;
        assert_eq!(ended.finish, FinishReason::Answered, "{writes}: {}", ended.summary);
        check_calls(&before, &world.events(), &model.shown()[0], &count, writes);
        kills += 1;
        if outcome.finish == FinishReason::Answered {
            break;
        }
    }
    assert!(kills > 15, "{kills} points were tried");
}

fn check_calls(before: &[Event], after: &[Event], shown: &[ConversationEntry], count: &AtomicUsize, writes: usize) {
    let (mut starts, mut asked) = (HashMap::<String, usize>::new(), Vec::<ModelCall>::new());
    for event in after {
        match (&event.payload, &event.tool_call_id) {
            (EventPayload::CallStarted { .. }, Some(id)) => *starts.entry(id.clone()).or_default() += 1,
            (EventPayload::ModelSaid { calls, .. }, _) => asked.extend(calls.iter().cloned()),
            _ => {}
        }
    }
    assert!(starts.values().all(|times| *times == 1), "{writes}: no call starts twice");
    let paths: Vec<&str> = asked.iter().filter_map(|call| call.args["path"].as_str()).collect();
    assert_eq!(paths, ["a", "b", "c"], "{writes}: the model goes on where it was");
    let never_started = asked.iter().filter(|call| !starts.contains_key(&call.tool_call_id)).count();
    assert_eq!(count.load(Ordering::SeqCst), asked.len() - never_started, "{writes}: each call ran at most once");

    let has = |id: &str, is_end: bool| {
        before.iter().any(|event| {
            let is_so = match event.payload {
                EventPayload::CallStarted { .. } => !is_end,
                EventPayload::CallCompleted(_) | EventPayload::CallFailed { .. } => is_end,
                _ => false,
            };
            is_so && event.tool_call_id.as_deref() == Some(id)
        })
    };
    let unfinished = asked.iter().filter(|call| has(&call.tool_call_id, false) && !has(&call.tool_call_id, true));
    let texts: Vec<&str> = shown
        .iter()
        .flat_map(|entry| match entry {
            ConversationEntry::Observed(seen) => seen.iter().map(|seen| seen.text.as_str()).collect(),
            _ => Vec::new(),
        })
        .collect();
    let uncertain = texts.iter().filter(|text| text.contains("It may have happened")).count();
    assert_eq!(uncertain, unfinished.count(), "{writes}: {texts:?}");
    let not_started = texts.iter().filter(|text| text.contains("Nothing happened")).count();
    assert_eq!(not_started, never_started, "{writes}: {texts:?}");
}

#[tokio::test]
async fn a_run_without_an_agent_or_without_what_the_model_asked_for_is_refused() {
    let (world, _) = world();
    assert_eq!(rebuilt(&world), Err(ResumeError::NoAgent));
    let model = Watched::new(TWO_WRITES);
    agent(&world, &model, world.session()).work("Write.", CancellationToken::new()).await;
    let older = world.events().into_iter().map(|mut event| {
        if let EventPayload::ModelSaid { calls, .. } = &mut event.payload {
            calls.clear();
        }
        event
    });
    assert_eq!(
        PastConversation::rebuild(older, world.run.artifacts.as_ref(), world.gate.redactor()),
        Err(ResumeError::OlderRecord)
    );
}
