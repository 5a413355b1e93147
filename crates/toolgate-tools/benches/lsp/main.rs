//! Language servers through the gate beside a bare client that asks the same servers the same questions in turn: what the gate
//! adds to a request, how many bytes a model reads instead of `grep` and `read`, and how much memory the servers take. The
//! projects are real: `pip`, and a crate of the registry.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark makes its files and runs its peer")]

mod bare_client;
mod projects;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolgate_testkit::{TestWorkspace, median};

use bare_client::BareClient;
use projects::BenchProject;

const ROUNDS: usize = 31;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for project in projects::installed() {
        compare(&runtime, &project);
    }
}

fn compare(runtime: &Runtime, project: &BenchProject) {
    let world = TestWorkspace::new(toolgate_tools::all(), &project.config()).confined();
    project.copy_to(world.path());
    let own_copy = tempfile::tempdir().unwrap();
    project.copy_to(own_copy.path());
    let mut bare = BareClient::start(project, own_copy.path());
    let question = json!({ "path": project.path, "line": project.line(), "symbol": project.symbol, "limit": 1000 });
    let ask = |tool: &str| perform(runtime, &world, tool, question_for(tool, &question));
    let (first, mut expected) = (ask("lsp_references"), bare.references());
    for _ in 0..100 {
        // It may say less before it has read everything.
        if expected > 1 && expected as u64 >= first["total"].as_u64().unwrap() {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
        expected = bare.references();
    }
    println!("{}: {} places of `{}`, {ROUNDS} rounds", project.server, first["total"], project.symbol);
    for (tool, method) in [("lsp_references", "textDocument/references"), ("lsp_hover", "textDocument/hover")] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let (our_time, their_time) = (time(|| drop(ask(tool))), time(|| drop(bare.ask(method))));
            // The first round only warms up.
            if round > 0 {
                ours.push(our_time);
                theirs.push(their_time);
            }
        }
        report(project.server, tool, median(ours), median(theirs));
    }
    let bytes = first.to_string().len() as f64 / by_reading(runtime, &world, project.symbol) as f64;
    println!("lsp_references ÷ grep + read, bytes for {}: {bytes:.3} x   (wanted: at most 0.2)", project.server);
    let (ours, theirs) = (bare.memory_of_others(), bare.memory());
    println!("memory of {} behind the gate: {ours} MiB   (wanted: reported)", project.server);
    println!("memory of {} with the bare client: {theirs} MiB   (wanted: reported)", project.server);
}

fn question_for(tool: &str, question: &Value) -> Value {
    let mut question = question.clone();
    if tool != "lsp_references" {
        question.as_object_mut().unwrap().remove("limit");
    }
    question
}

fn report(server: &str, tool: &str, ours: Duration, theirs: Duration) {
    let added = (ours.as_secs_f64() - theirs.as_secs_f64()) * 1000.0;
    let share = added / (theirs.as_secs_f64() * 1000.0) * 100.0;
    println!("  {tool} {ours:?}, the bare client {theirs:?}");
    println!("what the gate adds to {tool} of {server}: {added:.2} ms   (wanted: at most 2)");
    println!("what the gate adds to {tool} of {server}, of the request: {share:.1} %   (wanted: at most 5)");
}

/// Bytes that a model reads that asks the same with `grep`, and reads the files to see what each place is in.
fn by_reading(runtime: &Runtime, world: &TestWorkspace, symbol: &str) -> usize {
    let (mut bytes, mut paths, mut cursor) = (0, std::collections::BTreeSet::new(), Value::Null);
    loop {
        let mut args = json!({ "pattern": format!(r"\b{symbol}\b") });
        if !cursor.is_null() {
            args["cursor"] = cursor;
        }
        let reply = runtime.block_on(world.perform("grep", args));
        let found = reply.payload.unwrap_or_else(|| panic!("{:?}", reply.error));
        bytes += found.to_string().len();
        collect_paths(&found, &mut paths);
        match reply.truncated.and_then(|truncated| truncated.next_cursor) {
            Some(next) => cursor = json!(next),
            None => break,
        }
    }
    assert!(!paths.is_empty(), "grep finds the symbol");
    for path in paths {
        bytes += perform(runtime, world, "read", json!({ "path": path })).to_string().len();
    }
    bytes
}

fn collect_paths(found: &Value, into: &mut std::collections::BTreeSet<String>) {
    match found {
        Value::Array(items) => items.iter().for_each(|item| collect_paths(item, into)),
        Value::Object(fields) => {
            into.extend(fields.get("path").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| collect_paths(field, into));
        }
        _ => {}
    }
}

fn perform(runtime: &Runtime, world: &TestWorkspace, tool: &str, args: Value) -> Value {
    let reply = runtime.block_on(world.perform(tool, args));
    reply.payload.unwrap_or_else(|| panic!("{:?}", reply.error))
}

fn time(act: impl FnOnce()) -> Duration {
    let began = Instant::now();
    act();
    began.elapsed()
}
