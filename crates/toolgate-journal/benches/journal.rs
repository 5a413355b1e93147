//! Events recorded per second, compared with raw `write` of the same bytes to a file in the same directory. Both
//! alternate, so that other load on the machine affects both. An argument sets the number of events; the default is
//! 20,000.

// A benchmark reads the files that it made, and needs no documentation.
#![allow(clippy::disallowed_methods, missing_docs)]

use std::fs::{self, File};
use std::io::Write;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;
use toolgate_contract::{CallEnding, Effect, Event, EventPayload, Risk, RunFacts};
use toolgate_journal::{RunOptions, SigningKey, StateDirectory};

const ROUNDS: usize = 5;

fn main() {
    let count = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(20_000);
    let mut best = [Duration::MAX; 3];
    for round in 0..ROUNDS {
        let directory = TempDir::new().expect("a directory for the files");
        let (plain, lines) = journal(&directory, &format!("plain-{round}"), None, count);
        let (signed, _) = journal(&directory, &format!("signed-{round}"), Some(SigningKey::from([7; 32])), count);
        let raw = raw_writes(&directory, &lines);
        for (best, time) in best.iter_mut().zip([raw, plain, signed]) {
            *best = time.min(*best);
        }
    }
    let raw = best[0].as_secs_f64();
    println!("{:<16} {:>12} {:>14} {:>8}", "", "events/s", "µs per event", "ratio");
    for (name, time) in ["raw write", "journal", "journal, signed"].iter().zip(best) {
        let seconds = time.as_secs_f64();
        let (rate, each) = (count as f64 / seconds, seconds * 1e6 / count as f64);
        println!("{name:<16} {rate:>12.0} {each:>14.2} {:>8.2}", seconds / raw);
    }
    println!("an event recorded ÷ a raw write: {:.2} x   (wanted: no worse)", best[2].as_secs_f64() / raw);
}

/// Appends `count` events one by one. Returns the time and the lines that came of it.
fn journal(directory: &TempDir, run: &str, key: Option<SigningKey>, count: usize) -> (Duration, Vec<Vec<u8>>) {
    let state = StateDirectory::open(directory.path()).expect("a state directory");
    let run = state.begin_run(run, facts(), &RunOptions { key, ..RunOptions::default() }).expect("a run");
    let events = [started(), completed()];
    let start = Instant::now();
    for number in 0..count {
        run.journal.append(std::slice::from_ref(&events[number % 2])).expect("room on the disk");
    }
    let time = start.elapsed();
    let text = fs::read(run.path().join("events.jsonl")).expect("the journal");
    let lines = text.split_inclusive(|&byte| byte == b'\n').skip(1).map(<[u8]>::to_vec).collect();
    (time, lines)
}

fn raw_writes(directory: &TempDir, lines: &[Vec<u8>]) -> Duration {
    let mut file = File::create(directory.path().join("raw")).expect("a file");
    let start = Instant::now();
    for line in lines {
        file.write_all(line).expect("room on the disk");
    }
    start.elapsed()
}

fn facts() -> RunFacts {
    RunFacts {
        workspace: "/work".into(),
        session: "session".into(),
        preset: "workspace".into(),
        front_end: "cli".into(),
        version: "0.1.0".into(),
    }
}

fn event(payload: EventPayload) -> Event {
    Event {
        time: Timestamp::now(),
        run: "run_0199f0c8a1b27c3d8e4f5a6b7c8d9e0f".into(),
        turn: Some(3),
        trace_id: Some("trace_0199f0c8a1b27c3d8e4f5a6b7c8d9e0f".into()),
        tool_call_id: Some("call_0199f0c8a1b27c3d8e4f5a6b7c8d9e0f".into()),
        payload,
    }
}

fn started() -> Event {
    event(EventPayload::CallStarted {
        tool: "read".into(),
        version: Some("1.0.0".into()),
        args: json!({ "path": "crates/example/src/lib.rs", "offset": 120, "limit": 80 }),
        effects: vec![Effect::read("crates/example/src/lib.rs")],
        verdict: None,
        approval: None,
        risk: Some(Risk::Low),
        justification: None,
        hooked: None,
    })
}

fn completed() -> Event {
    event(EventPayload::CallCompleted(CallEnding {
        duration_ms: 3,
        payload: Some(json!({ "content": "fn main() {}\n".repeat(8), "start_line": 120, "end_line": 127 })),
        ..CallEnding::default()
    }))
}
