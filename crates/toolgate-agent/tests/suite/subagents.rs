//! Agents that start other agents.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;
use toolgate_agent::model::{
    ConversationEntry, Model, ModelAnswer, ModelError, ModelRequest, ModelScript, OnText, ScriptedModel,
};
use toolgate_agent::{Agent, AgentLimits, AgentOutcome};
use toolgate_contract::{BoxFuture, CancellationToken, Event, EventPayload, FinishReason};
use toolgate_dialects::ToolCall;
use toolgate_journal::{CallStatus, tree};
use toolgate_testkit::TestWorkspace;

use crate::improvising::Improvising;
use crate::world::{controls, failed_calls, work, world};

async fn follow(world: &TestWorkspace, script: &str, limits: AgentLimits) -> AgentOutcome {
    let model = Arc::new(ScriptedModel::new(ModelScript::parse(script).unwrap()));
    work(world, model, limits).await
}

fn payloads(world: &TestWorkspace, tool: &str) -> Vec<Value> {
    let events = world.events();
    let is_of_tool =
        |event: &&Event| matches!(&event.payload, EventPayload::CallStarted { tool: name, .. } if name == tool);
    let ids: Vec<_> = events.iter().filter(is_of_tool).map(|event| event.tool_call_id.clone()).collect();
    let ended = events.iter().filter(|event| ids.contains(&event.tool_call_id));
    ended
        .filter_map(|event| match &event.payload {
            EventPayload::CallCompleted(ending) => ending.payload.clone(),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_task_is_done_by_another_agent_beneath_the_call() {
    let world = world();
    let script = r#"
        [[turns]]
        calls = [{ tool = "task", args = { agent = "explore", objective = "What is on the list?" } }]
        [[turns]]
        agent = "explore"
        calls = [{ tool = "read", args = { path = "notes.md" } }]
        [[turns]]
        agent = "explore"
        expect = ["milk"]
        text = "Milk, in notes.md."
        tokens = { input = 7, output = 2 }
        [[turns]]
        expect = ["ok: true", "summary: Milk, in notes.md."]
        text = "There is milk."
    "#;
    let outcome = follow(&world, script, controls()).await;
    assert_eq!(outcome.answer(), Some("There is milk."), "{}", outcome.summary);
    let expected = json!({ "ok": true, "agent": "explore", "summary": "Milk, in notes.md.", "finish": "answered" });
    assert_eq!(payloads(&world, "task"), [expected]);
    let tree = tree(&world.events());
    let task = &tree.agents[0].turns[0].calls[0];
    let sent = &task.agents[0];
    assert_eq!((sent.agent.as_str(), sent.turns[0].calls[0].tool.as_str()), ("explore", "read"));
    assert_eq!((sent.turns[0].calls[0].status, sent.finish), (CallStatus::Ok, Some(FinishReason::Answered)));
}

#[tokio::test]
async fn an_agent_has_no_more_rights_than_its_kind_and_its_parent() {
    let world = world();
    let script = r#"
        [[turns]]
        calls = [{ tool = "task", args = { agent = "explore", objective = "Write it down." } }]
        [[turns]]
        agent = "explore"
        calls = [
            { tool = "write", args = { path = "new.txt", content = "x" } },
            { tool = "task", args = { agent = "general", objective = "Write it for me." } },
        ]
        [[turns]]
        agent = "explore"
        expect = ["error[tool_not_allowed]"]
        text = "I can't."
        [[turns]]
        text = "It can't."
    "#;
    let outcome = follow(&world, script, controls()).await;
    assert_eq!(outcome.finish, FinishReason::Answered, "{}", outcome.summary);
    assert_eq!(failed_calls(&world), ["tool_not_allowed", "tool_not_allowed"]);
    assert!(!world.path().join("new.txt").exists());
}

#[tokio::test]
async fn a_parent_limited_to_few_tools_limits_its_subagents() {
    let world = world();
    let script = r#"
        [[turns]]
        calls = [{ tool = "task", args = { objective = "Write it down." } }]
        [[turns]]
        agent = "general"
        calls = [{ tool = "write", args = { path = "new.txt", content = "x" } }]
        [[turns]]
        agent = "general"
        expect = ["error[tool_not_allowed]"]
        text = "I can't."
        [[turns]]
        text = "It can't."
    "#;
    let mut session = world.session();
    let tools = vec!["read".into(), "task".into()];
    session.ceilings.push(toolgate_runtime::Ceiling { source: "skill narrow".into(), tools });
    let model = Arc::new(ScriptedModel::new(ModelScript::parse(script).unwrap()));
    let agent = Agent::new(model, Arc::clone(&world.gate), session, controls());
    let outcome = agent.work("write", CancellationToken::new()).await;
    assert_eq!(outcome.finish, FinishReason::Answered, "{}", outcome.summary);
    assert!(!world.path().join("new.txt").exists());
}

#[tokio::test]
async fn depth_and_number_are_limited() {
    let deep = world();
    let script = r#"
        [[turns]]
        calls = [{ tool = "task", args = { objective = "Go on." } }]
        [[turns]]
        agent = "general"
        calls = [{ tool = "task", args = { objective = "Go on." } }]
        [[turns]]
        agent = "general"
        expect = ["error[limit_reached]"]
        text = "No deeper."
        [[turns]]
        text = "Done."
    "#;
    let outcome = follow(&deep, script, AgentLimits { depth: 1, ..controls() }).await;
    assert_eq!((outcome.finish, failed_calls(&deep)), (FinishReason::Answered, vec!["limit_reached".to_owned()]));

    let many = world();
    let script = r#"
        [[turns]]
        calls = [{ tool = "task", args = { objective = "a" } }]
        [[turns]]
        agent = "general"
        text = "a"
        [[turns]]
        calls = [{ tool = "task", args = { objective = "b" } }]
        [[turns]]
        expect = ["may start 1 agent, and has done so"]
        text = "Done."
    "#;
    let outcome = follow(&many, script, AgentLimits { agents: 1, ..controls() }).await;
    assert_eq!(outcome.finish, FinishReason::Answered, "{}", outcome.summary);
}

/// The id of the agent that was started last.
fn sent_id(told: &str) -> String {
    let start = told.rfind("\"id\":\"agent_").expect("an id") + 6;
    told[start..].split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn an_agent_that_runs_concurrently_can_be_stopped() {
    let world = world();
    let turns = [
        Improvising::call("agents", |_| json!({ "action": "spawn", "objective": "Wait for word." })),
        Improvising::call("agents", |told| json!({ "action": "stop", "id": sent_id(told) })),
    ];
    let outcome = work(&world, Arc::new(Sleeper::new(turns)), controls()).await;
    assert_eq!(outcome.answer(), Some("Stopped."), "{}", outcome.summary);
    let stopped = payloads(&world, "agents").pop().unwrap();
    assert_eq!(stopped["agents"][0]["finish"], "cancelled", "{stopped}");
    let ends = world.events().iter().filter(|event| matches!(event.payload, EventPayload::AgentEnded { .. })).count();
    assert_eq!(ends, 2, "both have their end on record");
}

#[tokio::test]
async fn an_agent_reads_messages_before_its_next_turn_and_can_be_waited_for() {
    let world = world();
    let sign = Arc::new(Notify::new());
    let give_sign = Arc::clone(&sign);
    let turns = [
        Improvising::call("agents", |_| json!({ "action": "spawn", "objective": "Wait for word." })),
        Improvising::call("agents", |told| json!({ "action": "message", "id": sent_id(told), "text": "It is milk." })),
        Improvising::call("agents", |_| json!({ "action": "list" })),
        // Only now the other agent continues, so the message is there before its next turn.
        Improvising::call("agents", move |told| {
            give_sign.notify_one();
            json!({ "action": "wait", "id": sent_id(told) })
        }),
        Improvising::call("agents", |told| json!({ "action": "message", "id": sent_id(told), "text": "Too late." })),
        Improvising::says("Done."),
    ];
    let outcome = work(&world, Arc::new(Attentive { first: Improvising::new(turns), sign }), controls()).await;
    assert_eq!(outcome.answer(), Some("Done."), "{}", outcome.summary);
    let seen = payloads(&world, "agents");
    assert_eq!((&seen[2]["agents"][0]["agent"], &seen[2]["agents"][0]["finish"]), (&json!("general"), &Value::Null));
    let waited_for = &seen[3]["agents"][0];
    assert_eq!((&waited_for["finish"], &waited_for["summary"]), (&json!("answered"), &json!("I heard: It is milk.")));
    assert_eq!(failed_calls(&world), ["not_found"], "who has ended hears nothing more");
}

#[tokio::test]
async fn waiting_ends_at_its_timeout_and_the_agent_continues() {
    let world = world();
    let turns = [
        Improvising::call("agents", |_| json!({ "action": "spawn", "objective": "Wait for word." })),
        Improvising::call("agents", |told| json!({ "action": "wait", "id": sent_id(told), "seconds": 1 })),
    ];
    let outcome = work(&world, Arc::new(Sleeper::new(turns)), controls()).await;
    assert_eq!(outcome.finish, FinishReason::Answered, "{}", outcome.summary);
    assert_eq!(payloads(&world, "agents").pop().unwrap()["agents"][0]["finish"], Value::Null);
}

#[tokio::test]
async fn actions_need_the_id_of_an_own_agent() {
    let world = world();
    let script = r#"
        [[turns]]
        calls = [
            { tool = "agents", args = { action = "wait", id = "agent_of_nobody" } },
            { tool = "agents", args = { action = "stop", id = "agent_of_nobody" } },
            { tool = "agents", args = { action = "message", id = "agent_of_nobody", text = "hello" } },
            { tool = "agents", args = { action = "stop" } },
            { tool = "agents", args = { action = "spawn" } },
            { tool = "agents", args = { action = "spawn", agent = "butler", objective = "Tea." } },
        ]
        [[turns]]
        expect = ["The agents here are: general, explore."]
        text = "Done."
    "#;
    let outcome = follow(&world, script, controls()).await;
    assert_eq!(outcome.finish, FinishReason::Answered, "{}", outcome.summary);
    let missing = ["not_found"; 3].into_iter().chain(["invalid_args"; 3]);
    assert_eq!(failed_calls(&world), missing.collect::<Vec<_>>());
}

#[tokio::test]
async fn only_so_many_work_at_a_time() {
    let world = world();
    let spawn = || Improvising::call("agents", |_| json!({ "action": "spawn", "objective": "Wait for word." }));
    let stop = Improvising::call("agents", |told| json!({ "action": "stop", "id": sent_id(told) }));
    let limits = AgentLimits { agents_at_once: 1, ..controls() };
    let outcome = work(&world, Arc::new(Sleeper::new([spawn(), spawn(), stop, spawn()])), limits).await;
    assert_eq!(outcome.finish, FinishReason::Answered, "{}", outcome.summary);
    assert_eq!(failed_calls(&world), ["limit_reached"], "the third comes when the first has gone");
}

#[tokio::test]
async fn no_agent_outlives_its_parent() {
    let world = world();
    let turns = [Improvising::call("agents", |_| json!({ "action": "spawn", "objective": "Wait for word." }))];
    let outcome = work(&world, Arc::new(Sleeper::new(turns)), controls()).await;
    assert_eq!(outcome.finish, FinishReason::Answered);
    let ends: Vec<FinishReason> = world
        .events()
        .iter()
        .filter_map(|event| match event.payload {
            EventPayload::AgentEnded { finish, .. } => Some(finish),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [FinishReason::Cancelled, FinishReason::Answered], "the sender's end is the last");
}

/// For the main agent it improvises. Any other agent waits for a signal, looks around, and repeats the messages that it
/// got meanwhile.
struct Attentive {
    first: Improvising,
    sign: Arc<Notify>,
}

impl Model for Attentive {
    fn name(&self) -> &str {
        "attentive"
    }

    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest<'a>,
        hear: OnText<'a>,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        if request.agent == "main" {
            return self.first.answer(request, hear);
        }
        Box::pin(async move {
            let told = request.entries.iter().rev().find_map(|entry| match entry {
                ConversationEntry::Told(text) => Some(text.as_str()),
                _ => None,
            });
            if request.entries.len() > 1 {
                return Ok(ModelAnswer { text: format!("I heard: {}", told.unwrap()), ..ModelAnswer::default() });
            }
            self.sign.notified().await;
            let look = ToolCall::function("1", "read", r#"{"path":"notes.md"}"#);
            Ok(ModelAnswer { calls: vec![look], ..ModelAnswer::default() })
        })
    }
}

/// For the main agent it improvises; any other agent never gets an answer.
struct Sleeper(Improvising);

impl Sleeper {
    fn new(turns: impl IntoIterator<Item = Box<dyn Fn(&str) -> ModelAnswer + Send>>) -> Self {
        Self(Improvising::new(turns.into_iter().chain([Improvising::says("Stopped.")])))
    }
}

impl Model for Sleeper {
    fn name(&self) -> &str {
        "sleeper"
    }

    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest<'a>,
        hear: OnText<'a>,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        match request.agent {
            "main" => self.0.answer(request, hear),
            _ => Box::pin(std::future::pending()),
        }
    }
}
