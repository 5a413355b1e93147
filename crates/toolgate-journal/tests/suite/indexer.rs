//! Filling a store in the background, whatever state that store is in.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use toolgate_journal::{
    CallFilter, CallRow, EventStore, IndexedPart, Indexer, JournalError, RecordedEvent, Run, RunFilter, RunOptions,
    RunRow, SqliteStore, catch_up, read_events, reindex,
};

use crate::store_suite::rows;
use crate::world::{RUN, World, facts, some_calls, started};

/// A store that can be made to fail or to hang.
struct Moody {
    store: SqliteStore,
    failing: AtomicBool,
    busy: Mutex<()>,
}

impl Moody {
    fn new(world: &World) -> Arc<Self> {
        let store = world.state.index().unwrap();
        Arc::new(Self { store, failing: AtomicBool::new(false), busy: Mutex::new(()) })
    }
}

impl EventStore for Moody {
    fn apply(&self, run: &str, events: &[RecordedEvent]) -> Result<(), JournalError> {
        let _busy = self.busy.lock().unwrap();
        match self.failing.load(Ordering::SeqCst) {
            true => Err(JournalError::Store("the store is in a bad mood".into())),
            false => self.store.apply(run, events),
        }
    }
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, JournalError> {
        self.store.runs(filter)
    }
    fn run(&self, id: &str) -> Result<Option<RunRow>, JournalError> {
        self.store.run(id)
    }
    fn calls(&self, run: &str) -> Result<Vec<CallRow>, JournalError> {
        self.store.calls(run)
    }
    fn search_calls(&self, filter: &CallFilter) -> Result<Vec<CallRow>, JournalError> {
        self.store.search_calls(filter)
    }
    fn events(&self, run: &str, after: u64, limit: usize) -> Result<Vec<RecordedEvent>, JournalError> {
        self.store.events(run, after, limit)
    }
    fn events_of_kind(
        &self,
        kind: &str,
        workspace: Option<&str>,
        limit: usize,
    ) -> Result<Vec<RecordedEvent>, JournalError> {
        self.store.events_of_kind(kind, workspace, limit)
    }
    fn indexed_up_to(&self, run: &str) -> Result<IndexedPart, JournalError> {
        self.store.indexed_up_to(run)
    }
    fn clear(&self, run: &str) -> Result<(), JournalError> {
        self.store.clear(run)
    }
}

/// A run whose events go into the store.
fn begin(world: &World, store: Arc<Moody>) -> (Run, Arc<Indexer>) {
    let indexer = Arc::new(Indexer::start(world.state.path(), move || Ok(Arc::clone(&store) as _)).unwrap());
    let options = RunOptions { indexer: Some(Arc::clone(&indexer)), ..world.options.clone() };
    (world.state.begin_run(RUN, facts("session-1"), &options).unwrap(), indexer)
}

#[test]
fn what_is_appended_is_in_the_store_after_a_flush_and_reindexing_gives_the_same() {
    let world = World::new();
    let store = Moody::new(&world);
    let (run, indexer) = begin(&world, Arc::clone(&store));
    run.journal.append(&some_calls()[..3]).unwrap();
    run.journal.append(&some_calls()[3..]).unwrap();
    indexer.flush().unwrap();
    let live = rows(&*store, RUN);
    assert_eq!((live.0[0].events, live.1.len(), live.2.len()), (6, 3, 6));
    assert_eq!(catch_up(world.state.path(), RUN, &*store).unwrap(), 0, "nothing was missed");
    assert_eq!(reindex(world.state.path(), &*store).unwrap(), 6);
    assert_eq!(rows(&*store, RUN), live);
}

#[test]
fn a_failing_store_fails_no_call_and_catches_up_later() {
    let world = World::new();
    let store = Moody::new(&world);
    let (run, indexer) = begin(&world, Arc::clone(&store));
    indexer.flush().unwrap();
    store.failing.store(true, Ordering::SeqCst);
    run.journal.append(&some_calls()).unwrap();
    let error = indexer.flush().unwrap_err();
    assert!(error.to_string().contains("can be rebuilt"), "{error}");
    assert_eq!(store.indexed_up_to(RUN).unwrap().seq, 1);
    store.failing.store(false, Ordering::SeqCst);
    run.journal.append(&[started(9, "later")]).unwrap();
    indexer.flush().unwrap();
    assert_eq!(store.indexed_up_to(RUN).unwrap().seq, 7);
    assert_eq!(store.calls(RUN).unwrap().len(), 4);
}

