//! Whatever is done to a journal, verifying finds it and names the line.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::*;
use tempfile::TempDir;
use toolgate_journal::{JournalError, JournalFault, RunOptions, SigningKey, Verification, verify};

use crate::world::{RUN, World, facts, key, some_calls, started};

/// A journal of six lines as two files' bytes, sealed or not.
struct Journal {
    events: Vec<u8>,
    head: Vec<u8>,
}

static SEALED: LazyLock<Journal> = LazyLock::new(|| journal(Some(key())));
static UNSEALED: LazyLock<Journal> = LazyLock::new(|| journal(None));

fn journal(key: Option<SigningKey>) -> Journal {
    let world = World::new();
    let options = RunOptions { key, ..world.options.clone() };
    world.state.begin_run(RUN, facts("s"), &options).unwrap().journal.append(&some_calls()).unwrap();
    Journal {
        events: fs::read(world.file("events.jsonl")).unwrap(),
        head: fs::read(world.file("events.head")).unwrap(),
    }
}

/// A directory whose files can be overwritten again and again.
struct Desk {
    _root: TempDir,
    run: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let run = root.path().join(RUN);
        fs::create_dir(&run).unwrap();
        Self { _root: root, run }
    }

    fn check(&self, events: &[u8], head: &[u8], key: Option<&SigningKey>) -> Verification {
        fs::write(self.run.join("events.jsonl"), events).unwrap();
        fs::write(self.run.join("events.head"), head).unwrap();
        verify(&self.run, key).unwrap()
    }
}

