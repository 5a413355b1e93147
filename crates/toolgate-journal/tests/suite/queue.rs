//! The approval queue: waiting requests and their answers.

use std::fs;

use jiff::Timestamp;
use serde_json::json;
use toolgate_contract::ApprovalScope;
use toolgate_journal::{ApprovalQueue, JournalError, QueueEntry, QueuedAnswer, SigningKey};

use crate::world::{World, key};

fn moment(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn ask(id: &str) -> QueueEntry {
    QueueEntry {
        id: id.into(),
        run: "run-1".into(),
        session: "session-1".into(),
        asked: moment(0),
        expires: None,
        request: json!({ "tool": "delete", "args": { "path": "a\nb" } }),
    }
}

fn yes(by: &str) -> QueuedAnswer {
    QueuedAnswer::Granted { scope: ApprovalScope::Run, by: by.into() }
}

fn ids(queue: &ApprovalQueue) -> Vec<String> {
    queue.asks(moment(1)).unwrap().into_iter().map(|ask| ask.id).collect()
}

#[test]
fn a_request_is_queued_while_its_process_waits_and_the_first_answer_counts() {
    let world = World::new();
    let (asker, other) = (world.state.queue(key()).unwrap(), world.state.queue(key()).unwrap());
    let waiting = asker.put(&ask("ask_1")).unwrap();
    assert_eq!(other.asks(moment(1)).unwrap(), [ask("ask_1")]);
    assert_eq!(waiting.answer().unwrap(), None);
    other.answer("ask_1", &yes("ada"), moment(1)).unwrap();
    let late = other.answer("ask_1", &QueuedAnswer::Denied { by: "bob".into(), reason: None }, moment(1));
    assert!(matches!(late, Err(JournalError::Answered { .. })), "{late:?}");
    assert_eq!(waiting.answer().unwrap(), Some(yes("ada")));
    drop(waiting);
    assert_eq!(ids(&other), [""; 0]);
    let gone = other.answer("ask_1", &yes("ada"), moment(1));
    assert!(matches!(gone, Err(JournalError::NoSuchAsk { .. })), "{gone:?}");
    let left: Vec<_> = fs::read_dir(world.state.path().join("desk")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"], "nothing stays behind");
}

#[test]
fn requests_of_a_dead_process_are_removed() {
    let world = World::new();
    let queue = world.state.queue(key()).unwrap();
    let file = world.state.path().join("desk/ask_1.ask");
    let waiting = queue.put(&ask("ask_1")).unwrap();
    let bytes = fs::read(&file).unwrap();
    drop(waiting);
    // The same bytes, and no process that holds the lock.
    fs::write(&file, bytes).unwrap();
    assert_eq!(ids(&queue), [""; 0]);
    assert!(!file.exists());
}

#[test]
fn requests_and_answers_without_a_valid_signature_are_ignored() {
    let world = World::new();
    let (queue, forger) = (world.state.queue(key()).unwrap(), world.state.queue(SigningKey::from([9; 32])).unwrap());
    let _forged = forger.put(&ask("ask_forged")).unwrap();
    assert_eq!(ids(&queue), [""; 0], "an ask under another key");

    let (first, second) = (queue.put(&ask("ask_1")).unwrap(), queue.put(&ask("ask_2")).unwrap());
    let file = |name: &str| world.state.path().join("desk").join(name);
    queue.answer("ask_1", &yes("ada"), moment(1)).unwrap();
    fs::copy(file("ask_1.answer"), file("ask_2.answer")).unwrap();
    assert_eq!(second.answer().unwrap(), None, "an answer to another ask");
    assert!(!file("ask_2.answer").exists(), "it doesn't keep a real one from coming");
    queue.answer("ask_2", &yes("bob"), moment(1)).unwrap();
    assert_eq!(second.answer().unwrap(), Some(yes("bob")));

    let honest = fs::read(file("ask_1.answer")).unwrap();
    for forged in [
        honest.iter().map(|&byte| if byte == b'r' { b'R' } else { byte }).collect(),
        br#"{"answer":"granted","scope":"always","by":"ada"}"#.to_vec(),
        Vec::new(),
    ] {
        fs::write(file("ask_1.answer"), forged).unwrap();
        assert_eq!(first.answer().unwrap(), None);
    }
}

#[test]
fn an_answer_for_an_earlier_ask_of_the_same_id_is_none() {
    let world = World::new();
    let queue = world.state.queue(key()).unwrap();
    let file = world.state.path().join("desk/ask_1.answer");
    let waiting = queue.put(&ask("ask_1")).unwrap();
    queue.answer("ask_1", &yes("ada"), moment(1)).unwrap();
    let old = fs::read(&file).unwrap();
    drop(waiting);
    let other = QueueEntry { request: json!({ "tool": "delete", "args": { "path": "everything" } }), ..ask("ask_1") };
    let waiting = queue.put(&other).unwrap();
    fs::write(&file, old).unwrap();
    assert_eq!(waiting.answer().unwrap(), None);
}

#[test]
fn an_ask_that_has_expired_cannot_be_answered() {
    let world = World::new();
    let queue = world.state.queue(key()).unwrap();
    let _waiting = queue.put(&QueueEntry { expires: Some(moment(60)), ..ask("ask_1") }).unwrap();
    assert_eq!(queue.asks(moment(59)).unwrap().len(), 1);
    assert_eq!(queue.asks(moment(60)).unwrap(), []);
    assert!(queue.answer("ask_1", &yes("ada"), moment(60)).is_err());
    for bad in ["", "..", "ask_1/../x", "a b"] {
        assert!(matches!(queue.ask(bad, moment(1)), Err(JournalError::NoSuchAsk { .. })), "{bad}");
    }
}
