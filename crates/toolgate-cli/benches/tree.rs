//! How long `toolgate runs tree` takes for runs of three sizes, a factor of ten apart, beside reading the same file as JSON, in
//! one interleaved run.
#![allow(
    clippy::disallowed_methods,
    missing_docs,
    reason = "starts the program that it measures, in a directory of its own"
)]

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_contract::{Event, RunFacts};
use toolgate_journal::{RunOptions, StateDirectory};

const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
const ROUNDS: usize = 7;

fn main() {
    SIZES.into_iter().for_each(measure);
}

fn measure(events: usize) {
    let directory = tempfile::tempdir().unwrap();
    let (workspace, home) = (directory.path().join("workspace"), directory.path().join("home"));
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::create_dir_all(&home).unwrap();
    let journal = record(&workspace, events);
    let (mut drawing, mut reading) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        drawing.push(draw(&workspace, &home, events));
        reading.push(read(&journal));
    }
    drawing.sort();
    reading.sort();
    let (draw, read) = (drawing[ROUNDS / 2], reading[ROUNDS / 2]);
    let ratio = draw.as_secs_f64() / read.as_secs_f64();
    println!("`runs tree` of {events} events ÷ reading them as JSON: {ratio:.2} x   (wanted: no worse)");
    println!("`runs tree` of {events} events: {:.0} ms   (wanted: at most 1000)", draw.as_secs_f64() * 1e3);
    println!("  medians of {ROUNDS} rounds: drawn {draw:?}, read {read:?}, {} bytes", journal.len());
}

/// A run of an agent that reads a part of a file in each of many turns, on record as any run is.
fn record(workspace: &Path, events: usize) -> String {
    let state = StateDirectory::open(workspace).unwrap();
    let facts = RunFacts {
        workspace: workspace.display().to_string(),
        session: "agent".into(),
        preset: "workspace".into(),
        front_end: "agent".into(),
        version: "1".into(),
    };
    let run = state.begin_run("run_bench", facts, &RunOptions::default()).unwrap();
    let begun = json!({ "kind": "agent.started", "agent": "main", "model": "m", "objective": "Read it all." });
    run.journal.append(&[event(None, None, begun)]).unwrap();
    for turn in 0..events as u64 / 5 {
        let events: Vec<Event> = of_turn(turn).into_iter().map(|(call, what)| event(Some(turn), call, what)).collect();
        run.journal.append(&events).unwrap();
    }
    run.end().unwrap();
    std::fs::read_to_string(run.path().join("events.jsonl")).unwrap()
}

/// What is on record of one turn.
fn of_turn(turn: u64) -> [(Option<String>, Value); 5] {
    let call = Some(format!("call_{turn:032}"));
    let path = json!({ "kind": "read", "path": "src/lib.rs" });
    let finding = json!({ "decision": "allow", "effect": path, "rule": "preset workspace: allow fs.read",
        "layer": "builtin", "reason": "The preset `workspace` allows reading files." });
    let payload = json!({ "content": "fn ordinary() {}\n".repeat(10), "start_line": 1, "end_line": 10 });
    let tokens = json!({ "input": 1000, "output": 100 });
    [
        (None, json!({ "kind": "turn.started" })),
        (None, json!({ "kind": "model.said", "text": "I look at the next part." })),
        (
            call.clone(),
            json!({ "kind": "tool_call.started", "tool": "read", "version": "1.0.0", "risk": "low", "effects": [path],
                "args": { "path": "src/lib.rs", "offset": turn }, "verdict": { "decision": "allow", "decided_by": finding } }),
        ),
        (call, json!({ "kind": "tool_call.completed", "payload": payload, "redacted": false, "duration_ms": 1 })),
        (None, json!({ "kind": "turn.ended", "tokens": tokens, "duration_ms": 3 })),
    ]
}

fn event(turn: Option<u64>, call: Option<String>, mut what: Value) -> Event {
    let about = json!({ "time": "2026-01-01T00:00:00Z", "run": "run_bench", "trace_id": "agent_1", "turn": turn,
        "tool_call_id": call });
    what.as_object_mut().unwrap().extend(about.as_object().unwrap().clone());
    serde_json::from_value(what).unwrap()
}

fn draw(workspace: &Path, home: &Path, events: usize) -> Duration {
    let began = Instant::now();
    let mut program = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    program.args(["runs", "tree", "run_bench"]).current_dir(workspace).env_clear().env("HOME", home);
    let output = program.stdin(Stdio::null()).output().unwrap();
    let took = began.elapsed();
    let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
    assert!(output.status.success() && lines > events / 2, "{}", String::from_utf8_lossy(&output.stderr));
    took
}

fn read(journal: &str) -> Duration {
    let began = Instant::now();
    for line in journal.lines() {
        black_box(serde_json::from_str::<Value>(line).unwrap());
    }
    began.elapsed()
}
