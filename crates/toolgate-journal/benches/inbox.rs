//! Taking tasks from an inbox in which 100,000 are finished, compared with taking from one in which none is: on a real
//! PostgreSQL server with one worker and with 32, and in SQLite. Both alternate, so that other load on the machine affects
//! both. An argument sets the number of finished tasks.

// A benchmark starts its own server, and needs no documentation.
#![allow(clippy::disallowed_methods, dead_code, missing_docs)]

#[path = "../tests/postgres/cluster.rs"]
mod cluster;

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use toolgate_journal::{Inbox, Lease, PostgresStore, StateDirectory};

use crate::cluster::Cluster;

const ROUNDS: usize = 3;
/// Tasks that are taken in each measurement.
const TASKS: usize = 2_000;

/// An inbox to measure: a way to change its rows, and one to reach it as a worker does.
struct MeasuredInbox<'a> {
    execute: Box<dyn Fn(&str) + 'a>,
    open: Box<dyn Fn() -> Box<dyn Inbox> + Sync + 'a>,
    /// Yields `number` from 1 to a count.
    series: fn(usize) -> String,
}

fn main() {
    let finished = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(100_000);
    println!("{:<24} {:>14} {:>14} {:>8}", "", "none finished", format!("{finished} finished"), "ratio");
    let cluster = Cluster::start();
    let databases = ["none_finished", "many_finished"].map(|name| (name, cluster.database(name)));
    let of_postgres = databases.each_ref().map(|(name, url)| postgres_inbox(&cluster, name, url));
    of_postgres[1].fill(finished);
    compare("PostgreSQL, 1 worker", &of_postgres, 1);
    compare("PostgreSQL, 32 workers", &of_postgres, 32);
    let directories = [TempDir::new(), TempDir::new()].map(|directory| directory.expect("a directory"));
    let of_sqlite = directories.each_ref().map(sqlite_inbox);
    of_sqlite[1].fill(finished);
    compare("SQLite, 1 worker", &of_sqlite, 1);
}

/// Prints tasks taken per second, and the ratio of the times: with finished tasks to without.
fn compare(name: &str, [empty, full]: &[MeasuredInbox<'_>; 2], workers: usize) {
    let mut best = [Duration::MAX; 2];
    for round in 0..ROUNDS {
        for (best, inbox) in best.iter_mut().zip([empty, full]) {
            *best = inbox.time_taking(workers, round).min(*best);
        }
        (empty.execute)("DELETE FROM inbox");
        (full.execute)("UPDATE inbox SET state = 'done' WHERE state <> 'done'");
    }
    let [without, with] = best.map(|time| time.as_secs_f64());
    let rate = |seconds: f64| format!("{:.0}/s", TASKS as f64 / seconds);
    println!("{name:<24} {:>14} {:>14} {:>8.2}", rate(without), rate(with), with / without);
}

impl MeasuredInbox<'_> {
    fn insert(&self, count: usize, prefix: &str, state: &str) {
        (self.execute)(&format!(
            "INSERT INTO inbox (id, task, reply_to, created, queue, state, attempts, runs, lease)
             SELECT '{prefix}' || number, 'do it', 'terminal', number, '', '{state}', 0, '[]',
                CASE WHEN '{state}' = 'done' THEN '{prefix}' || number END
             FROM ({}) AS numbers",
            (self.series)(count)
        ));
    }

    fn fill(&self, finished: usize) {
        drop((self.open)());
        self.insert(finished, "finished-", "done");
    }

    /// How long the workers take together to empty the inbox.
    fn time_taking(&self, workers: usize, round: usize) -> Duration {
        let inboxes: Vec<Box<dyn Inbox>> = (0..workers).map(|_| (self.open)()).collect();
        self.insert(TASKS, &format!("{workers}-{round}-"), "waiting");
        let (taken, together) = (AtomicUsize::new(0), Barrier::new(workers + 1));
        let time = std::thread::scope(|scope| {
            for (worker, inbox) in inboxes.iter().enumerate() {
                let (taken, together) = (&taken, &together);
                scope.spawn(move || {
                    together.wait();
                    for number in 0.. {
                        let token = format!("{workers}-{round}-{worker}-{number}");
                        let lease = Lease { token, lasts: Duration::from_secs(3600) };
                        match inbox.take(&lease).expect("an inbox that works") {
                            Some(_) => taken.fetch_add(1, Ordering::Relaxed),
                            None => break,
                        };
                    }
                    together.wait();
                });
            }
            together.wait();
            let start = Instant::now();
            together.wait();
            start.elapsed()
        });
        assert_eq!(taken.into_inner(), TASKS, "each task is taken once");
        time
    }
}

fn postgres_inbox<'a>(cluster: &'a Cluster, name: &'a str, url: &'a str) -> MeasuredInbox<'a> {
    MeasuredInbox {
        execute: Box::new(move |statement| cluster.execute(name, statement)),
        open: Box::new(move || Box::new(PostgresStore::connect(url).expect("a server"))),
        series: |count| format!("SELECT generate_series(1, {count}) AS number"),
    }
}

fn sqlite_inbox(directory: &TempDir) -> MeasuredInbox<'_> {
    let state = || StateDirectory::open(directory.path()).expect("a state directory");
    MeasuredInbox {
        execute: Box::new(move |statement| {
            let file = rusqlite::Connection::open(state().path().join("inbox.db")).expect("the inbox");
            file.execute_batch(statement).expect("a statement that works");
        }),
        open: Box::new(move || Box::new(state().inbox().expect("an inbox"))),
        series: |count| {
            format!(
                "WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {count})
                 SELECT number FROM numbers"
            )
        },
    }
}
