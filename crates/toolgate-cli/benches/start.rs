//! How long the program takes from its start to its end, beside `/bin/true` and plain bash in the same run, and a list of
//! ten thousand runs.
#![allow(clippy::disallowed_methods, reason = "starts the program that it measures, in a directory of its own")]

mod support;

use std::time::Duration;

use toolgate_testkit::median;

use support::{BenchWorld, record_runs};

const ROUNDS: usize = 41;
const RUNS: usize = 10_000;

fn main() {
    let world = BenchWorld::new("");
    let program = env!("CARGO_BIN_EXE_toolgate");
    let measured = [
        ("/bin/true", vec![]),
        ("bash", vec!["-c", "true"]),
        (program, vec!["--version"]),
        (program, vec!["policy", "check", "ls"]),
        (program, vec!["call", "shell", r#"{"command":"true"}"#]),
    ];
    let mut times = vec![Vec::new(); measured.len()];
    for _ in 0..ROUNDS {
        for ((program, words), times) in measured.iter().zip(&mut times) {
            times.push(world.time(program, words));
        }
    }
    let [nothing, bash, version, check, call] = times.into_iter().map(median).collect::<Vec<_>>()[..] else { return };
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    println!("`toolgate --version`: {:.1} ms   (wanted: at most 5)", milliseconds(version));
    println!("`toolgate policy check ls`: {:.1} ms   (wanted: at most 10)", milliseconds(check));
    println!("`toolgate call shell true`: {:.1} ms   (wanted: at most 30)", milliseconds(call));
    let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    println!("`toolgate policy check ls` ÷ /bin/true: {:.1} x   (wanted: reported)", ratio(check, nothing));
    println!("`toolgate call shell true` ÷ bash -c true: {:.1} x   (wanted: reported)", ratio(call, bash));
    list_runs();
}

/// Lists runs as their number grows tenfold.
fn list_runs() {
    let world = BenchWorld::new("");
    let mut there = 0;
    for runs in [RUNS / 100, RUNS / 10, RUNS] {
        record_runs(&world, there..runs);
        there = runs;
        let list = || world.time(env!("CARGO_BIN_EXE_toolgate"), &["runs", "list"]);
        // The first one brings the index up to date.
        list();
        let took = median((0..ROUNDS).map(|_| list()).collect());
        println!("`runs list` with {runs} runs: {:.1} ms   (wanted: at most 50)", took.as_secs_f64() * 1e3);
    }
}
