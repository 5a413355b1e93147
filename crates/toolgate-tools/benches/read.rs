//! A page of 100 lines deep in a file of 1 GB, through the whole gate, beside the programs that one would use instead:
//! `sed` from the start, `tail` from the end. All take turns. An argument sets the size of the file in MB.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark makes its file and runs its peers")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_testkit::TestWorkspace;

const ROUNDS: usize = 7;
const LINES: usize = 100;

fn main() {
    let size: u64 = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000);
    let world = TestWorkspace::new(toolgate_tools::all(), "");
    let path = world.path().join("large.log");
    let lines = make(&path, size * 1_000_000);
    let first = lines / 10 * 9;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (sed_range, path) = (format!("{first},{last}p;{last}q", last = first + LINES - 1), path.to_str().unwrap());
    println!("a page of {LINES} lines in {size} MB, {lines} lines; medians of {ROUNDS} rounds");
    compare(
        "from line 9/10 on",
        || read(&runtime, &world, json!({"path": "large.log", "offset": first, "limit": LINES})),
        ("sed -n", || output("sed", &["-n", &sed_range, path])),
    );
    compare(
        "the last lines",
        || read(&runtime, &world, json!({"path": "large.log", "offset": -(LINES as i64), "limit": LINES})),
        ("tail -n", || output("tail", &["-n", &LINES.to_string(), path])),
    );
}

/// Writes lines like those of a log and returns how many.
fn make(path: &Path, size: u64) -> usize {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let (mut written, mut lines) = (0, 0);
    while written < size {
        let filler = &"a message of some length, as they are in a log, and then some more words to it"[lines % 40..];
        let line = format!("2026-11-02T10:{:02}:{:02} info {lines:>9} {filler}\n", lines / 60 % 60, lines % 60);
        file.write_all(line.as_bytes()).unwrap();
        (written, lines) = (written + line.len() as u64, lines + 1);
    }
    file.flush().unwrap();
    lines
}

fn read(runtime: &tokio::runtime::Runtime, world: &TestWorkspace, args: Value) -> String {
    let reply = runtime.block_on(world.perform("read", args));
    reply.payload.expect("the page is there")["content"].as_str().unwrap().to_owned()
}

fn output(program: &str, arguments: &[&str]) -> String {
    String::from_utf8(Command::new(program).args(arguments).output().unwrap().stdout).unwrap()
}

/// Both in turn, so that noise hits both. The first round only warms up, and shows that both give the same.
fn compare(what: &str, ours: impl Fn() -> String, (peer, theirs): (&str, impl Fn() -> String)) {
    assert_eq!(ours(), theirs(), "{what}");
    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        our_times.push(timed(&ours));
        their_times.push(timed(&theirs));
    }
    let (our_time, their_time) = (median(our_times), median(their_times));
    let ratio = our_time.as_secs_f64() / their_time.as_secs_f64();
    println!("read {what} ÷ {peer}: {ratio:.2} x   (wanted: at most 1)");
    println!("  read {our_time:.1?}, {peer} {their_time:.1?}");
}

fn timed(work: impl Fn() -> String) -> Duration {
    let began = Instant::now();
    std::hint::black_box(work());
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
