//! What every store must do. Each function gets an empty store; every implementation runs the same list.

use std::collections::BTreeMap;

use serde_json::json;
use toolgate_contract::{ApprovalScope, Decision, ErrorClass, ErrorCode, Event, EventPayload, Layer, Risk, TokenUsage};
use toolgate_journal::{CallFilter, CallRow, EventStore, IndexedPart, RecordedEvent, RunFilter, RunRow};

use crate::world::{RUN, completed, event, facts, failed, some_calls, started};

/// A test by its name.
type Test = (&'static str, fn(&dyn EventStore));

pub(crate) const SUITE: &[Test] = &[
    ("an empty store knows nothing", an_empty_store_knows_nothing),
    ("a run becomes a row", a_run_becomes_a_row),
    ("calls become rows", calls_become_rows),
    ("events come back as they were", events_come_back_as_they_were),
    ("events are found by their kind", events_are_found_by_their_kind),
    ("applying twice changes nothing", applying_twice_changes_nothing),
    ("the order of applying doesn't matter", the_order_of_applying_does_not_matter),
    ("gaps are known", gaps_are_known),
    ("of two beginnings the later one counts", of_two_beginnings_the_later_one_counts),
    ("runs are filtered, newest first", runs_are_filtered_newest_first),
    ("tokens are counted by model", tokens_are_counted_by_model),
    ("calls are found by what they touch", calls_are_found_by_what_they_touch),
    ("clearing forgets one run", clearing_forgets_one_run),
    ("a caller may choose odd ids", a_caller_may_choose_odd_ids),
];

/// A run of seven events: the start, three calls, the end.
pub(crate) fn a_run() -> Vec<RecordedEvent> {
    let of_run = |second, payload| Event { turn: None, tool_call_id: None, ..event(second, "", payload) };
    let mut events = vec![of_run(0, EventPayload::RunStarted(facts("session-1")))];
    events.extend(some_calls());
    events.push(of_run(9, EventPayload::RunEnded));
    recorded(events)
}

pub(crate) fn recorded(events: Vec<Event>) -> Vec<RecordedEvent> {
    let number = |(index, event): (usize, Event)| {
        let mut json = serde_json::to_value(&event).unwrap();
        json["seq"] = json!(index + 1);
        json["prev"] = json!("0".repeat(64));
        RecordedEvent { seq: index as u64 + 1, event, line: json.to_string() }
    };
    events.into_iter().enumerate().map(number).collect()
}

type Rows = (Vec<RunRow>, Vec<CallRow>, Vec<RecordedEvent>);

/// Everything that a store knows of a run, and the list of runs.
pub(crate) fn rows(store: &dyn EventStore, run: &str) -> Rows {
    let runs = store.runs(&RunFilter::default()).unwrap();
    (runs, store.calls(run).unwrap(), store.events(run, 0, usize::MAX).unwrap())
}

fn events_are_found_by_their_kind(store: &dyn EventStore) {
    store.apply(RUN, &a_run()).unwrap();
    let found = |kind: &str, workspace: Option<&str>, limit: usize| -> Vec<u64> {
        store.events_of_kind(kind, workspace, limit).unwrap().iter().map(|event| event.seq).collect()
    };
    assert_eq!(found("run.started", None, 9), [1]);
    assert_eq!(found("tool_call.started", Some("/work"), 9).len(), 3);
    let newest = found("tool_call.started", Some("/work"), 1);
    assert_eq!(newest, [found("tool_call.started", None, 9)[0]], "the newest first");
    assert_eq!(found("tool_call.started", Some("/elsewhere"), 9), Vec::<u64>::new());
    assert_eq!(found("command.misread", None, 9), Vec::<u64>::new());
}

fn an_empty_store_knows_nothing(store: &dyn EventStore) {
    assert_eq!(rows(store, RUN), (vec![], vec![], vec![]));
    assert_eq!(store.run(RUN).unwrap(), None);
    assert_eq!(store.indexed_up_to(RUN).unwrap().seq, 0);
    store.apply(RUN, &[]).unwrap();
    store.clear(RUN).unwrap();
}

fn a_run_becomes_a_row(store: &dyn EventStore) {
    let events = a_run();
    store.apply(RUN, &events).unwrap();
    let expected = RunRow {
        id: RUN.into(),
        started: Some(events[0].event.time),
        ended: Some(events[6].event.time),
        workspace: Some("/work".into()),
        session: Some("session-1".into()),
        preset: Some("workspace".into()),
        front_end: Some("cli".into()),
        events: 7,
        calls: 3,
        failed: 1,
        task: None,
        outcome: None,
        usage: BTreeMap::new(),
    };
    assert_eq!(store.run(RUN).unwrap(), Some(expected));
}

fn calls_become_rows(store: &dyn EventStore) {
    let events = a_run();
    store.apply(RUN, &events).unwrap();
    let calls = store.calls(RUN).unwrap();
    let worked = CallRow {
        run: RUN.into(),
        tool_call_id: "call-a".into(),
        tool: Some("edit".into()),
        version: Some("1.2.3".into()),
        risk: Some(Risk::High),
        decision: Some(Decision::Ask),
        rule: Some("ask write src/**".into()),
        layer: Some(Layer::User),
        approval: Some(ApprovalScope::Run),
        started: Some(events[1].event.time),
        ended: Some(events[2].event.time),
        ok: Some(true),
        error_code: None,
        error_class: None,
        exit_code: Some(0),
        truncated: true,
        redacted: true,
        duration_ms: Some(12),
        files_changed: vec!["src/lib.rs".into()],
        commands_run: vec!["cargo fmt".into()],
        args: Some(json!({ "path": "src/lib.rs", "find": "a\nb", "replace": "ü", "all": false, "z": 1.5 })),
    };
    assert_eq!(calls[0], worked);
    let failed = (calls[1].ok, calls[1].error_code, calls[1].error_class, calls[1].duration_ms);
    assert_eq!(failed, (Some(false), Some(ErrorCode::NoMatch), Some(ErrorClass::ToolExec), Some(7)));
    assert_eq!((calls[2].ok, calls[2].ended, calls[2].truncated), (None, None, false));
    assert_eq!(calls.len(), 3);
}

fn events_come_back_as_they_were(store: &dyn EventStore) {
    let events = a_run();
    store.apply(RUN, &events).unwrap();
    assert_eq!(store.events(RUN, 0, 100).unwrap(), events);
    assert_eq!(store.events(RUN, 2, 3).unwrap(), events[2..5]);
    assert_eq!(store.events(RUN, u64::MAX, 3).unwrap(), []);
}

fn applying_twice_changes_nothing(store: &dyn EventStore) {
    let events = a_run();
    store.apply(RUN, &events[..4]).unwrap();
    store.apply(RUN, &events).unwrap();
    let once = rows(store, RUN);
    store.apply(RUN, &events[2..]).unwrap();
    assert_eq!(rows(store, RUN), once);
}

fn the_order_of_applying_does_not_matter(store: &dyn EventStore) {
    let events = a_run();
    store.apply(RUN, &events).unwrap();
    let in_order = rows(store, RUN);
    store.clear(RUN).unwrap();
    for recorded in events.iter().rev() {
        store.apply(RUN, std::slice::from_ref(recorded)).unwrap();
    }
    assert_eq!(rows(store, RUN), in_order);
}

fn gaps_are_known(store: &dyn EventStore) {
    let events = a_run();
    let part = |seq: usize| {
        let bytes = events[..seq].iter().map(|recorded| recorded.line.len() as u64 + 1).sum();
        IndexedPart { seq: seq as u64, bytes }
    };
    store.apply(RUN, &events[5..]).unwrap();
    assert_eq!(store.indexed_up_to(RUN).unwrap(), part(0));
    store.apply(RUN, &events[..2]).unwrap();
    assert_eq!(store.indexed_up_to(RUN).unwrap(), part(2));
    store.apply(RUN, &[&events[1..2], &events[3..4]].concat()).unwrap();
    assert_eq!(store.indexed_up_to(RUN).unwrap(), part(2), "the third is still missing");
    store.apply(RUN, &events[2..5]).unwrap();
    assert_eq!(store.indexed_up_to(RUN).unwrap(), part(7));
}

/// A call that is retried with a wider grant starts and ends twice.
fn of_two_beginnings_the_later_one_counts(store: &dyn EventStore) {
    let events = recorded(vec![started(1, "a"), failed(2, "a"), started(3, "a"), completed(4, "a")]);
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]] {
        for index in order {
            store.apply(RUN, &events[index..=index]).unwrap();
        }
        let calls = store.calls(RUN).unwrap();
        assert_eq!(calls.len(), 1);
        let (call, times) = (&calls[0], (Some(events[2].event.time), Some(events[3].event.time)));
        assert_eq!((call.started, call.ended), times, "{order:?}");
        assert_eq!((call.ok, call.error_code), (Some(true), None), "{order:?}");
        store.clear(RUN).unwrap();
    }
}

