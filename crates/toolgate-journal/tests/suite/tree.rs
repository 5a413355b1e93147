//! The tree of a run.

use toolgate_contract::{
    ApprovalScope, Decision, ErrorCode, Event, EventPayload, FinishReason, Layer, Message, MessageLevel, Risk,
    RuleName, TokenUsage,
};
use toolgate_journal::{Approval, CallNode, CallStatus, RunTree, tree};

use crate::world::{RUN, completed, event, facts, failed, some_calls, started};

fn message(content: &str) -> Message {
    Message { level: MessageLevel::Info, title: None, content: content.into(), thought: None, evidence: Vec::new() }
}

fn of_run(second: i64, payload: EventPayload) -> Event {
    Event { turn: None, tool_call_id: None, trace_id: None, ..event(second, "", payload) }
}

/// A turn, with only the ids and states of its calls.
type Outline<'a> = (Option<u64>, Vec<(&'a str, CallStatus)>);

fn outline(tree: &RunTree) -> Vec<Outline<'_>> {
    tree.turns
        .iter()
        .map(|turn| (turn.number, turn.calls.iter().map(|call| (call.tool_call_id.as_str(), call.status)).collect()))
        .collect()
}

#[test]
fn no_events_make_an_empty_tree() {
    assert_eq!(tree([]), RunTree::default());
}

#[test]
fn calls_are_below_their_turns() {
    let mut events = vec![of_run(0, EventPayload::RunStarted(facts("s")))];
    events.extend(some_calls());
    events.push(Event { turn: Some(2), ..started(6, "call-d") });
    // It ends in a later turn than it began.
    events.push(Event { turn: Some(2), ..completed(7, "call-c") });
    events.push(of_run(8, EventPayload::RunEnded));
    let tree = tree(&events);
    assert_eq!(
        outline(&tree),
        [
            (
                Some(1),
                vec![
                    ("call-a", CallStatus::Ok),
                    ("call-b", CallStatus::Failed(ErrorCode::NoMatch)),
                    ("call-c", CallStatus::Ok)
                ]
            ),
            (Some(2), vec![("call-d", CallStatus::Running)]),
        ]
    );
    assert_eq!((tree.run.as_str(), tree.facts.as_ref()), (RUN, Some(&facts("s"))));
    assert_eq!((tree.started, tree.ended), (Some(events[0].time), Some(events[8].time)));
}

#[test]
fn a_call_tells_what_a_person_asks_about_it() {
    let events = [started(1, "a"), event(2, "a", EventPayload::Display(message("half done"))), failed(3, "a")];
    let expected = CallNode {
        tool_call_id: "a".into(),
        trace_id: Some("trace-1".into()),
        tool: "edit".into(),
        hooked: None,
        version: Some("1.2.3".into()),
        risk: Some(Risk::High),
        started: Some(events[0].time),
        status: CallStatus::Failed(ErrorCode::NoMatch),
        duration_ms: Some(7),
        decision: Some(Decision::Ask),
        confined: false,
        rule: Some(RuleName { rule: "ask write src/**".into(), layer: Layer::User }),
        approval: Some(Approval::Granted { scope: ApprovalScope::Run, by: None }),
        messages: vec![message("half done")],
        agents: Vec::new(),
    };
    assert_eq!(tree(&events).turns[0].calls, [expected]);
}

#[test]
fn approvals_are_followed_to_their_answer() {
    let asked =
        EventPayload::ApprovalRequired { tool: "shell".into(), reason: "New host.".into(), effects: Vec::new() };
    let granted = EventPayload::ApprovalGranted { scope: ApprovalScope::Call, by: "ada".into() };
    let denied = EventPayload::ApprovalDenied { by: "ada".into(), reason: Some("No.".into()) };
    let mut events = vec![event(1, "a", asked)];
    let approval = |events: &[Event]| tree(events).turns[0].calls[0].approval.clone().unwrap();
    assert_eq!(approval(&events), Approval::Asked { reason: "New host.".into() });
    assert_eq!(tree(&events).turns[0].calls[0].tool, "shell");
    events.push(event(2, "a", granted));
    events.push(started(3, "a"));
    assert_eq!(approval(&events), Approval::Granted { scope: ApprovalScope::Call, by: Some("ada".into()) });
    events[1] = event(2, "a", denied);
    assert_eq!(approval(&events), Approval::Denied { by: "ada".into(), reason: Some("No.".into()) });
}

#[test]
fn what_belongs_to_no_call_belongs_to_its_turn_or_the_run() {
    let spoken = Event { tool_call_id: None, ..event(1, "", EventPayload::Display(message("hello"))) };
    let recovered = EventPayload::JournalRecovered { bytes: 1, sha256: String::new(), kept_as: String::new() };
    let tree = tree(&[spoken, of_run(2, recovered)]);
    assert_eq!(tree.turns[0].messages, [message("hello")]);
    assert_eq!((tree.turns.len(), tree.recovered), (1, 1));
}

#[test]
fn an_agent_is_below_the_call_that_started_it() {
    let of = |trace: &str, turn: Option<u64>, event: Event| Event { trace_id: Some(trace.into()), turn, ..event };
    let begins = |agent: &str, parent: Option<&str>| EventPayload::AgentStarted {
        agent: agent.into(),
        model: "scripted".into(),
        objective: "look".into(),
        parent: parent.map(str::to_owned),
        continues: None,
        dialect: None,
    };
    let tokens = TokenUsage { input: 3, output: 4 };
    let ends = |finish| EventPayload::AgentEnded { finish, summary: "so".into(), turns: 1, tokens, duration_ms: 9 };
    let turn_ends = EventPayload::TurnEnded { tokens, duration_ms: 5 };
    let said = EventPayload::ModelSaid { text: "hm".into(), calls: vec![], raw: vec![] };
    let tree = tree(&[
        of("main", None, of_run(0, begins("main", None))),
        of("main", Some(1), of_run(1, said)),
        of("main", Some(1), started(2, "task-call")),
        of("sub", None, of_run(3, begins("explore", Some("task-call")))),
        of("sub", Some(1), started(4, "inner")),
        of("sub", Some(1), completed(5, "inner")),
        of("sub", None, of_run(6, ends(FinishReason::Answered))),
        of("main", Some(1), completed(7, "task-call")),
        of("main", Some(1), of_run(8, turn_ends)),
        of("main", None, of_run(9, ends(FinishReason::TurnLimit))),
    ]);
    assert_eq!((tree.turns.len(), tree.agents.len()), (0, 1));
    let main = &tree.agents[0];
    assert_eq!((main.finish, main.turns.len()), (Some(FinishReason::TurnLimit), 1));
    let turn = &main.turns[0];
    assert_eq!(
        (turn.said.as_slice(), turn.tokens, turn.duration_ms),
        (["hm".to_owned()].as_slice(), Some(tokens), Some(5))
    );
    assert_eq!(turn.calls.len(), 1, "the other agent's turn 1 is another turn");
    let sub = &turn.calls[0].agents[0];
    assert_eq!((sub.agent.as_str(), sub.turns[0].calls[0].tool_call_id.as_str()), ("explore", "inner"));
}
