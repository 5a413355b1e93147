//! Following a run while it is written.

use toolgate_journal::{Follower, JournalError};

use crate::world::{RUN, World, started};

#[test]
fn events_come_once_each_and_in_order_as_they_are_written() {
    let world = World::new();
    let run = world.begin();
    let mut follower = Follower::open(run.path(), 0).unwrap();
    let mut seen = |expected: &[u64]| {
        let events = follower.more().unwrap();
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), expected);
    };
    seen(&[1]);
    seen(&[]);
    run.journal.append(&[started(1, "a"), started(2, "b")]).unwrap();
    run.journal.append(&[started(3, "c")]).unwrap();
    seen(&[2, 3, 4]);
    seen(&[]);
    let mut later = Follower::open(run.path(), 3).unwrap();
    assert_eq!(later.more().unwrap().len(), 1);
}

#[test]
fn a_line_that_is_not_finished_comes_later() {
    let world = World::new();
    let run = world.begin();
    run.journal.append(&[started(1, "a")]).unwrap();
    let whole = std::fs::read(world.file("events.jsonl")).unwrap();
    let copy = world.workspace.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    let write = |length: usize| std::fs::write(copy.join("events.jsonl"), &whole[..length]).unwrap();
    write(whole.len() - 10);
    let mut follower = Follower::open(&copy, 0).unwrap();
    assert_eq!(follower.more().unwrap().len(), 1);
    assert_eq!(follower.more().unwrap().len(), 0);
    write(whole.len());
    assert_eq!(follower.more().unwrap().len(), 1);
}

#[test]
fn there_is_nothing_to_follow_where_no_run_is() {
    let world = World::new();
    assert!(matches!(Follower::open(&world.state.run_dir(RUN).unwrap(), 0), Err(JournalError::NoSuchRun { .. })));
}
