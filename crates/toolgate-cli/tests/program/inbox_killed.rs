//! Workers that are killed at every moment of a task. Each is held at its moment by something that never comes, killed,
//! and followed by another one; no step waits for a time.

use std::process::Child;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_testkit::wait_until;

use crate::inbox::{add, start_worker, task, worker};
use crate::telegram_server::Bot;
use crate::world::{PROGRAM, World};

/// The rest of the work, for whoever comes next.
pub(crate) const REST: &str = "[[turns]]\ntext = \"All done.\"\n";
/// Nothing to say at all: whoever asks this model fails.
const NOTHING: &str = "turns = []\n";
const CALL: &str = r#"calls = [{ tool = "shell", args = { command = "echo once >> log.txt" } }]"#;
const HOUR: &str = "pause_ms = 3600000";

/// Stands in for the time that passes until a dead worker's lease is over.
pub(crate) fn end_leases(world: &World) {
    let inbox = rusqlite::Connection::open(world.workspace().join(".toolgate/inbox.db")).unwrap();
    inbox.execute("UPDATE inbox SET lease_until = 0", []).unwrap();
}

/// Whether something of this kind has happened in any run.
pub(crate) fn is_on_record(world: &World, kind: &str) -> bool {
    let runs = std::fs::read_dir(world.workspace().join(".toolgate/runs")).into_iter().flatten();
    let mut events = runs.filter_map(|run| std::fs::read_to_string(run.ok()?.path().join("events.jsonl")).ok());
    events.any(|events| events.contains(&format!("\"kind\":\"{kind}\"")))
}

