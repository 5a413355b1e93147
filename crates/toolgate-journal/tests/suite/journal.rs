//! Appending, reading back, and what happens to a damaged end.

use std::fs;
use std::io::Write;
use std::sync::Arc;

use serde_json::json;
use sha2::{Digest, Sha256};
use toolgate_contract::{Durability, Event, EventPayload};
use toolgate_journal::{
    IndexedPart, JournalError, JournalFault, RunOptions, SigningKey, Verification, read_events, verify,
};

use crate::world::{RUN, World, completed, facts, failed, key, some_calls, started};

fn events(world: &World) -> Vec<Event> {
    read_events(&world.state.run_dir(RUN).unwrap()).unwrap().map(|event| event.unwrap().event).collect()
}

fn ok(events: u64) -> Verification {
    Verification::Ok { events, signed: true, unfinished: false }
}

fn check(world: &World) -> Verification {
    verify(&world.state.run_dir(RUN).unwrap(), Some(&key())).unwrap()
}

fn refusal(world: &World, options: &RunOptions) -> JournalError {
    world.state.open_run(RUN, options).err().expect("the journal should be refused")
}

fn append_raw(world: &World, bytes: &[u8]) {
    fs::OpenOptions::new().append(true).open(world.file("events.jsonl")).unwrap().write_all(bytes).unwrap();
}

#[test]
fn what_was_appended_is_read_back_in_order() {
    let world = World::new();
    let run = world.begin();
    assert_eq!(run.journal.append(&some_calls()[..2]).unwrap(), 3);
    assert_eq!(run.journal.append(&[]).unwrap(), 3, "nothing to append changes nothing");
    assert_eq!(run.journal.append(&some_calls()[2..]).unwrap(), 6);
    run.end().unwrap();
    assert_eq!(run.journal.last(), 7);
    let events = events(&world);
    assert_eq!(events[0].payload, EventPayload::RunStarted(facts("session-1")));
    assert_eq!(events[1..6], some_calls());
    assert_eq!(events[6].payload, EventPayload::RunEnded);
    assert_eq!(check(&world), ok(7));
}

#[test]
fn nothing_is_appended_to_a_removed_record() {
    let world = World::new();
    let run = world.begin();
    run.journal.append(&some_calls()[..2]).unwrap();
    fs::remove_dir_all(world.state.path()).unwrap();
    let said = run.journal.append(&some_calls()[2..]).unwrap_err().to_string();
    assert!(said.contains("was removed"), "{said}");
}

#[test]
fn each_line_has_its_number_first_and_the_hash_of_the_one_before_last() {
    let world = World::new();
    world.begin().journal.append(&some_calls()).unwrap();
    let text = fs::read_to_string(world.file("events.jsonl")).unwrap();
    let mut prev = "0".repeat(64);
    let last_of_an_append = [0, 5];
    for (index, line) in text.lines().enumerate() {
        assert!(line.starts_with(&format!("{{\"seq\":{},\"time\":", index + 1)), "{line}");
        let end = match line.rsplit_once(",\"seal\":\"") {
            Some((text, _)) if last_of_an_append.contains(&index) => format!("{text}}}"),
            None if !last_of_an_append.contains(&index) => line.to_owned(),
            _ => panic!("the last line of an append is signed, and no other is: {line}"),
        };
        assert!(end.ends_with(&format!(",\"prev\":\"{prev}\"}}")), "{line}");
        prev = Sha256::digest(line).iter().map(|byte| format!("{byte:02x}")).collect();
    }
    let head = fs::read_to_string(world.file("events.head")).unwrap();
    assert_eq!(head.len(), 256);
    assert!(head.starts_with(&format!("{{\"seq\":6,\"hash\":\"{prev}\",\"seal\":\"")), "{head}");
}

#[test]
fn a_journal_continues_where_it_ended() {
    let world = World::new();
    for durability in [Durability::Os, Durability::Sync] {
        let options = RunOptions { durability, ..world.options.clone() };
        let id = format!("run-{durability:?}");
        world.state.begin_run(&id, facts("s"), &options).unwrap().journal.append(&some_calls()).unwrap();
        let run = world.state.open_run(&id, &options).unwrap();
        assert_eq!(run.journal.last(), 6);
        assert_eq!(run.journal.append(&[started(9, "x")]).unwrap(), 7);
        assert_eq!(verify(run.path(), Some(&key())).unwrap(), ok(7));
    }
}

