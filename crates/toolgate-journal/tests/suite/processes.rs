//! Several real processes on the same files, killed processes, and a full disk. The test program starts itself again;
//! the variable below says what the other process does.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use toolgate_journal::{
    EventStore, Indexer, JournalError, RunOptions, StateDirectory, Verification, load_or_create_signing_key,
    read_events, verify,
};

use crate::world::{RUN, World, completed, facts, key, options, started};

const TASK: &str = "TOOLGATE_TEST_TASK";
const MARK: &str = "mark ";

/// Another process that performs `task` in a workspace.
fn other_process(mut command: Command, task: &str, workspace: &Path) -> Child {
    command
        .args(["--exact", "processes::task_of_the_other_process", "--ignored", "--nocapture"])
        .env(TASK, task)
        .current_dir(workspace)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// The output of the process, line by line.
fn marks(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let output = BufReader::new(child.stdout.take().unwrap());
    // The test harness may have begun the line.
    output.lines().map_while(Result::ok).filter_map(|line| line.split_once(MARK).map(|(_, mark)| mark.to_owned()))
}

#[test]
#[ignore = "only makes sense when another test starts it"]
fn task_of_the_other_process() {
    let state = || StateDirectory::open(Path::new(".")).unwrap();
    let Ok(task) = std::env::var(TASK) else { return };
    match task.split(' ').collect::<Vec<_>>()[..] {
        ["append", who] => append_some(&state(), who),
        ["append-for-ever"] => append_for_ever(&state()),
        ["append-until-full"] => append_until_full(&state()),
        ["index", run] => index(&state(), run),
        ["key"] => begin_with_shared_key(&state()),
        ["begin", who] => begin_runs(&state(), who, 50),
        ["begin-for-ever", who] => begin_runs(&state(), who, usize::MAX),
        ref other => panic!("unknown task {other:?}"),
    }
}

fn append_some(state: &StateDirectory, who: &str) {
    let run = state.open_run(RUN, &options()).unwrap();
    for number in 0..200 {
        let call = format!("{who}-{number}");
        run.journal.append(&[started(number, &call), completed(number, &call)]).unwrap();
    }
}

#[test]
fn processes_on_one_run_do_not_corrupt_each_other() {
    let world = World::new();
    let run = world.begin();
    let children: Vec<_> = ["one", "two"]
        .map(|who| other_process(this_program(), &format!("append {who}"), world.workspace.path()))
        .into();
    for number in 0..200 {
        run.journal.append(&[started(number, "here"), completed(number, "here")]).unwrap();
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(
        verify(run.path(), Some(&key())).unwrap(),
        Verification::Ok { events: 1201, signed: true, unfinished: false }
    );
    let calls: Vec<_> =
        read_events(run.path()).unwrap().filter_map(|event| event.unwrap().event.tool_call_id).collect();
    for who in ["one", "two"] {
        let theirs: Vec<_> = calls.iter().filter(|call| call.starts_with(who)).cloned().collect();
        let expected: Vec<_> = (0..200).flat_map(|number| vec![format!("{who}-{number}"); 2]).collect();
        assert_eq!(theirs, expected, "each process finds its own events in its own order");
    }
}

fn append_for_ever(state: &StateDirectory) {
    let run = state.open_run(RUN, &options()).unwrap();
    for number in 0.. {
        run.journal.append(&[started(number, "x"), completed(number, "x")]).unwrap();
        println!("{MARK}{number}");
    }
}

#[test]
fn a_process_killed_while_it_appends_leaves_a_journal_that_verifies_once_opened() {
    let world = World::new();
    world.begin();
    let mut kept = 1;
    for round in [1, 10, 50, 100, 200] {
        let mut child = other_process(this_program(), "append-for-ever", world.workspace.path());
        // The pipe stays open until the process is dead, so that only the kill ends it.
        let mut marks = marks(&mut child);
        assert_eq!(marks.by_ref().take(round).count(), round);
        child.kill().unwrap();
        child.wait().unwrap();
        let run = world.reopen();
        match verify(run.path(), Some(&key())).unwrap() {
            Verification::Ok { events, signed: true, .. } if events >= kept + 2 * round as u64 => kept = events,
            other => panic!("after {round} appends: {other:?}; {kept} events were there before"),
        }
    }
}

/// Runs against the file size limit that the shell has set.
fn append_until_full(state: &StateDirectory) {
    let run = state.open_run(RUN, &options()).unwrap();
    let append = || run.journal.append(&[started(1, "x"), completed(1, "x")]);
    while append().is_ok() {}
    for _ in 0..2 {
        let before = run.journal.last();
        assert!(matches!(append(), Err(JournalError::Io { .. })));
        assert_eq!(run.journal.last(), before);
        let found = verify(run.path(), Some(&key())).unwrap();
        assert_eq!(found, Verification::Ok { events: before, signed: true, unfinished: false });
    }
    println!("{MARK}{}", run.journal.last());
}

#[test]
fn a_write_that_fails_leaves_the_chain_intact() {
    let world = World::new();
    world.begin();
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
    let mut child = other_process(limited, "append-until-full", world.workspace.path());
    let kept: u64 = marks(&mut child).last().expect("the other process got that far").parse().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(kept > 3, "some appends went well before: {kept}");
    let run = world.reopen();
    assert_eq!(run.journal.append(&[started(1, "y")]).unwrap(), kept + 1, "nothing had to be set aside");
    assert_eq!(
        verify(run.path(), Some(&key())).unwrap(),
        Verification::Ok { events: kept + 1, signed: true, unfinished: false }
    );
}

fn index(state: &StateDirectory, run: &str) {
    let store: Arc<dyn EventStore> = Arc::new(state.index().unwrap());
    let indexer = Arc::new(Indexer::start(state.path(), move || Ok(Arc::clone(&store))).unwrap());
    let options = RunOptions { indexer: Some(Arc::clone(&indexer)), ..options() };
    let kept = state.begin_run(run, facts(run), &options).unwrap();
    for number in 0..100 {
        kept.journal.append(&[started(number, &format!("call-{number}"))]).unwrap();
    }
    indexer.flush().unwrap();
}

#[test]
fn processes_on_one_store_do_not_disturb_each_other() {
    let world = World::new();
    let runs = ["run-a", "run-b", "run-c"];
    let children = runs.map(|run| other_process(this_program(), &format!("index {run}"), world.workspace.path()));
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let store = world.state.index().unwrap();
    for run in runs {
        assert_eq!(store.indexed_up_to(run).unwrap().seq, 101);
        assert_eq!(store.calls(run).unwrap().len(), 100);
    }
    let set_aside = world.state.path().join("index.db.bad-1");
    assert!(!set_aside.exists());
}

/// Signs a run with a key at a path that all processes share.
fn begin_with_shared_key(state: &StateDirectory) {
    let options = RunOptions { key: Some(load_or_create_signing_key(Path::new("keys/seal")).unwrap()), ..options() };
    let run = state.begin_run(&format!("run-{}", std::process::id()), facts("s"), &options).unwrap();
    println!("{MARK}{}", run.id);
}

#[test]
fn concurrent_processes_get_the_same_key() {
    let world = World::new();
    let children: [Child; 6] = std::array::from_fn(|_| other_process(this_program(), "key", world.workspace.path()));
    let finish = |mut child: Child| {
        let run = marks(&mut child).last().unwrap();
        assert!(child.wait().unwrap().success());
        run
    };
    let runs = children.map(finish);
    let key = load_or_create_signing_key(&world.workspace.path().join("keys/seal")).unwrap();
    for run in runs {
        let run = world.state.run_dir(&run).unwrap();
        assert_eq!(verify(&run, Some(&key)).unwrap(), Verification::Ok { events: 1, signed: true, unfinished: false });
    }
    let left: Vec<_> = std::fs::read_dir(world.workspace.path().join("keys")).unwrap().collect();
    assert_eq!(left.len(), 1, "no draft stays behind");
}

/// The options of runs whose list has a head beside the workspace.
fn listed_options(workspace: &Path) -> RunOptions {
    RunOptions { list_heads: Some(workspace.join("heads")), ..options() }
}

fn begin_runs(state: &StateDirectory, who: &str, count: usize) {
    for number in 0..count {
        let run = state.begin_run(&format!("run-{who}-{number}"), facts("s"), &listed_options(Path::new("."))).unwrap();
        println!("{MARK}{number}");
        run.end().unwrap();
    }
}

#[test]
fn processes_that_begin_runs_at_once_share_the_list() {
    let world = World::new();
    let children =
        ["a", "b", "c"].map(|who| other_process(this_program(), &format!("begin {who}"), world.workspace.path()));
    for mut child in children {
        assert_eq!(marks(&mut child).count(), 50);
        assert!(child.wait().unwrap().success());
    }
    let list = world.state.run_list(&listed_options(world.workspace.path())).unwrap();
    let found = list.check().unwrap();
    assert!(found.is_ok() && found.listed.len() == 150 && found.entries == 301, "{found:?}");
}

#[test]
fn a_process_killed_while_it_begins_runs_is_no_alarm() {
    let world = World::new();
    let list = world.state.run_list(&listed_options(world.workspace.path())).unwrap();
    let mut begun = 0;
    for (number, round) in [1, 2, 3, 5, 8, 13, 21, 34].into_iter().enumerate() {
        let task = format!("begin-for-ever {number}");
        let mut child = other_process(this_program(), &task, world.workspace.path());
        let mut marks = marks(&mut child);
        assert_eq!(marks.by_ref().take(round).count(), round);
        child.kill().unwrap();
        child.wait().unwrap();
        begun += round;
        let found = list.check().unwrap();
        assert!(found.is_ok() && found.copied.is_none() && found.listed.len() >= begun, "{found:?}");
        begun = found.listed.len();
    }
}