fn lines(events: &[u8]) -> Vec<Vec<u8>> {
    events.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// The number of the line that a byte belongs to.
fn line_of(events: &[u8], position: usize) -> u64 {
    1 + events[..position].iter().filter(|&&byte| byte == b'\n').count() as u64
}

fn found_at(verification: Verification) -> Option<u64> {
    match verification {
        Verification::Ok { .. } => panic!("the change was not found"),
        Verification::Bad { line, .. } => line,
    }
}

#[test]
fn an_untouched_journal_is_fine_and_says_whether_a_seal_was_checked() {
    let (queue, key) = (Desk::new(), key());
    let ok = |sealed| Verification::Ok { events: 6, sealed, unfinished: false };
    assert_eq!(queue.check(&SEALED.events, &SEALED.head, Some(&key)), ok(true));
    assert_eq!(queue.check(&SEALED.events, &SEALED.head, None), ok(false));
    assert_eq!(queue.check(&UNSEALED.events, &UNSEALED.head, None), ok(false));
}

#[test]
fn every_byte_of_the_events_counts() {
    let (queue, key) = (Desk::new(), key());
    for position in 0..SEALED.events.len() {
        let mut events = SEALED.events.clone();
        events[position] ^= 1;
        let found = found_at(queue.check(&events, &SEALED.head, Some(&key)));
        assert_eq!(found, Some(line_of(&SEALED.events, position)), "byte {position}");
    }
}

#[test]
fn every_byte_of_the_head_counts() {
    let (queue, key) = (Desk::new(), key());
    for position in 0..SEALED.head.len() {
        for value in [b'0', b'a', b'A', b' ', b'\n', b'}', 0xff] {
            for (journal, key) in [(&*SEALED, Some(&key)), (&*UNSEALED, None)] {
                let mut head = journal.head.clone();
                if std::mem::replace(&mut head[position], value) != value {
                    found_at(queue.check(&journal.events, &head, key));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_change_of_one_byte_is_found_and_its_line_named(
        position in 0..UNSEALED.events.len(), value in any::<u8>(), sealed in any::<bool>(),
    ) {
        let (journal, key) = if sealed { (&*SEALED, Some(key())) } else { (&*UNSEALED, None) };
        let position = position % journal.events.len();
        prop_assume!(journal.events[position] != value);
        let mut events = journal.events.clone();
        events[position] = value;
        let found = found_at(Desk::new().check(&events, &journal.head, key.as_ref()));
        prop_assert_eq!(found, Some(line_of(&journal.events, position)));
    }

    #[test]
    fn any_cut_is_found(length in 0..UNSEALED.events.len()) {
        let found = found_at(Desk::new().check(&UNSEALED.events[..length], &UNSEALED.head, None));
        prop_assert_eq!(found, Some(line_of(&UNSEALED.events, length)));
    }
}

/// Each case takes the six lines apart and puts them together differently.
#[test]
fn what_was_done_to_the_lines_gets_its_name() {
    type Change = fn(&mut Vec<Vec<u8>>);
    let cases: &[(&str, Change, JournalFault)] = &[
        ("first dropped", |l| drop(l.remove(0)), JournalFault::Dropped { line: 1, through: 1 }),
        ("third dropped", |l| drop(l.remove(2)), JournalFault::Dropped { line: 3, through: 3 }),
        ("last but one dropped", |l| drop(l.remove(4)), JournalFault::Dropped { line: 5, through: 5 }),
        ("two dropped", |l| drop(l.drain(1..3)), JournalFault::Dropped { line: 2, through: 3 }),
        ("last dropped", |l| drop(l.pop()), JournalFault::CutOff { line: 6, expected: 6 }),
        ("three dropped at the end", |l| l.truncate(3), JournalFault::CutOff { line: 4, expected: 6 }),
        ("all dropped", Vec::clear, JournalFault::CutOff { line: 1, expected: 6 }),
        ("swapped", |l| l.swap(2, 3), JournalFault::Swapped { line: 3 }),
        ("first swapped", |l| l.swap(0, 1), JournalFault::Swapped { line: 1 }),
        ("last swapped", |l| l.swap(4, 5), JournalFault::Swapped { line: 5 }),
        ("a copy added", |l| l.insert(4, l[1].clone()), JournalFault::Added { line: 5 }),
        ("a copy added right behind", |l| l.insert(3, l[2].clone()), JournalFault::Added { line: 4 }),
        ("a copy added in front", |l| l.insert(0, l[5].clone()), JournalFault::Added { line: 1 }),
        ("a copy added at the end", |l| l.push(l[5].clone()), JournalFault::Added { line: 7 }),
        ("one with number and hash forged", |l| l.insert(3, forged(&l[3])), JournalFault::Added { line: 4 }),
        ("an empty line", |l| l.insert(3, b"\n".to_vec()), JournalFault::Unreadable { line: 4 }),
        ("text in between", |l| l.insert(3, b"hello\n".to_vec()), JournalFault::Unreadable { line: 4 }),
        ("text at the end", |l| l.push(b"hello\n".to_vec()), JournalFault::Torn { line: 7 }),
        ("half a line at the end", |l| l[5].truncate(50), JournalFault::Torn { line: 6 }),
    ];
    let (queue, key) = (Desk::new(), key());
    for (name, change, expected) in cases {
        let mut lines = lines(&SEALED.events);
        change(&mut lines);
        let found = queue.check(&lines.concat(), &SEALED.head, Some(&key));
        assert_eq!(found, (*expected).into(), "{name}");
    }
}

/// The same place in the chain, another event.
fn forged(line: &[u8]) -> Vec<u8> {
    String::from_utf8(line.to_vec()).unwrap().replace("call-", "evil-").into_bytes()
}

/// Without the key, a chain that was rewritten as a whole looks right. The seal tells.
#[test]
fn a_chain_rewritten_from_the_start_is_caught_by_the_seal() {
    let (queue, key) = (Desk::new(), key());
    let other = |key| {
        let world = World::new();
        let options = RunOptions { key, ..world.options.clone() };
        world.state.begin_run(RUN, facts("s"), &options).unwrap().journal.append(&[started(1, "evil")]).unwrap();
        (fs::read(world.file("events.jsonl")).unwrap(), fs::read(world.file("events.head")).unwrap())
    };
    let (events, head) = other(None);
    assert_eq!(queue.check(&events, &head, None), Verification::Ok { events: 2, sealed: false, unfinished: false });
    assert_eq!(queue.check(&events, &head, Some(&key)), JournalFault::SealMissing.into());
    assert_eq!(queue.check(&events, &SEALED.head, Some(&key)), JournalFault::CutOff { line: 3, expected: 6 }.into());
    let (events, head) = other(Some(SigningKey::from([1; 32])));
    assert_eq!(queue.check(&events, &head, Some(&key)), JournalFault::SealWrong.into());
}

#[test]
fn a_journal_moved_to_another_run_is_caught_by_the_seal() {
    let queue = Desk::new();
    queue.check(&SEALED.events, &SEALED.head, None);
    let elsewhere = queue.run.with_file_name("run-2");
    fs::rename(&queue.run, &elsewhere).unwrap();
    assert_eq!(verify(&elsewhere, Some(&key())).unwrap(), JournalFault::SealWrong.into());
}

#[test]
fn a_missing_file_is_a_fault_and_a_missing_run_an_error() {
    let queue = Desk::new();
    queue.check(&SEALED.events, &SEALED.head, None);
    fs::remove_file(queue.run.join("events.head")).unwrap();
    assert_eq!(verify(&queue.run, None).unwrap(), JournalFault::HeadMissing.into());
    queue.check(&SEALED.events, &SEALED.head, None);
    fs::remove_file(queue.run.join("events.jsonl")).unwrap();
    assert_eq!(verify(&queue.run, None).unwrap(), JournalFault::CutOff { line: 1, expected: 6 }.into());
    fs::remove_file(queue.run.join("events.head")).unwrap();
    assert!(matches!(verify(&queue.run, None), Err(JournalError::NoSuchRun { .. })));
}