fn runs_are_filtered_newest_first(store: &dyn EventStore) {
    for (second, run, session) in [(10, "b", "one"), (30, "a", "two"), (20, "c", "one")] {
        let begun = event(second, "", EventPayload::RunStarted(facts(session)));
        store.apply(run, &recorded(vec![begun])).unwrap();
    }
    let ids =
        |filter: RunFilter| -> Vec<String> { store.runs(&filter).unwrap().into_iter().map(|run| run.id).collect() };
    let all = RunFilter::default();
    assert_eq!(ids(all.clone()), ["a", "c", "b"]);
    assert_eq!(ids(RunFilter { limit: 2, ..all.clone() }), ["a", "c"]);
    assert_eq!(ids(RunFilter { session: Some("one".into()), ..all.clone() }), ["c", "b"]);
    assert_eq!(ids(RunFilter { workspace: Some("/work".into()), ..all.clone() }), ["a", "c", "b"]);
    assert_eq!(ids(RunFilter { workspace: Some("/other".into()), ..all.clone() }), [] as [&str; 0]);
    assert_eq!(ids(RunFilter { text: Some("ONE".into()), ..all.clone() }), ["c", "b"]);
    assert_eq!(ids(RunFilter { text: Some("%".into()), ..all.clone() }), [] as [&str; 0], "it is no pattern");
    let before = store.run("a").unwrap().unwrap().started;
    assert_eq!(ids(RunFilter { before, ..all }), ["c", "b"]);
}

