//! The store for many hosts, on a real server that exists for one test: the suite that every store passes, several
//! hosts at once, and a server that disappears.

#![cfg(feature = "postgres")]
// Tests start their own server.
#![allow(clippy::disallowed_methods, missing_docs)]

#[path = "postgres/cluster.rs"]
mod cluster;
#[path = "postgres/encryption.rs"]
mod encryption;
#[path = "suite/inbox_suite.rs"]
mod inbox_suite;
#[path = "suite/store_suite.rs"]
mod store_suite;
#[allow(dead_code, reason = "the other tests of this crate use the rest")]
#[path = "suite/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use toolgate_journal::{
    EventStore, Inbox, Indexer, JournalError, Lease, NewTask, PostgresStore, RecordedEvent, RunFilter, RunOptions,
    Task, TaskState,
};

use crate::cluster::Cluster;
use crate::store_suite::{SUITE, a_run, recorded, rows};
use crate::world::{RUN, World, completed, facts, failed, some_calls, started};

const HOUR: Duration = Duration::from_secs(3600);

fn lease(token: &str, lasts: Duration) -> Lease {
    Lease { token: token.into(), lasts }
}

fn new_task(id: &str) -> NewTask {
    NewTask { id: id.into(), task: format!("do {id}"), reply_to: toolgate_journal::ReplyAddress::Terminal }
}

/// Three events for each of many calls, of which every second one starts again after it failed.
fn many_events() -> Vec<RecordedEvent> {
    let call = |number: i64| {
        let (id, second) = (format!("call-{}", number / 2), 3 * number);
        let end = if number % 2 == 0 { failed(second + 1, &id) } else { completed(second + 1, &id) };
        [started(second, &id), end, started(second + 2, &format!("open-{number}"))]
    };
    recorded((0..60).flat_map(call).collect())
}

#[test]
fn it_does_what_every_store_must() {
    let cluster = Cluster::start();
    for (number, (name, test)) in SUITE.iter().enumerate() {
        println!("{name}");
        test(&PostgresStore::connect(&cluster.database(&format!("test_{number}"))).unwrap());
    }
}

#[test]
fn its_inbox_does_what_every_inbox_must() {
    let cluster = Cluster::start();
    for (number, (name, test)) in inbox_suite::SUITE.iter().enumerate() {
        println!("{name}");
        test(&PostgresStore::connect(&cluster.database(&format!("inbox_{number}"))).unwrap());
    }
}

#[test]
fn hosts_that_start_at_once_and_bring_the_same_events_give_the_same_rows() {
    let (cluster, events) = (Cluster::start(), many_events());
    let alone = PostgresStore::connect(&cluster.database("alone")).unwrap();
    alone.apply(RUN, &events).unwrap();

    let (url, together) = (cluster.database("together"), Barrier::new(4));
    std::thread::scope(|scope| {
        for host in 0..4 {
            let (url, events, together) = (&url, &events, &together);
            scope.spawn(move || {
                together.wait();
                let store = PostgresStore::connect(url);
                together.wait();
                let store = store.unwrap();
                // Every second host goes backwards, so that they would deadlock if they could.
                let mut overlapping: Vec<RecordedEvent> = events.windows(7).step_by(3).flatten().cloned().collect();
                if host % 2 == 1 {
                    overlapping.reverse();
                }
                for batch in overlapping.chunks(50 + host) {
                    store.apply(RUN, batch).unwrap();
                }
                store.apply(RUN, events).unwrap();
            });
        }
    });
    assert_eq!(rows(&PostgresStore::connect(&url).unwrap(), RUN), rows(&alone, RUN));
}

#[test]
fn it_reconnects_when_the_server_was_gone() {
    let (cluster, events) = (Cluster::start(), a_run());
    let store = PostgresStore::connect(&cluster.database("toolgate")).unwrap();
    store.apply(RUN, &events[..3]).unwrap();
    cluster.kill();
    cluster.run();
    store.apply(RUN, &events[3..5]).unwrap();
    cluster.kill();
    let error = store.apply(RUN, &events[5..]).unwrap_err();
    assert!(error.to_string().contains("error connecting to server"), "{error}");
    assert!(store.events(RUN, 0, 100).is_err());
    cluster.run();
    assert_eq!(store.events(RUN, 0, 100).unwrap(), events[..5]);
    store.apply(RUN, &events[5..]).unwrap();
    assert_eq!(store.events(RUN, 0, 100).unwrap(), events);
}

/// For an indexer: a store that is already open.
fn opened(store: &Arc<PostgresStore>) -> impl FnMut() -> Result<Arc<dyn EventStore>, JournalError> + use<> {
    let store = Arc::clone(store);
    move || Ok(Arc::clone(&store) as Arc<dyn EventStore>)
}

