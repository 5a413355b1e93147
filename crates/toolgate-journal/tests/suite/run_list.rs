//! The list of runs: a run that is gone or was replaced is noticed, and so is a list that was tampered with. What a
//! person does on purpose, a copied workspace and a killed process are no reason for an alarm.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toolgate_journal::{
    JournalFault, RunListCheck, RunListFault, RunOptions, SigningKey, StateDirectory, Verification, verify_listed,
};

use crate::world::{facts, key, options, some_calls};

/// A workspace, and a home that keeps the heads of lists.
struct Listed {
    directory: TempDir,
    options: RunOptions,
}

impl Listed {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        fs::create_dir(directory.path().join("workspace")).unwrap();
        let options = RunOptions { list_heads: Some(directory.path().join("home/run-lists")), ..options() };
        Self { directory, options }
    }

    fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    fn state(&self) -> StateDirectory {
        StateDirectory::open(&self.workspace()).unwrap()
    }

    /// Begins a run, makes a few calls in it and ends it.
    fn run(&self, run: &str) {
        let run = self.state().begin_run(run, facts("s"), &self.options).unwrap();
        run.journal.append(&some_calls()).unwrap();
        run.end().unwrap();
    }

    fn check(&self) -> RunListCheck {
        self.check_at(&self.workspace(), key())
    }

    fn check_at(&self, workspace: &Path, key: SigningKey) -> RunListCheck {
        let options = RunOptions { key: Some(key), ..self.options.clone() };
        StateDirectory::open(workspace).unwrap().run_list(&options).unwrap().check().unwrap()
    }

    fn run_dir(&self, run: &str) -> PathBuf {
        self.state().run_dir(run).unwrap()
    }

    /// The file of our list.
    fn list(&self) -> PathBuf {
        only_file(&self.workspace().join(".toolgate/run-lists"), ".jsonl")
    }

    /// The file of its head, outside of the workspace.
    fn head(&self) -> PathBuf {
        only_file(&self.directory.path().join("home/run-lists"), ".json")
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.list()).unwrap().lines().map(|line| format!("{line}\n")).collect()
    }
}