fn tokens_are_counted_by_model(store: &dyn EventStore) {
    let agent = |trace: &str, payload: serde_json::Value| -> Event {
        let mut event = json!({ "time": "2026-01-01T00:00:00Z", "run": RUN, "trace_id": trace });
        event.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    };
    let begins = |trace, model| {
        agent(
            trace,
            json!({ "kind": "agent.started", "agent": "main", "model": model, "objective": "it's \"done\", {}" }),
        )
    };
    let ends = |trace, input, output| {
        let tokens = json!({ "input": input, "output": output });
        let ended = json!({ "kind": "agent.ended", "finish": "answered", "summary": "", "turns": 1, "tokens": tokens, "duration_ms": 1 });
        agent(trace, ended)
    };
    let begun = event(1, "", EventPayload::RunStarted(facts("one")));
    let agents = [begins("a", "large"), begins("b", "small"), ends("b", 5, 1), ends("a", 100, 10)];
    let more = [begins("c", "large"), ends("c", 200, 20), begins("d", "large")];
    store.apply(RUN, &recorded([vec![begun], agents.into(), more.into()].concat())).unwrap();
    let used = |input, output| TokenUsage { input, output };
    let expected = BTreeMap::from([("large".to_owned(), used(300, 30)), ("small".to_owned(), used(5, 1))]);
    assert_eq!(store.run(RUN).unwrap().unwrap().usage, expected);
    assert_eq!(store.runs(&RunFilter::default()).unwrap()[0].usage, expected);
}

fn calls_are_found_by_what_they_touch(store: &dyn EventStore) {
    let begun = event(1, "", EventPayload::RunStarted(facts("one")));
    store.apply(RUN, &recorded(vec![begun, started(2, "a"), completed(3, "a"), started(4, "b")])).unwrap();
    let found = |text: &str, session: Option<&str>| -> Vec<String> {
        let filter = CallFilter { text: text.into(), session: session.map(str::to_owned), workspace: None, limit: 10 };
        store.search_calls(&filter).unwrap().into_iter().map(|call| call.tool_call_id).collect()
    };
    let tool = store.calls(RUN).unwrap()[0].tool.clone().unwrap();
    assert_eq!(found(&tool.to_uppercase(), None), ["b", "a"], "newest first");
    assert_eq!(found(&tool, Some("one")), ["b", "a"]);
    assert_eq!(found(&tool, Some("two")), [] as [&str; 0]);
    assert_eq!(found("no such words", None), [] as [&str; 0]);
}

fn clearing_forgets_one_run(store: &dyn EventStore) {
    store.apply(RUN, &a_run()).unwrap();
    store.apply("other", &a_run()).unwrap();
    store.clear(RUN).unwrap();
    assert_eq!((store.run(RUN).unwrap(), store.indexed_up_to(RUN).unwrap().seq), (None, 0));
    assert_eq!(store.calls(RUN).unwrap(), []);
    assert_eq!(store.indexed_up_to("other").unwrap().seq, 7);
}

/// An id with a zero byte, and two long ones that differ only at their ends.
fn a_caller_may_choose_odd_ids(store: &dyn EventStore) {
    let long: String = (0..2_000).map(|number| format!("{number} ü")).collect();
    let ids = ["a\0b".to_owned(), format!("{long}1"), format!("{long}2")];
    let calls = ids.iter().flat_map(|id| [started(1, id), completed(2, id)]);
    let events = recorded(calls.collect());
    store.apply(RUN, &events).unwrap();
    assert_eq!(store.events(RUN, 0, 100).unwrap(), events);
    let calls = store.calls(RUN).unwrap();
    assert_eq!(calls.iter().map(|call| call.ok).collect::<Vec<_>>(), [Some(true); 3]);
    assert_eq!(calls[0].tool_call_id, "a\u{fffd}b");
    assert!(calls[1].tool_call_id.starts_with(&long[..100]), "{}", calls[1].tool_call_id);
}