#[test]
fn calls_continue_without_the_server_and_it_catches_up_once_it_is_back() {
    let (cluster, world) = (Cluster::start(), World::new());
    let store = Arc::new(PostgresStore::connect(&cluster.database("toolgate")).unwrap());
    let indexer = Arc::new(Indexer::start(world.state.path(), opened(&store)).unwrap());
    let options = RunOptions { indexer: Some(Arc::clone(&indexer)), ..world.options.clone() };
    let run = world.state.begin_run(RUN, facts("session-1"), &options).unwrap();
    run.journal.append(&some_calls()[..2]).unwrap();
    indexer.flush().unwrap();
    cluster.kill();
    run.journal.append(&some_calls()[2..]).unwrap();
    assert!(indexer.flush().is_err());
    cluster.run();
    indexer.flush().unwrap();
    assert_eq!(store.indexed_up_to(RUN).unwrap().seq, 6);
    assert_eq!(rows(&*store, RUN), rows(&world.state.index().unwrap(), RUN), "both stores say the same");
}

#[test]
fn tables_of_a_newer_program_are_left_alone() {
    let cluster = Cluster::start();
    let url = cluster.database("toolgate");
    PostgresStore::connect(&url).unwrap().apply(RUN, &a_run()).unwrap();
    cluster.execute("toolgate", "UPDATE store_version SET version = 999");
    let error = PostgresStore::connect(&url).unwrap_err().to_string();
    assert!(error.contains("version 999") && error.contains("update this program"), "{error}");
    cluster.execute("toolgate", "UPDATE store_version SET version = 5");
    assert_eq!(PostgresStore::connect(&url).unwrap().indexed_up_to(RUN).unwrap().seq, 7);
}

/// The runs as the program before the present schema left them: without counts.
const OLDER_RUNS: &str = "
    DROP INDEX failed_calls, agent_events;
    ALTER TABLE runs DROP COLUMN event_count, DROP COLUMN call_count, DROP COLUMN indexed_seq, DROP COLUMN indexed_bytes;
    UPDATE store_version SET version = 4;
";

#[test]
fn what_an_older_program_stored_is_counted() {
    let cluster = Cluster::start();
    let url = cluster.database("toolgate");
    let known = || {
        let store = PostgresStore::connect(&url).unwrap();
        (rows(&store, RUN), store.indexed_up_to(RUN).unwrap())
    };
    PostgresStore::connect(&url).unwrap().apply(RUN, &a_run()).unwrap();
    let before = known();
    cluster.execute("toolgate", OLDER_RUNS);
    assert_eq!(known(), before);
}

/// The inbox as the program before the present schema left it: a task that waits, one that is held, and one that is done.
const OLDER_INBOX: &str = "
    DROP INDEX inbox_by_time, inbox_by_lease, inbox_waiting, inbox_held;
    CREATE INDEX inbox_by_time ON inbox (created, id);
    CREATE INDEX inbox_by_lease ON inbox (lease);
    UPDATE store_version SET version = 3;
    INSERT INTO inbox (id, task, reply_to, created, state, attempts, runs, lease, lease_until) VALUES
        ('waits', 'do it', 'terminal', 3, 'waiting', 0, '[]', NULL, NULL),
        ('held', 'do it', 'terminal', 2, 'working', 1, '[\"run_1\"]', 'old', 1),
        ('done', 'do it', 'terminal', 1, 'done', 1, '[]', 'older', 1);
";

#[test]
fn a_database_of_an_older_program_keeps_its_tasks() {
    let cluster = Cluster::start();
    let url = cluster.database("toolgate");
    drop(PostgresStore::connect(&url).unwrap());
    cluster.execute("toolgate", OLDER_RUNS);
    cluster.execute("toolgate", OLDER_INBOX);
    let store = PostgresStore::connect(&url).unwrap();
    let held = store.take(&lease("a", HOUR)).unwrap().unwrap();
    assert_eq!((held.id.as_str(), held.attempts, held.runs), ("held", 2, vec!["run_1".to_owned()]));
    assert_eq!(store.take(&lease("b", HOUR)).unwrap().unwrap().id, "waits");
    assert_eq!(store.take(&lease("c", HOUR)).unwrap(), None);
    let indexes = "SELECT 1 / (count(*) = 2)::int FROM pg_indexes WHERE indexname IN ('inbox_waiting', 'inbox_held')";
    cluster.execute("toolgate", indexes);
}

#[test]
fn workers_of_one_queue_take_no_tasks_of_another() {
    let cluster = Cluster::start();
    let url = cluster.database("toolgate");
    let queue = |name: &str| PostgresStore::new(&url).unwrap().with_queue(name);
    let (one, other) = (queue("one"), queue("other"));
    one.add(&new_task("a")).unwrap();
    let lease = lease("held", HOUR);
    assert_eq!((other.tasks(true, 9).unwrap().len(), other.take(&lease).unwrap()), (0, None));
    assert_eq!(one.take(&lease).unwrap().map(|task| task.id).as_deref(), Some("a"));
    assert_eq!((one.leases().unwrap().len(), other.leases().unwrap().len()), (1, 0));
}