fn only_file(directory: &Path, ending: &str) -> PathBuf {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<PathBuf> = names.filter(|path| path.to_str().unwrap().ends_with(ending)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[test]
fn a_run_that_is_gone_is_named_with_when_it_was_last_seen() {
    let world = Listed::new();
    ["run-1", "run-2", "run-3"].iter().for_each(|run| world.run(run));
    let before = world.check();
    assert!(before.is_ok() && before.signed && before.listed.len() == 3, "{before:?}");
    fs::remove_dir_all(world.run_dir("run-2")).unwrap();
    let found = world.check();
    assert_eq!(found.gone.keys().collect::<Vec<_>>(), ["run-2"]);
    let gone = &found.gone["run-2"];
    assert_eq!(gone.events, 7, "its last event is known");
    assert!(gone.began.is_some_and(|began| began < gone.last_seen), "{gone:?}");
    world.run("run-4");
    assert_eq!(world.check().gone.len(), 1, "later runs don't hide it");
}

#[test]
fn a_run_without_an_end_is_known_up_to_the_start_of_the_next_one() {
    let world = Listed::new();
    let run = world.state().begin_run("run-1", facts("s"), &world.options).unwrap();
    run.journal.append(&some_calls()).unwrap();
    drop(run);
    assert_eq!(world.check().listed["run-1"].events, 1);
    world.run("run-2");
    assert_eq!(world.check().listed["run-1"].events, 6);
}

#[test]
fn a_run_replaced_by_an_older_copy_of_itself_is_noticed() {
    let world = Listed::new();
    let run = world.state().begin_run("run-1", facts("s"), &world.options).unwrap();
    let [events, head] = ["events.jsonl", "events.head"].map(|name| world.run_dir("run-1").join(name));
    let older = (fs::read(&events).unwrap(), fs::read(&head).unwrap());
    run.journal.append(&some_calls()).unwrap();
    run.end().unwrap();
    let verified = || {
        let check = world.check();
        verify_listed(&world.run_dir("run-1"), Some(&key()), check.listed.get("run-1")).unwrap()
    };
    assert_eq!(verified(), Verification::Ok { events: 7, signed: true, unfinished: false });
    fs::write(&events, older.0).unwrap();
    fs::write(&head, older.1).unwrap();
    assert_eq!(verified(), JournalFault::OlderCopy { line: 2, expected: 7 }.into());
    // Another run under the same id, made with the user's key in another workspace.
    let other = Listed::new();
    let run = other.state().begin_run("run-1", facts("another session"), &other.options).unwrap();
    run.journal.append(&some_calls()).unwrap();
    run.end().unwrap();
    fs::copy(other.run_dir("run-1").join("events.jsonl"), &events).unwrap();
    fs::copy(other.run_dir("run-1").join("events.head"), &head).unwrap();
    assert_eq!(verified(), JournalFault::NotAsListed { line: 7 }.into());
}

/// Whether a fault is the one that was to be found.
type IsExpected = fn(&RunListFault) -> bool;

/// Each case tampers with the list in another way.
#[test]
fn a_list_that_was_tampered_with_is_noticed_stays_known_and_can_be_accepted() {
    type Tamper = fn(&Listed);
    let cases: &[(&str, Tamper, IsExpected)] = &[
        ("removed", |w| fs::remove_file(w.list()).unwrap(), |f| matches!(f, RunListFault::Missing { entries: 5, .. })),
        (
            "all removed",
            |w| fs::remove_dir_all(w.workspace().join(".toolgate")).unwrap(),
            |f| matches!(f, RunListFault::Missing { entries: 5, .. }),
        ),
        ("emptied", |w| fs::write(w.list(), "").unwrap(), |f| matches!(f, RunListFault::Missing { .. })),
        (
            "cut off",
            |w| fs::write(w.list(), w.lines()[..3].concat()).unwrap(),
            |f| matches!(f, RunListFault::CutOff { entries: 3, expected: 5, .. }),
        ),
        (
            "cut off within a line",
            |w| fs::write(w.list(), &w.lines().concat()[..1000]).unwrap(),
            |f| matches!(f, RunListFault::CutOff { expected: 5, .. }),
        ),
        (
            "one dropped",
            |w| fs::write(w.list(), [&w.lines()[..1], &w.lines()[2..]].concat().concat()).unwrap(),
            |f| matches!(f, RunListFault::Changed(JournalFault::Dropped { line: 2, through: 2 })),
        ),
        (
            "one changed",
            |w| fs::write(w.list(), w.lines().concat().replacen("run-1", "run-9", 1)).unwrap(),
            |f| matches!(f, RunListFault::Changed(_)),
        ),
        (
            "last one changed",
            |w| fs::write(w.list(), w.lines().concat().replace("\"events\":7", "\"events\":8")).unwrap(),
            |f| matches!(f, RunListFault::Changed(_) | RunListFault::NotSigned),
        ),
        (
            "text at the end",
            |w| fs::write(w.list(), w.lines().concat() + "hello\n").unwrap(),
            |f| matches!(f, RunListFault::NotSigned),
        ),
        (
            "replaced by another of the user's lists",
            |w| {
                let other = Listed::new();
                (1..9).for_each(|number| other.run(&format!("other-{number}")));
                fs::copy(other.list(), w.list()).unwrap();
            },
            |f| matches!(f, RunListFault::CutOff { expected: 5, .. }),
        ),
    ];
    for (name, tamper, is_expected) in cases {
        let world = Listed::new();
        ["run-1", "run-2"].iter().for_each(|run| world.run(run));
        assert!(world.check().is_ok());
        tamper(&world);
        let found = world.check();
        assert!(found.faults.iter().any(is_expected), "{name}: {found:?}");
        world.run("run-3");
        assert!(!world.check().faults.is_empty(), "{name}: another run hides it");
        let list = world.state().run_list(&world.options).unwrap();
        list.accept("ada").unwrap();
        assert!(world.check().is_ok(), "{name}: {:?}", world.check());
        fs::remove_dir_all(world.run_dir("run-3")).unwrap();
        assert!(world.check().gone.contains_key("run-3"), "{name}: what was there is still watched");
    }
}

#[test]
fn a_run_that_a_person_removed_is_no_alarm_once_accepted() {
    let world = Listed::new();
    ["run-1", "run-2"].iter().for_each(|run| world.run(run));
    fs::remove_dir_all(world.run_dir("run-1")).unwrap();
    let accepted = world.state().run_list(&world.options).unwrap().accept("ada").unwrap();
    assert!(accepted.gone.contains_key("run-1"), "it says what was accepted");
    let found = world.check();
    assert!(found.is_ok() && found.removed == 1, "{found:?}");
    assert!(world.lines().last().unwrap().contains(r#""by":"ada","runs":["run-1"]"#), "{:?}", world.lines());
}

#[test]
fn a_workspace_of_an_older_version_gets_a_list_with_its_runs_and_is_not_accused() {
    let world = Listed::new();
    ["run-1", "run-2"].iter().for_each(|run| world.run(run));
    fs::remove_dir_all(world.workspace().join(".toolgate/run-lists")).unwrap();
    fs::remove_file(world.head()).unwrap();
    let found = world.check();
    assert!(found.is_ok() && found.entries == 0 && found.copied.is_none(), "{found:?}");
    world.run("run-3");
    let found = world.check();
    assert!(found.is_ok() && found.listed.len() == 3, "{found:?}");
    fs::remove_dir_all(world.run_dir("run-1")).unwrap();
    assert!(world.check().gone.contains_key("run-1"), "the runs of before are watched from now on");
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => copy_directory(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

#[test]
fn copied_and_moved_workspaces_are_not_accused() {
    let world = Listed::new();
    world.run("run-1");
    let copy = world.directory.path().join("copy");
    copy_directory(&world.workspace(), &copy);
    world.run("run-2");
    let found = world.check_at(&copy, key());
    assert!(found.is_ok() && found.copied.is_some(), "{found:?}");
    let state = StateDirectory::open(&copy).unwrap();
    state.begin_run("run-3", facts("s"), &world.options).unwrap().end().unwrap();
    let found = world.check_at(&copy, key());
    assert!(found.is_ok() && found.copied.is_some() && found.listed.len() == 2, "{found:?}");
    fs::remove_dir_all(state.run_dir("run-3").unwrap()).unwrap();
    assert!(world.check_at(&copy, key()).gone.contains_key("run-3"), "the copy has a list of its own now");

    let moved = world.directory.path().join("moved");
    fs::rename(world.workspace(), &moved).unwrap();
    let found = world.check_at(&moved, key());
    assert!(found.is_ok() && found.copied.is_none() && found.listed.len() == 2, "{found:?}");
    fs::remove_dir_all(moved.join(".toolgate/run-lists")).unwrap();
    assert!(!world.check_at(&moved, key()).is_ok(), "a moved workspace is still watched");
    fs::create_dir(world.workspace()).unwrap();
    assert!(world.check().is_ok(), "another directory at the same path has nothing to do with it");
}

#[test]
fn a_list_that_came_with_a_repository_is_not_ours() {
    let world = Listed::new();
    world.run("run-1");
    let found = world.check_at(&world.workspace(), SigningKey::from([9; 32]));
    assert!(found.is_ok() && found.entries == 0 && found.others == 1, "{found:?}");
    let other = RunOptions { key: Some(SigningKey::from([9; 32])), ..world.options.clone() };
    world.state().begin_run("run-2", facts("s"), &other).unwrap();
    let found = world.check_at(&world.workspace(), SigningKey::from([9; 32]));
    assert!(found.is_ok() && found.listed.keys().eq(["run-2"]), "runs of others aren't listed: {found:?}");
    assert!(world.check().is_ok(), "and the owner's list is as it was");
}

#[test]
fn a_process_killed_between_the_steps_is_no_alarm() {
    let world = Listed::new();
    world.run("run-1");
    let (list, head) = (fs::read(world.list()).unwrap(), fs::read(world.head()).unwrap());
    world.run("run-2");
    let after = fs::read(world.list()).unwrap();
    // Killed before the head was written; several times in a row.
    fs::write(world.head(), &head).unwrap();
    assert!(world.check().is_ok());
    world.run("run-3");
    assert!(world.check().is_ok(), "{:?}", world.check());
    // Killed within the write of the entry; and before it, so that the run isn't on the list.
    fs::remove_dir_all(world.run_dir("run-3")).unwrap();
    for end in (list.len()..after.len()).step_by(3) {
        fs::write(world.list(), &after[..end]).unwrap();
        fs::write(world.head(), &head).unwrap();
        let found = world.check();
        assert!(found.is_ok(), "{end}: {found:?}");
        if end % 10 == 0 {
            world.state().open_run("run-2", &world.options).unwrap();
            assert!(world.check().is_ok(), "{end}: {:?}", world.check());
        }
    }
    // Killed before the first entry of all.
    let world = Listed::new();
    fs::create_dir_all(world.workspace().join(".toolgate/run-lists")).unwrap();
    world.run("run-1");
    let first = world.lines()[0].clone();
    fs::write(world.list(), &first[..20]).unwrap();
    fs::remove_file(world.head()).unwrap();
    assert!(world.check().is_ok());
    world.run("run-2");
    assert!(world.check().is_ok() && world.check().copied.is_none(), "{:?}", world.check());
}

#[test]
fn without_a_key_a_run_that_is_gone_is_still_noticed() {
    let world = Listed::new();
    let unsigned = RunOptions { key: None, ..world.options.clone() };
    for run in ["run-1", "run-2"] {
        world.state().begin_run(run, facts("s"), &unsigned).unwrap().end().unwrap();
    }
    fs::remove_dir_all(world.run_dir("run-1")).unwrap();
    let found = world.state().run_list(&unsigned).unwrap().check().unwrap();
    assert!(!found.signed && found.gone.contains_key("run-1"), "{found:?}");
}