pub(crate) fn wait_beside(child: &mut Child, what: &str, mut is_there: impl FnMut() -> bool) {
    wait_until(what, || {
        assert!(child.try_wait().unwrap().is_none(), "the worker ended before {what}");
        is_there()
    });
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A task whose worker followed this script and was killed once this kind of event was on record.
fn killed_at(kind: &str, script: &str) -> (World, String) {
    let world = World::new().file("script.toml", script);
    let id = add(&world, "write it down");
    let mut child = worker(&world, &["--once"]);
    wait_beside(&mut child, kind, || is_on_record(&world, kind));
    kill(child);
    (world, id)
}

/// Nobody ends the lease here: the next worker waits until it has expired.
#[test]
fn a_worker_that_works_once_waits_for_the_lease_of_a_killed_one() {
    let world = World::new().file("script.toml", format!("[[turns]]\n{HOUR}\n"));
    let id = add(&world, "write it down");
    let mut child = start_worker(&world, world.command(PROGRAM), 4, &["--once"]);
    wait_beside(&mut child, "turn.started", || is_on_record(&world, "turn.started"));
    kill(child);
    let world = world.file("script.toml", REST);
    let said = worker(&world, &["--once"]).wait_with_output().unwrap();
    let task = task(&world, &id);
    assert_eq!((&task["state"], &task["answer"]), (&json!("done"), &json!("All done.")), "{task}: {said:?}");
}

/// Lets another worker go on by this script, and gives the task as it is then, and what was said.
fn goes_on(world: World, id: &str, script: &str) -> (Value, String, World) {
    let world = world.file("script.toml", script);
    end_leases(&world);
    let said = worker(&world, &["--once"]).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    (task(&world, id), said, world)
}

fn assert_done(task: &Value, said: &str, runs: usize) {
    assert_eq!((&task["state"], &task["answer"]), (&json!("done"), &json!("All done.")), "{task}: {said}");
    assert_eq!((&task["attempts"], task["runs"].as_array().unwrap().len()), (&json!(2), runs), "{task}");
    assert!(said.contains("All done."), "the answer was delivered: {said}");
}

/// What the last agent was told to do.
fn objective(world: &World, task: &Value) -> String {
    let run = task["runs"].as_array().unwrap().last().unwrap().as_str().unwrap();
    let events = world.read(&format!(".toolgate/runs/{run}/events.jsonl"));
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter_map(|event| event["objective"].as_str().map(str::to_owned)).next().unwrap()
}

#[test]
fn before_the_model_has_answered_the_next_one_simply_begins() {
    let (world, id) = killed_at("turn.started", &format!("[[turns]]\n{HOUR}\n"));
    let (task, said, world) = goes_on(world, &id, REST);
    assert_done(&task, &said, 2);
    assert_eq!(objective(&world, &task), "write it down", "nothing had happened, so there is nothing to tell");
}

#[test]
fn in_the_middle_of_a_call_the_next_one_is_told_that_it_may_have_happened() {
    let call = r#"calls = [{ tool = "shell", args = { command = "echo once >> log.txt; sleep 3600" } }]"#;
    let (world, id) = killed_at("tool_call.started", &format!("[[turns]]\n{call}\n"));
    let (task, said, world) = goes_on(world, &id, &format!("[[turns]]\n{CALL}\n{REST}"));
    assert_done(&task, &said, 2);
    let told = objective(&world, &task);
    assert!(told.contains("echo once") && told.contains("its outcome is unknown"), "{told}");
    assert_eq!(world.read("log.txt"), "once\n", "what the killed command had written was never put in place");
}

#[test]
fn after_a_call_the_next_one_is_told_that_it_happened() {
    let (world, id) = killed_at("tool_call.completed", &format!("[[turns]]\n{CALL}\n[[turns]]\n{HOUR}\n"));
    let (task, said, world) = goes_on(world, &id, REST);
    assert_done(&task, &said, 2);
    let told = objective(&world, &task);
    assert!(told.contains("An earlier attempt") && told.contains("echo once >> log.txt): done"), "{told}");
    assert_eq!(world.read("log.txt"), "once\n");
}

/// A worker whose model has asked for something that needs an approval, and then says that all is done.
fn asks_first(reply_to: &str) -> (World, String, Child) {
    let delete = r#"calls = [{ tool = "delete", args = { path = "hello.txt" } }]"#;
    let world = World::new().file("script.toml", format!("[[turns]]\n{delete}\n{REST}"));
    world.put(&world.user_config(), "[approvals]\nwait_seconds = 3600\n");
    let added = world.run(&["--json", "inbox", "add", "delete it", "--reply-to", reply_to]).json();
    let mut child = worker(&world, &["--once"]);
    wait_beside(&mut child, "it asks", || is_on_record(&world, "approval_required"));
    (world, added["id"].as_str().unwrap().to_owned(), child)
}

pub(crate) fn approve(world: &World, child: &mut Child) {
    wait_beside(child, "the ask lies on the desk", || world.run(&["approvals", "approve", "last"]).code == 0);
}

#[test]
fn while_it_asks_for_an_approval_nothing_has_happened() {
    let (world, id, child) = asks_first("terminal");
    kill(child);
    assert!(world.workspace().join("hello.txt").exists());
    let (task, said, world) = goes_on(world, &id, REST);
    assert_done(&task, &said, 2);
    assert!(world.workspace().join("hello.txt").exists(), "an ask that nobody answered was no yes");
}

#[test]
fn an_answer_that_was_not_kept_is_taken_from_the_record() {
    let (world, id, mut child) = asks_first("terminal");
    // Nobody can write to the inbox while this holds it, so the answer can't be kept.
    let inbox = rusqlite::Connection::open(world.workspace().join(".toolgate/inbox.db")).unwrap();
    inbox.busy_timeout(Duration::from_secs(600)).unwrap();
    inbox.execute_batch("BEGIN IMMEDIATE").unwrap();
    approve(&world, &mut child);
    wait_beside(&mut child, "the agent's end", || is_on_record(&world, "agent.ended"));
    kill(child);
    inbox.execute_batch("ROLLBACK").unwrap();
    assert_eq!(task(&world, &id)["state"], "working");
    let (task, said, _) = goes_on(world, &id, NOTHING);
    assert_done(&task, &said, 1);
}

#[test]
fn an_answer_that_was_not_delivered_is_delivered_and_nothing_else_is_done() {
    let mut bot = Bot::start();
    bot.hold_next();
    let (world, id, mut child) = asks_first(&format!("{}/answers", bot.url));
    approve(&world, &mut child);
    assert_eq!(bot.posted("/answers")["answer"], "All done.");
    kill(child);
    assert_eq!(task(&world, &id)["state"], "answered");
    let (task, said, _) = goes_on(world, &id, NOTHING);
    assert_eq!((&task["state"], task["runs"].as_array().unwrap().len()), (&json!("done"), 1), "{task}: {said}");
    assert_eq!(bot.count("/answers"), 2, "nobody knows whether the first one was heard, so it comes again");
}