#[test]
fn two_handles_on_one_journal_take_notice_of_each_other() {
    let world = World::new();
    let (one, two) = (world.begin(), world.reopen());
    assert_eq!(one.journal.append(&[started(1, "a")]).unwrap(), 2);
    assert_eq!(two.journal.append(&[started(2, "b"), completed(3, "b")]).unwrap(), 4);
    assert_eq!(one.journal.append(&[completed(4, "a")]).unwrap(), 5);
    assert_eq!(check(&world), ok(5));
}

#[test]
fn many_threads_may_append_to_one_journal() {
    let world = World::new();
    let run = Arc::new(world.begin());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let run = Arc::clone(&run);
            scope.spawn(move || {
                for call in 0..25 {
                    run.journal.append(&[started(call, &format!("{thread}-{call}"))]).unwrap();
                }
            });
        }
    });
    assert_eq!(check(&world), ok(201));
}

/// The forms of a torn end, of which nothing may be lost.
#[test]
fn a_torn_end_is_moved_byte_for_byte_and_recorded() {
    let whole_line_without_newline = {
        let world = World::new();
        let run = world.begin();
        let before = fs::read(world.file("events.jsonl")).unwrap().len();
        run.journal.append(&[started(1, "a")]).unwrap();
        let mut line = fs::read(world.file("events.jsonl")).unwrap().split_off(before);
        line.pop();
        line
    };
    for torn in [
        b"{\"seq\":2,\"ti".as_slice(),
        b"{\"seq\":3,\"ti",
        b"{\"seq\":3}\n",
        b"\n",
        b"\0\0\0\0",
        b"one\ntwo\nthree",
        whole_line_without_newline.as_slice(),
    ] {
        let world = World::new();
        world.begin();
        append_raw(&world, torn);
        let shown = String::from_utf8_lossy(torn);
        // A kill leaves a partial line behind; anything else was put there by another program.
        let begun = torn == whole_line_without_newline || torn == b"{\"seq\":2,\"ti";
        let found = match begun {
            true => Verification::Ok { events: 1, signed: true, unfinished: true },
            false => JournalFault::Torn { line: 2 }.into(),
        };
        assert_eq!(check(&world), found, "{shown}");
        assert_eq!(read_events(&world.file("")).unwrap().filter(Result::is_ok).count(), 1, "{shown}");

        let run = world.reopen();
        assert_eq!(fs::read(world.file("events.torn-1")).unwrap(), torn, "{shown}");
        let sha256 = Sha256::digest(torn).iter().map(|byte| format!("{byte:02x}")).collect();
        let noted =
            EventPayload::JournalRecovered { bytes: torn.len() as u64, sha256, kept_as: "events.torn-1".to_owned() };
        assert_eq!(events(&world)[1].payload, noted, "{shown}");
        run.journal.append(&[started(9, "x")]).unwrap();
        assert_eq!(check(&world), ok(3), "{shown}");
    }
}

#[test]
fn a_line_torn_by_another_process_is_moved_before_the_next_append() {
    let world = World::new();
    let run = world.begin();
    for number in 1..=2 {
        append_raw(&world, b"{\"seq\":");
        run.journal.append(&[started(1, "a")]).unwrap();
        assert!(world.file(&format!("events.torn-{number}")).exists());
    }
    assert_eq!(check(&world), ok(5));
}

#[test]
fn a_last_line_that_the_disk_lost_in_part_is_moved_too() {
    let world = World::new();
    world.begin().journal.append(&some_calls()).unwrap();
    let bytes = fs::read(world.file("events.jsonl")).unwrap();
    fs::write(world.file("events.jsonl"), &bytes[..bytes.len() - 10]).unwrap();
    world.reopen();
    assert!(matches!(events(&world)[5].payload, EventPayload::JournalRecovered { .. }));
    assert_eq!(check(&world), ok(6));
}

