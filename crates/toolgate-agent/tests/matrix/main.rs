//! Every tool once, called by a model: what it changed in the workspace, what the model was told, what is recorded. A
//! separate program, because the sandbox starts commands with a copy of the running program.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

#[path = "../suite/improvising.rs"]
mod improvising;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_agent::{Agent, AgentLimits};
use toolgate_contract::{ApprovalScope, CancellationToken, EventPayload, FinishReason};
use toolgate_runtime::ApprovalAnswer;
use toolgate_testkit::{FirstChoiceAnswerer, ScriptedApprover, TestWorkspace};

use crate::improvising::Improvising;

/// A call of one tool, and the words that its reply must contain.
type Row = (&'static str, Value, &'static [&'static str]);

fn rows() -> Vec<Row> {
    vec![
        ("list", json!({}), &["notes.md"]),
        ("read", json!({ "path": "notes.md" }), &["milk"]),
        ("notebook", json!({ "path": "list.ipynb", "action": "read" }), &["bread"]),
        ("stat", json!({ "path": "notes.md" }), &["text/markdown", "lines: 1"]),
        ("find", json!({ "pattern": "**/*.md" }), &["notes.md"]),
        ("grep", json!({ "pattern": "mi.k" }), &["notes.md", "milk"]),
        ("search", json!({ "query": "where is the milk" }), &["notes.md", "milk"]),
        ("image", json!({ "path": "dot.png" }), &["image/png"]),
        ("display", json!({ "content": "Working on it." }), &["shown"]),
        ("write", json!({ "path": "new.txt", "content": "one\n" }), &["additions: 1"]),
        ("edit", json!({ "path": "new.txt", "find": "one", "replace": "two" }), &["+two"]),
        (
            "patch",
            json!({ "patch": "*** Begin Patch\n*** Update File: new.txt\n-two\n+three\n*** End Patch\n" }),
            &["new.txt"],
        ),
        ("move", json!({ "from": "new.txt", "to": "moved.txt" }), &["moved.txt"]),
        ("delete", json!({ "path": "old.txt" }), &["old.txt"]),
        ("shell", json!({ "command": "echo from the shell > made.txt && cat made.txt" }), &["from the shell"]),
        ("shell", json!({ "command": "echo later > rehearsed.txt", "rehearse": true }), &["rehearsal"]),
        ("commit", json!({ "rehearsal": "the last" }), &["rehearsed.txt"]),
        ("process", json!({ "action": "list" }), &["processes"]),
        ("fetch", json!({ "url": "the page" }), &["fresh milk"]),
        ("artifact", json!({ "id": "the first" }), &["a kept line"]),
        ("todo_write", json!({ "todos": [{ "content": "buy milk", "status": "pending" }] }), &["buy milk"]),
        ("todo_read", json!({}), &["buy milk"]),
        ("plan", json!({ "steps": [{ "step": "go to the shop", "status": "in_progress" }] }), &["go to the shop"]),
        ("memory", json!({ "action": "create", "content": "the shop closes at six" }), &["mem_1"]),
        ("ask", json!({ "question": "Which milk?" }), &["the usual"]),
        ("skill", json!({ "name": "shopping" }), &["Take a bag."]),
        (
            "script",
            json!({ "skill": "shopping", "path": "scripts/count.sh", "args": ["workspace/notes.md", "$(two words)"] }),
            &["milk", "$(two words)"],
        ),
        ("task", json!({ "objective": "Say yes." }), &["summary: Yes."]),
        ("agents", json!({ "action": "list" }), &["answered"]),
        ("undo", json!({ "run": "run_test" }), &["undone"]),
    ]
}

fn prepared() -> TestWorkspace {
    let world = TestWorkspace::new(
        toolgate_tools::all().into_iter().chain(toolgate_agent::tools()),
        "network.allow = ['127.0.0.1']",
    )
    .confined()
    .with_web(Arc::new(toolgate_web::WebClient::new(toolgate_web::FetchLimits::default())));
    world.file("notes.md", "milk\n").file("old.txt", "old\n").file("dot.png", ONE_DOT);
    let cell = json!({ "cell_type": "markdown", "id": "one", "metadata": {}, "source": ["bread"] });
    let notebook = json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell] });
    world.file("list.ipynb", notebook.to_string());
    let skill = "---\nname: shopping\ndescription: Buys things.\n---\nTake a bag.\n";
    world.file(".agents/skills/shopping/SKILL.md", skill);
    world.file(".agents/skills/shopping/scripts/count.sh", "cat \"$1\"; echo \"$2\"\n");
    world
}

/// A page on this machine, served once; returns its URL.
fn serve_a_page() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut visitor, _) = listener.accept().unwrap();
        let _ = visitor.read(&mut [0; 4096]);
        let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<p>fresh <b>milk</b>";
        visitor.write_all(page.as_bytes()).unwrap();
    });
    format!("http://{address}/")
}

