//! How the cost of a call grows with what is there already: earlier calls of its run, earlier runs of its workspace, rules,
//! and running processes, each at sizes a factor of ten apart. Nothing on the path of a call may grow with history.
#![allow(clippy::disallowed_methods, reason = "starts the program that it measures, in a directory of its own")]

mod support;

use std::time::Duration;

use serde_json::json;
use toolgate_testkit::median;

use support::{BenchWorld, SpokenServer, record_runs};

/// Reads that one figure is the median of.
const READS: usize = 400;
/// Confined commands, and programs started, that one figure is the median of.
const ROUNDS: usize = 31;

fn main() {
    report("a read after N calls of its run", &after_calls([100, 1_000, 10_000, 100_000]));
    report("a read beside N rules", &beside_rules([10, 100, 1_000]));
    report("`call read` as a process after N runs", &after_runs([10, 100, 1_000, 10_000]));
    report("a confined command beside N processes", &beside_processes([1, 10, 100]));
}

/// Prints what each size costs, and the last one beside the first as a figure.
fn report(what: &str, measured: &[(usize, Duration)]) {
    let shown: Vec<String> = measured.iter().map(|(size, time)| format!("{size}: {time:.0?}")).collect();
    println!("{what}: {}", shown.join(", "));
    let [(small, before), .., (large, after)] = measured else { return };
    let ratio = after.as_secs_f64() / before.as_secs_f64();
    println!("{what}, N = {large} ÷ N = {small}: {ratio:.2} x   (wanted: at most 1.25)");
}

fn after_calls<const SIZES: usize>(sizes: [usize; SIZES]) -> Vec<(usize, Duration)> {
    let world = world("");
    let mut server = SpokenServer::of_toolgate(&world);
    let mut done = 0;
    let mut measure = |size: usize| {
        for _ in done..size {
            read(&mut server);
        }
        done = size + READS;
        (size, median((0..READS).map(|_| read(&mut server)).collect()))
    };
    sizes.map(&mut measure).to_vec()
}

fn beside_rules<const SIZES: usize>(sizes: [usize; SIZES]) -> Vec<(usize, Duration)> {
    let rule = |number| format!("{{ decision = 'ask', path = './elsewhere{number}/**' }},\n");
    let measure = |size: usize| {
        let world = world(&format!("rules = [\n{}]\n", (0..size).map(rule).collect::<String>()));
        let mut server = SpokenServer::of_toolgate(&world);
        for _ in 0..READS / 4 {
            read(&mut server);
        }
        (size, median((0..READS).map(|_| read(&mut server)).collect()))
    };
    sizes.map(measure).to_vec()
}

fn after_runs<const SIZES: usize>(sizes: [usize; SIZES]) -> Vec<(usize, Duration)> {
    let world = world("");
    let mut there = 0;
    let mut measure = |size: usize| {
        record_runs(&world, there..size);
        there = size;
        let read = || world.time(env!("CARGO_BIN_EXE_toolgate"), &["call", "read", r#"{"path":"file.rs"}"#]);
        // The first one brings the index up to date.
        read();
        (size, median((0..ROUNDS).map(|_| read()).collect()))
    };
    sizes.map(&mut measure).to_vec()
}

fn beside_processes<const SIZES: usize>(sizes: [usize; SIZES]) -> Vec<(usize, Duration)> {
    let world = world("");
    let mut server = SpokenServer::of_toolgate(&world);
    let mut running = 0;
    let mut measure = |size: usize| {
        for _ in running..size {
            server.call("shell", &json!({ "command": "sleep 1000", "background": true }));
        }
        running = size;
        let command = json!({ "command": "true" });
        (size, median((0..ROUNDS).map(|_| server.call("shell", &command).0).collect()))
    };
    sizes.map(&mut measure).to_vec()
}

/// A world with a file of 4 KiB.
fn world(configuration: &str) -> BenchWorld {
    let world = BenchWorld::new(configuration);
    std::fs::write(world.workspace().join("file.rs"), "fn ordinary() { /* a line like many */ }\n".repeat(100))
        .unwrap();
    world
}

fn read(server: &mut SpokenServer) -> Duration {
    server.call("read", &json!({ "path": "file.rs" })).0
}