#[test]
fn an_append_after_the_head_is_trusted_by_its_own_signature() {
    let world = World::new();
    let run = world.begin();
    let head = fs::read(world.file("events.head")).unwrap();
    run.journal.append(&some_calls()[..2]).unwrap();
    fs::write(world.file("events.head"), &head).unwrap();
    assert_eq!(check(&world), ok(3), "the program was killed right then");
    world.reopen();
    assert_ne!(fs::read(world.file("events.head")).unwrap(), head);
    assert_eq!(check(&world), ok(3));
}

#[test]
fn half_an_append_is_moved_completely() {
    let world = World::new();
    let run = world.begin();
    let (head, before) = (fs::read(world.file("events.head")).unwrap(), journal_size(&world));
    run.journal.append(&some_calls()[..2]).unwrap();
    let bytes = fs::read(world.file("events.jsonl")).unwrap();
    fs::write(world.file("events.jsonl"), &bytes[..bytes.len() - 10]).unwrap();
    fs::write(world.file("events.head"), &head).unwrap();
    assert_eq!(check(&world), JournalFault::Torn { line: 3 }.into());
    world.reopen();
    assert_eq!(fs::read(world.file("events.torn-1")).unwrap(), bytes[before..bytes.len() - 10]);
    assert_eq!(check(&world), ok(2));
}

fn journal_size(world: &World) -> usize {
    fs::read(world.file("events.jsonl")).unwrap().len()
}

/// An older head, and more than the one append that a kill can have kept from it.
#[test]
fn lines_after_the_head_without_a_signature_are_forged() {
    let world = World::new();
    let run = world.begin();
    let head = fs::read(world.file("events.head")).unwrap();
    run.journal.append(&[started(1, "a")]).unwrap();
    let whole = fs::read_to_string(world.file("events.jsonl")).unwrap();
    let restore = |journal: &str| {
        fs::write(world.file("events.jsonl"), journal).unwrap();
        fs::write(world.file("events.head"), &head).unwrap();
    };
    let (line, _) = whole.rsplit_once(",\"seal\":\"").unwrap();
    let renamed = whole.replace("\"time\":\"2023-11-14T22:13:21Z\"", "\"time\":\"2023-11-14T22:13:29Z\"");
    assert_ne!(renamed, whole);
    run.journal.append(&[completed(2, "a")]).unwrap();
    let twice = fs::read_to_string(world.file("events.jsonl")).unwrap();
    for (forged, line) in [(format!("{line}}}\n"), 2), (renamed, 2), (twice, 3)] {
        restore(&forged);
        let fault = JournalFault::AfterSignature { line };
        assert_eq!(check(&world), fault.into());
        assert!(
            matches!(refusal(&world, &world.options), JournalError::Damaged { fault: found, .. } if found == fault)
        );
    }
    restore(&whole);
    assert_eq!(check(&world), ok(2));
}

/// Continuing a journal that was tampered with would hide the evidence under a new signature.
#[test]
fn a_journal_that_was_tampered_with_is_not_opened() {
    type Damage = fn(&World, Vec<u8>) -> Vec<u8>;
    let cases: &[(&str, Damage, JournalFault)] = &[
        ("cut off", |_, text| text[..text.len() / 3].to_vec(), JournalFault::Torn { line: 3 }),
        (
            "whole lines gone",
            |_, text| text.split_inclusive(|&b| b == b'\n').take(4).flatten().copied().collect(),
            JournalFault::CutOff { line: 5, expected: 6 },
        ),
        (
            "changed",
            |_, text| String::from_utf8(text).unwrap().replacen("call-b", "call-x", 1).into_bytes(),
            JournalFault::Changed { line: 4 },
        ),
        (
            "no head",
            |world, text| {
                fs::remove_file(world.file("events.head")).unwrap();
                text
            },
            JournalFault::HeadMissing,
        ),
    ];
    for (name, damage, expected) in cases {
        let world = World::new();
        world.begin().journal.append(&some_calls()).unwrap();
        let damaged = damage(&world, fs::read(world.file("events.jsonl")).unwrap());
        fs::write(world.file("events.jsonl"), &damaged).unwrap();
        match refusal(&world, &world.options) {
            JournalError::Damaged { fault, .. } => assert_eq!(fault, *expected, "{name}"),
            other => panic!("{name}: {other}"),
        }
        assert_eq!(fs::read(world.file("events.jsonl")).unwrap(), damaged, "{name}: nothing was touched");
    }
}