/// A PNG of one pixel.
const ONE_DOT: &[u8] = &[
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 144, 119, 83,
    222, 0, 0, 0, 12, 73, 68, 65, 84, 120, 156, 99, 248, 207, 192, 0, 0, 3, 1, 1, 0, 201, 254, 146, 239, 0, 0, 0, 0,
    73, 69, 78, 68, 174, 66, 96, 130,
];

const NAME: &str = "every_tool_once";

/// Replaces the usual test harness: lists the one test, or runs it.
fn main() {
    toolgate_sandbox::process::zygote_main_if_asked();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    let is_wanted = words.iter().filter(|word| !word.starts_with('-')).all(|filter| NAME.contains(filter.as_str()));
    match (has("--list"), has("--ignored")) {
        (true, false) => println!("{NAME}: test"),
        (false, false) if is_wanted => {
            tokio::runtime::Runtime::new().unwrap().block_on(every_tool_once());
            println!("test {NAME} ... ok");
        }
        _ => {}
    }
}

async fn every_tool_once() {
    let world = prepared();
    let rows = rows();
    let called: BTreeSet<&str> = rows.iter().map(|(tool, ..)| *tool).collect();
    // Tools that ask language servers are called in the tests of those, with the servers.
    let asks_servers = |tool: &&str| tool.starts_with("lsp_") || *tool == "lints";
    let offered = world.gate.declarations().map(|tool| tool.name.as_str()).filter(|tool| !asks_servers(tool));
    let offered: BTreeSet<&str> = offered.collect();
    assert_eq!(called, offered, "every tool has its row here; a new one gets one too");
    let kept =
        toolgate_contract::Artifacts::store(world.run.artifacts.as_ref(), b"a kept line\n", "text/plain").unwrap();
    let page = serve_a_page();
    let turns = rows.clone().into_iter().map(|(tool, args, _)| {
        let args = match tool {
            "artifact" => json!({ "id": kept.id }),
            "fetch" => json!({ "url": page }),
            _ => args,
        };
        Improvising::call(tool, move |told| match tool {
            "commit" => json!({ "rehearsal": last_rehearsal(told) }),
            _ => args.clone(),
        })
    });
    // The subagent takes its turn right after the call that starts it.
    let at = rows.iter().position(|(tool, ..)| *tool == "task").unwrap() + 1;
    let mut turns: Vec<_> = turns.collect();
    turns.insert(at, Improvising::says("Yes."));
    turns.push(Improvising::says("Done."));
    let yes = || ApprovalAnswer::Granted { scope: ApprovalScope::Call, by: "ada".into() };
    let session = world
        .session()
        .approved_by(Arc::new(ScriptedApprover::with([yes(), yes(), yes()])))
        .answered_by(Arc::new(FirstChoiceAnswerer("the usual")));
    let agent = Agent::new(Arc::new(Improvising::new(turns)), Arc::clone(&world.gate), session, AgentLimits::default());
    let outcome = agent.work("Use everything.", CancellationToken::new()).await;
    assert_eq!(outcome.finish, FinishReason::Answered, "{}", outcome.summary);
    check_record(&world, &rows);
    check_workspace(&world);
}

/// The handle in the last reply that has one.
fn last_rehearsal(told: &str) -> &str {
    let (_, after) = told.rsplit_once(r#""rehearsal":""#).unwrap_or_else(|| panic!("there is no rehearsal in {told}"));
    after.split('"').next().unwrap_or_default()
}

/// Each call has its pair of events, succeeded, and returned the expected words.
fn check_record(world: &TestWorkspace, rows: &[Row]) {
    let events = world.events();
    let mut starts = events.iter().filter_map(|event| match &event.payload {
        EventPayload::CallStarted { tool, .. } => Some((tool.clone(), event)),
        _ => None,
    });
    for (tool, _, words) in rows {
        let started = starts.find(|(name, _)| name == tool).unwrap_or_else(|| panic!("{tool} is not on record")).1;
        let ended = events.iter().filter(|event| event.tool_call_id == started.tool_call_id).find_map(|event| {
            match &event.payload {
                EventPayload::CallCompleted(ending) => Some(Ok(ending.payload.clone().unwrap())),
                EventPayload::CallFailed { error, .. } => Some(Err(error.clone())),
                _ => None,
            }
        });
        let payload =
            ended.unwrap_or_else(|| panic!("{tool} has no end")).unwrap_or_else(|error| panic!("{tool}: {error}"));
        let told = payload.to_string();
        for words in *words {
            let plain = words.split_once(": ").map_or(*words, |(_, value)| value);
            assert!(told.contains(plain), "{tool} brought {told}, without {words}");
        }
    }
}

/// The undo at the end undid the changes of the tools, and those of the command as well.
fn check_workspace(world: &TestWorkspace) {
    let read = |path: &str| std::fs::read_to_string(world.path().join(path)).ok();
    assert_eq!(read("old.txt").as_deref(), Some("old\n"), "the deleted file is back");
    assert_eq!((read("new.txt"), read("moved.txt")), (None, None), "what was written is gone again");
    assert_eq!((read("made.txt"), read("rehearsed.txt")), (None, None), "what commands made too");
}