#[test]
fn a_task_of_another_queue_is_neither_shown_nor_cancelled_by_its_id() {
    let cluster = Cluster::start();
    let url = cluster.database("toolgate");
    let queue = |name: &str| PostgresStore::new(&url).unwrap().with_queue(name);
    let (one, other) = (queue("one"), queue("other"));
    one.add(&new_task("a")).unwrap();
    assert_eq!(other.task("a").unwrap(), None);
    assert!(!other.cancel("a").unwrap());
    assert_eq!(one.task("a").unwrap().unwrap().state, TaskState::Waiting);
    assert!(one.cancel("a").unwrap());
}

/// Each with a connection of its own, as hosts have. Every second one gives a task back now and then, so that leases
/// that have expired are taken as well.
#[test]
fn many_hosts_never_take_the_same_task_at_once() {
    const HOSTS: usize = 32;
    const TASKS: usize = 400;
    let cluster = Cluster::start();
    let url = cluster.database("toolgate");
    let store = PostgresStore::connect(&url).unwrap();
    (0..TASKS).for_each(|number| store.add(&new_task(&format!("task-{number}"))).unwrap());
    let (holders, together) = (Mutex::new(BTreeMap::<String, usize>::new()), Barrier::new(HOSTS));
    std::thread::scope(|scope| {
        for host in 0..HOSTS {
            let (url, holders, together) = (&url, &holders, &together);
            scope.spawn(move || {
                let store = PostgresStore::connect(url);
                together.wait();
                let store = store.unwrap();
                for round in 0.. {
                    let lease = lease(&format!("{host}-{round}"), HOUR);
                    let Some(task) = store.take(&lease).unwrap() else { break };
                    assert_eq!(holders.lock().unwrap().insert(task.id.clone(), host), None, "two hold {}", task.id);
                    if task.answer.is_none() {
                        assert!(store.answer(&task.id, &lease, "answered", &host.to_string()).unwrap());
                    }
                    holders.lock().unwrap().remove(&task.id);
                    if host % 2 == 1 && round % 5 == 0 && task.attempts == 1 {
                        store.renew(&task.id, &Lease { lasts: Duration::ZERO, ..lease }).unwrap().unwrap();
                    } else {
                        assert!(store.done(&task.id, &lease).unwrap());
                    }
                }
            });
        }
    });
    let tasks = store.tasks(true, 2 * TASKS).unwrap();
    assert_eq!(tasks.len(), TASKS);
    let is_done = |task: &Task| task.state == TaskState::Done && task.attempts <= 2;
    assert!(tasks.iter().all(is_done), "{:?}", tasks.iter().find(|task| !is_done(task)));
}

#[test]
fn it_works_and_ends_where_others_wait_asynchronously() {
    let cluster = Cluster::start();
    let url = cluster.database("toolgate");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = PostgresStore::connect(&url).unwrap();
        store.apply(RUN, &a_run()).unwrap();
        drop(store);
    });
    assert_eq!(PostgresStore::connect(&url).unwrap().indexed_up_to(RUN).unwrap().seq, 7);
}

#[test]
fn the_password_is_never_shown() {
    let cluster = Cluster::start();
    let url = cluster.database("toolgate").replace("toolgate@", "toolgate:hunter2@");
    let store = PostgresStore::connect(&url).unwrap();
    assert_eq!(format!("{store:?}"), r#"PostgresStore { database: Some("toolgate"), .. }"#);
    assert!(store.place().starts_with("toolgate at /") && !store.place().contains("hunter2"), "{}", store.place());
    let wrong = [
        url.replace("/toolgate?", "/missing?"),
        url.replace("host=", "host=/nowhere"),
        "user=toolgate password=my hunter2".into(),
        "postgres://toolgate:hunter2@host:port/toolgate".into(),
        "postgres://toolgate@host/toolgate?hunter2=1".into(),
        "postgres://toolgate:hunter2%ff@host/toolgate".into(),
    ];
    for url in wrong {
        let error = PostgresStore::connect(&url).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn a_server_that_is_connected_and_silent_is_given_up_and_used_again_when_it_answers() {
    let cluster = Cluster::start();
    let store = PostgresStore::connect(&format!("{}&connect_timeout=1", cluster.database("frozen"))).unwrap();
    let frozen = cluster.freeze();
    for when in ["a connection that is open", "a new connection"] {
        let error = store.runs(&RunFilter::default()).unwrap_err();
        assert!(matches!(error, JournalError::Unavailable { .. }), "{when}: {error}");
        assert!(error.to_string().contains("didn't answer within 11 seconds"), "{when}: {error}");
    }
    drop(frozen);
    assert_eq!(store.runs(&RunFilter::default()).unwrap(), []);
}
