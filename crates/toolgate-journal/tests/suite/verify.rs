//! Every manipulation of a journal is found, with its line.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::*;
use tempfile::TempDir;
use toolgate_journal::{JournalError, JournalFault, RunOptions, SigningKey, Verification, verify};

use crate::world::{RUN, World, facts, key, some_calls, started};

/// A journal of six lines as the bytes of its two files, signed or not.
struct Journal {
    events: Vec<u8>,
    head: Vec<u8>,
}

static SIGNED: LazyLock<Journal> = LazyLock::new(|| journal(Some(key())));
static UNSIGNED: LazyLock<Journal> = LazyLock::new(|| journal(None));

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
struct TestJournalDirectory {
    _root: TempDir,
    run: PathBuf,
}

impl TestJournalDirectory {
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
fn an_untouched_journal_is_fine_and_says_whether_a_signature_was_checked() {
    let (directory, key) = (TestJournalDirectory::new(), key());
    let ok = |signed| Verification::Ok { events: 6, signed, unfinished: false };
    assert_eq!(directory.check(&SIGNED.events, &SIGNED.head, Some(&key)), ok(true));
    assert_eq!(directory.check(&SIGNED.events, &SIGNED.head, None), ok(false));
    assert_eq!(directory.check(&UNSIGNED.events, &UNSIGNED.head, None), ok(false));
}

#[test]
fn every_byte_of_the_events_counts() {
    let (directory, key) = (TestJournalDirectory::new(), key());
    for position in 0..SIGNED.events.len() {
        let mut events = SIGNED.events.clone();
        events[position] ^= 1;
        let found = found_at(directory.check(&events, &SIGNED.head, Some(&key)));
        assert_eq!(found, Some(line_of(&SIGNED.events, position)), "byte {position}");
    }
}

#[test]
fn every_byte_of_the_head_counts() {
    let (directory, key) = (TestJournalDirectory::new(), key());
    for position in 0..SIGNED.head.len() {
        for value in [b'0', b'a', b'A', b' ', b'\n', b'}', 0xff] {
            for (journal, key) in [(&*SIGNED, Some(&key)), (&*UNSIGNED, None)] {
                let mut head = journal.head.clone();
                if std::mem::replace(&mut head[position], value) != value {
                    found_at(directory.check(&journal.events, &head, key));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_change_of_one_byte_is_found_and_its_line_named(
        position in 0..UNSIGNED.events.len(), value in any::<u8>(), signed in any::<bool>(),
    ) {
        let (journal, key) = if signed { (&*SIGNED, Some(key())) } else { (&*UNSIGNED, None) };
        let position = position % journal.events.len();
        prop_assume!(journal.events[position] != value);
        let mut events = journal.events.clone();
        events[position] = value;
        let found = found_at(TestJournalDirectory::new().check(&events, &journal.head, key.as_ref()));
        prop_assert_eq!(found, Some(line_of(&journal.events, position)));
    }

    #[test]
    fn any_cut_is_found(length in 0..UNSIGNED.events.len()) {
        let found = found_at(TestJournalDirectory::new().check(&UNSIGNED.events[..length], &UNSIGNED.head, None));
        prop_assert_eq!(found, Some(line_of(&UNSIGNED.events, length)));
    }
}

/// Each case manipulates the six lines in another way.
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
    let (directory, key) = (TestJournalDirectory::new(), key());
    for (name, change, expected) in cases {
        let mut lines = lines(&SIGNED.events);
        change(&mut lines);
        let found = directory.check(&lines.concat(), &SIGNED.head, Some(&key));
        assert_eq!(found, (*expected).into(), "{name}");
    }
}

/// The same position in the chain, another event.
fn forged(line: &[u8]) -> Vec<u8> {
    String::from_utf8(line.to_vec()).unwrap().replace("call-", "evil-").into_bytes()
}

/// Without the key, a completely rewritten chain looks intact. The signature reveals it.
#[test]
fn a_chain_rewritten_from_the_start_is_caught_by_the_signature() {
    let (directory, key) = (TestJournalDirectory::new(), key());
    let other = |key| {
        let world = World::new();
        let options = RunOptions { key, ..world.options.clone() };
        world.state.begin_run(RUN, facts("s"), &options).unwrap().journal.append(&[started(1, "evil")]).unwrap();
        (fs::read(world.file("events.jsonl")).unwrap(), fs::read(world.file("events.head")).unwrap())
    };
    let (events, head) = other(None);
    assert_eq!(directory.check(&events, &head, None), Verification::Ok { events: 2, signed: false, unfinished: false });
    assert_eq!(directory.check(&events, &head, Some(&key)), JournalFault::SignatureMissing.into());
    assert_eq!(
        directory.check(&events, &SIGNED.head, Some(&key)),
        JournalFault::CutOff { line: 3, expected: 6 }.into()
    );
    let (events, head) = other(Some(SigningKey::from([1; 32])));
    assert_eq!(directory.check(&events, &head, Some(&key)), JournalFault::SignatureWrong.into());
}

#[test]
fn a_journal_moved_to_another_run_is_caught_by_the_signature() {
    let directory = TestJournalDirectory::new();
    directory.check(&SIGNED.events, &SIGNED.head, None);
    let elsewhere = directory.run.with_file_name("run-2");
    fs::rename(&directory.run, &elsewhere).unwrap();
    assert_eq!(verify(&elsewhere, Some(&key())).unwrap(), JournalFault::SignatureWrong.into());
}

#[test]
fn a_missing_file_is_a_fault_and_a_missing_run_an_error() {
    let directory = TestJournalDirectory::new();
    directory.check(&SIGNED.events, &SIGNED.head, None);
    fs::remove_file(directory.run.join("events.head")).unwrap();
    assert_eq!(verify(&directory.run, None).unwrap(), JournalFault::HeadMissing.into());
    directory.check(&SIGNED.events, &SIGNED.head, None);
    fs::remove_file(directory.run.join("events.jsonl")).unwrap();
    assert_eq!(verify(&directory.run, None).unwrap(), JournalFault::CutOff { line: 1, expected: 6 }.into());
    fs::remove_file(directory.run.join("events.head")).unwrap();
    assert!(matches!(verify(&directory.run, None), Err(JournalError::NoSuchRun { .. })));
}