#[test]
fn a_journal_that_shrinks_under_an_open_handle_is_noticed() {
    let world = World::new();
    let run = world.begin();
    run.journal.append(&some_calls()).unwrap();
    fs::write(world.file("events.jsonl"), b"").unwrap();
    let error = run.journal.append(&[started(1, "a")]).unwrap_err();
    assert!(
        matches!(error, JournalError::Damaged { fault: JournalFault::CutOff { line: 1, expected: 6 }, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("begin a new run"), "{error}");
}

#[test]
fn a_signed_journal_is_only_opened_with_its_key() {
    let world = World::new();
    world.begin();
    let without = RunOptions { key: None, ..world.options.clone() };
    assert!(matches!(refusal(&world, &without), JournalError::KeyNeeded { .. }));
    let other = RunOptions { key: Some(SigningKey::from([1; 32])), ..world.options.clone() };
    assert!(matches!(refusal(&world, &other), JournalError::Damaged { fault: JournalFault::SignatureWrong, .. }));

    world.state.begin_run("unsigned", facts("s"), &without).unwrap();
    let error = world.state.open_run("unsigned", &world.options).err().unwrap();
    assert!(matches!(error, JournalError::Damaged { fault: JournalFault::SignatureMissing, .. }));
}

/// JSON parsers have a depth limit; the chain must not.
#[test]
fn arguments_nested_too_deep_to_be_read_back_do_not_break_the_journal() {
    let world = World::new();
    let run = world.begin();
    let mut deep = started(1, "deep");
    if let EventPayload::CallStarted { args, .. } = &mut deep.payload {
        *args = (0..1000).fold(json!(null), |inner, _| json!([inner]));
    }
    run.journal.append(&[deep, completed(2, "deep")]).unwrap();
    assert_eq!(check(&world), ok(3));
    assert_eq!(world.reopen().journal.append(&[started(3, "x")]).unwrap(), 4);
    let read: Vec<_> = read_events(run.path()).unwrap().map(|event| event.map(|event| event.seq).ok()).collect();
    assert_eq!(read, [Some(1), None, Some(3), Some(4)], "one line can't be read, and the next ones come after it");
    assert_eq!(read_events(run.path()).unwrap().after(IndexedPart { seq: 2, bytes: 0 }).unwrap().count(), 2);
}

#[test]
fn the_id_of_a_call_is_taken_once_in_a_run_whoever_made_the_call() {
    let world = World::new();
    let run = world.begin();
    assert!(run.journal.claim_call("call-1").unwrap());
    assert!(!run.journal.claim_call("call-1").unwrap(), "before its first event is recorded");
    run.journal.append(&[started(1, "call-1")]).unwrap();

    let other = world.reopen();
    assert!(!other.journal.claim_call("call-1").unwrap(), "it is in the record");
    assert!(other.journal.claim_call("call-2").unwrap());
    other.journal.append(&[started(2, "call-2")]).unwrap();
    assert!(!run.journal.claim_call("call-2").unwrap(), "another process made that call meanwhile");
    assert!(!run.journal.has_call("call-3").unwrap());
    assert!(run.journal.claim_call("call-3").unwrap());
    assert!(run.journal.has_call("call-3").unwrap());
}

#[test]
fn the_events_of_one_call_are_found_whatever_its_id_is() {
    let world = World::new();
    let run = world.begin();
    let odd = "a \"quoted\" \\ id\u{1F600}";
    run.journal.append(&[started(1, "call-1"), started(2, odd), failed(3, "call-1"), completed(4, odd)]).unwrap();
    let seqs = |id: &str| -> Vec<u64> {
        let found = read_events(run.path()).unwrap().of_call(id).unwrap();
        found.iter().map(|event| event.seq).collect()
    };
    assert_eq!(seqs("call-1"), [2, 4]);
    assert_eq!(seqs(odd), [3, 5]);
    assert_eq!(seqs("call"), Vec::<u64>::new(), "a part of an id is another id");
}
