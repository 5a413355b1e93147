//! What the whole path costs: a 4 KiB `read` through the gate, against a bare `std::fs::read` of the same file in the
//! same run, with where the time goes; and whether memory stays flat over many calls.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark reads the file that it measures against")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::json;
use toolgate_contract::{Call, CancellationToken, SystemClock};
use toolgate_testkit::{TestWorkspace, median, resident};

/// Rounds of both sides, one after the other, so that noise hits both.
const ROUNDS: usize = 200;
const PER_ROUND: u32 = 50;
/// Calls in a row for the look at memory.
const MANY: usize = 10_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let world = TestWorkspace::new(toolgate_tools::all(), "");
    let line = "fn ordinary(source: &str) -> usize { source.lines().count() } // a line like many\n";
    world.file("file.rs", line.repeat(4096 / line.len() + 1).split_at(4096).0);
    runtime.block_on(measure(&world));
}

async fn measure(world: &TestWorkspace) {
    let session = world.session();
    let path = world.path().join("file.rs");
    let read = || Call::new("read", json!({ "path": "file.rs" }), &SystemClock);
    let (mut bare, mut gated) = (Vec::new(), Vec::new());
    let mut steps: BTreeMap<(usize, &str), Duration> = BTreeMap::new();
    for round in 0..=ROUNDS {
        let began = Instant::now();
        for _ in 0..PER_ROUND {
            black_box(std::fs::read(&path).unwrap());
        }
        let bare_time = began.elapsed() / PER_ROUND;
        let began = Instant::now();
        for _ in 0..PER_ROUND {
            let (reply, taken) = world.gate.perform_timed(read(), &session, CancellationToken::new()).await;
            assert!(black_box(reply).ok);
            for (order, (name, time)) in taken.taken().iter().enumerate() {
                *steps.entry((order, name)).or_default() += *time;
            }
        }
        let gated_time = began.elapsed() / PER_ROUND;
        // The first round only warms up.
        if round == 0 {
            steps.clear();
        } else {
            bare.push(bare_time);
            gated.push(gated_time);
        }
    }
    report(median(bare), median(gated), &steps);
    memory(world, &session, read).await;
}

fn report(bare: Duration, gated: Duration, steps: &BTreeMap<(usize, &str), Duration>) {
    let ratio = gated.as_secs_f64() / bare.as_secs_f64();
    println!("a 4 KiB read through the whole path ÷ std::fs::read: {ratio:.1} x   (wanted: at most 8, or 20 µs)");
    println!("a 4 KiB read through the whole path: {:.1} µs   (wanted: at most 20)", gated.as_secs_f64() * 1e6);
    println!("  medians of {ROUNDS} rounds: gate {gated:?}, std::fs::read {bare:?}");
    let all: Duration = steps.values().sum();
    for ((_, name), time) in steps {
        println!("  {name:<13} {:5.1} %", 100.0 * time.as_secs_f64() / all.as_secs_f64());
    }
}

async fn memory(world: &TestWorkspace, session: &toolgate_runtime::Session, read: impl Fn() -> Call) {
    let before = resident();
    for _ in 0..MANY {
        assert!(world.gate.perform(read(), session, CancellationToken::new()).await.ok);
    }
    let after = resident();
    println!("memory that {MANY} more calls take: {} KiB   (wanted: no growth)", after.saturating_sub(before));
}