#[test]
fn a_store_that_cannot_be_opened_is_tried_again() {
    let world = World::new();
    let (store, mut attempts) = (Moody::new(&world), 0);
    let opened = Arc::clone(&store);
    let open = move || {
        attempts += 1;
        match attempts {
            1 => Err(JournalError::Store("not yet".into())),
            _ => Ok(Arc::clone(&opened) as Arc<dyn EventStore>),
        }
    };
    let indexer = Arc::new(Indexer::start(world.state.path(), open).unwrap());
    let options = RunOptions { indexer: Some(Arc::clone(&indexer)), ..world.options.clone() };
    let run = world.state.begin_run(RUN, facts("session-1"), &options).unwrap();
    run.journal.append(&some_calls()).unwrap();
    indexer.flush().unwrap();
    assert_eq!(store.indexed_up_to(RUN).unwrap().seq, 6);
}

#[test]
fn a_hanging_store_holds_up_no_call_and_nothing_is_lost() {
    let world = World::new();
    let store = Moody::new(&world);
    let (run, indexer) = begin(&world, Arc::clone(&store));
    let hanging = store.busy.lock().unwrap();
    for number in 0..3000 {
        run.journal.append(&[started(number, &format!("call-{number}"))]).unwrap();
    }
    assert!(store.indexed_up_to(RUN).unwrap().seq <= 1, "the store has been hanging all the time");
    drop(hanging);
    indexer.flush().unwrap();
    assert_eq!(store.indexed_up_to(RUN).unwrap().seq, 3001);
    assert_eq!(store.calls(RUN).unwrap().len(), 3000);
}

#[test]
fn an_indexer_that_goes_away_finishes_its_work_first() {
    let world = World::new();
    let store = Moody::new(&world);
    let (run, indexer) = begin(&world, Arc::clone(&store));
    for number in 0..500 {
        run.journal.append(&[started(number, "x")]).unwrap();
    }
    drop((run, indexer));
    assert_eq!(store.indexed_up_to(RUN).unwrap().seq, 501);
}

#[test]
fn lines_of_another_process_are_caught_up_with() {
    let world = World::new();
    let store = Moody::new(&world);
    let run = world.begin();
    run.journal.append(&some_calls()).unwrap();
    assert_eq!(catch_up(world.state.path(), RUN, &*store).unwrap(), 6);
    run.journal.append(&[started(9, "later")]).unwrap();
    assert_eq!(catch_up(world.state.path(), RUN, &*store).unwrap(), 1);
    assert_eq!(store.indexed_up_to(RUN).unwrap().seq, 7);
}

#[test]
fn only_what_is_new_in_a_journal_is_read() {
    let world = World::new();
    let store = Moody::new(&world);
    let run = world.begin();
    run.journal.append(&some_calls()).unwrap();
    catch_up(world.state.path(), RUN, &*store).unwrap();
    run.journal.append(&[started(9, "later")]).unwrap();
    let path = run.path().join("events.jsonl");
    let indexed = store.indexed_up_to(RUN).unwrap();
    // What the store has isn't looked at again, so nothing is seen of this.
    let mut journal = std::fs::read(&path).unwrap();
    journal[..indexed.bytes as usize - 1].fill(b'\n');
    std::fs::write(&path, &journal).unwrap();
    assert_eq!(catch_up(world.state.path(), RUN, &*store).unwrap(), 1);
    // Where no line ends at the length of what was indexed, lines are counted.
    let wrong = IndexedPart { bytes: indexed.bytes + 1, ..indexed };
    let found = read_events(run.path()).unwrap().after(wrong).unwrap();
    assert_eq!(found.count() as u64, indexed.bytes - indexed.seq + 1);
}

#[test]
fn a_run_that_never_got_a_journal_disturbs_nobody() {
    let world = World::new();
    let store = Moody::new(&world);
    world.begin();
    std::fs::create_dir(world.state.path().join("runs/half-begun")).unwrap();
    assert_eq!(catch_up(world.state.path(), "half-begun", &*store).unwrap(), 0);
    assert_eq!(reindex(world.state.path(), &*store).unwrap(), 1);
}
