//! `toolgate run --continue` and `--resume`: after an answer, a limit, and a kill at any point.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::world::{PROGRAM, Said, World};

/// Every command leaves a line of its own.
const COMMANDS: &str = r#"
[[turns]]
text = "First."
calls = [{ tool = "shell", args = { command = "echo one >> log" } }]

[[turns]]
calls = [{ tool = "shell", args = { command = "echo two >> log" } }, { tool = "read", args = { path = "log" } }]

[[turns]]
calls = [{ tool = "shell", args = { command = "echo three >> log" } }]

[[turns]]
text = "Done."

[[turns]]
text = "As I said."
"#;

fn run(world: &World, args: &[&str]) -> Said {
    world.run(&[&["run", "--model", "scripted:script.toml"], args].concat())
}

/// All events of the newest run. A line that a kill cut off is none.
fn record(world: &World) -> Vec<Value> {
    let text = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["kind"] == kind)
}

#[test]
fn a_run_goes_on_after_a_limit_and_after_an_answer() {
    let world = World::new().file("script.toml", COMMANDS);
    let said = run(&world, &["Write.", "--max-turns", "2"]);
    assert_eq!(said.code, 10, "{said:?}");
    assert!(said.err.contains("run --continue"), "the way on is named: {said:?}");
    let said = run(&world, &["--continue"]);
    assert_eq!((said.code, said.out.as_str()), (0, "Done.\n"), "{said:?}");
    assert_eq!(world.read("log"), "one\ntwo\nthree\n");
    let id = world.last_run().file_name().unwrap().to_string_lossy().into_owned();
    let said = run(&world, &["--resume", &id, "What did you do?"]);
    assert_eq!((said.code, said.out.as_str()), (0, "As I said.\n"), "{said:?}");
    let events = record(&world);
    assert_eq!(of_kind(&events, "agent.started").count(), 3, "all of it is in one run");
    assert_eq!(world.run(&["audit", "verify"]).code, 0);
}

#[test]
fn what_cannot_go_on_says_why() {
    let world = World::new().file("script.toml", COMMANDS);
    let said = run(&world, &["--continue"]);
    assert!(said.code != 0 && said.err.contains("nothing to continue"), "{said:?}");
    world.call("list", serde_json::json!({}));
    let said = run(&world, &["--resume", "last"]);
    assert!(said.code != 0 && said.err.contains("No agent worked in this run"), "{said:?}");
    let said = run(&world, &[]);
    assert_eq!(said.code, 2, "{said:?}");
}

/// Kills the program once it has reported this many events.
fn killed_after(world: &World, events: usize) {
    let mut child = world
        .command(PROGRAM)
        .args(["--json", "run", "Write.", "--model", "scripted:script.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.take(events).for_each(|line| drop(line.unwrap()));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A `kill -9` after each event of the run: what had started and not ended is shown to the model, and what happened
/// happened once.
#[test]
fn a_kill_at_any_point_repeats_nothing_unnoticed() {
    let whole = World::new().file("script.toml", COMMANDS);
    assert_eq!(run(&whole, &["Write."]).code, 0);
    let all = record(&whole).len();
    for events in 1..all {
        let world = World::new().file("script.toml", COMMANDS);
        killed_after(&world, events);
        let before = record(&world);
        let said = run(&world, &["--continue"]);
        let context = format!("killed after {events} events: {said:?}");
        assert_eq!(said.code, 0, "{context}");
        let after = record(&world);
        let ids = |kind: &'static str, events: &[Value]| -> Vec<String> {
            of_kind(events, kind).map(|event| event["tool_call_id"].as_str().unwrap().to_owned()).collect()
        };
        let started = ids("tool_call.started", &after);
        let distinct: HashSet<&String> = started.iter().collect();
        assert_eq!(distinct.len(), started.len(), "no call starts twice: {context}");
        let ended = [ids("tool_call.completed", &before), ids("tool_call.failed", &before)].concat();
        let lines = std::fs::read_to_string(world.workspace().join("log")).unwrap_or_default();
        for word in ["one", "two", "three"] {
            let asked = of_kind(&before, "model.said").flat_map(|said| said["calls"].as_array().into_iter().flatten());
            let asked = asked.filter(|call| call["args"]["command"] == format!("echo {word} >> log"));
            let is_uncertain =
                asked.map(|call| call["tool_call_id"].as_str().unwrap()).any(|id| !ended.contains(&id.to_owned()));
            let times = lines.lines().filter(|line| *line == word).count();
            assert!(times == 1 || (is_uncertain && times == 0), "{word} {times} times, {context}");
        }
    }
}

/// Two processes that continued one conversation would each speak to the model as if the other had done nothing.
#[test]
fn a_run_is_continued_by_one_process_at_a_time() {
    let world = World::new().file("script.toml", "[[turns]]\ntext = \"First.\"\n\n[[turns]]\npause_ms = 3600000\n");
    assert_eq!(run(&world, &["Begin."]).code, 0);
    let turns = |world: &World| of_kind(&record(world), "turn.started").count();
    let before = turns(&world);
    let mut working = world
        .command(PROGRAM)
        .args(["run", "--continue", "--model", "scripted:script.toml"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    toolgate_testkit::wait_until("it works", || turns(&world) > before);
    let events = record(&world).len();
    let id = world.last_run().file_name().unwrap().to_string_lossy().into_owned();
    for args in [&["--continue"][..], &["--resume", &id]] {
        let refused = run(&world, args);
        assert!(refused.code != 0 && refused.err.contains("another process works in it"), "{args:?}: {refused:?}");
        assert!(refused.err.contains(&format!("toolgate runs tail -f {id}")), "the way on is named: {refused:?}");
    }
    assert_eq!(record(&world).len(), events, "who was refused left nothing in the record");
    // The lock goes with its process, however that ends.
    working.kill().unwrap();
    working.wait().unwrap();
    let world = world.file("script.toml", "[[turns]]\ntext = \"Again.\"\n".repeat(4));
    let said = run(&world, &["--continue"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn the_model_and_its_price_come_from_the_users_configuration() {
    let script = "[[turns]]\ntokens = { input = 1000000, output = 100000 }\ntext = \"Hello.\"\n".repeat(2);
    let world = World::new().file("script.toml", script);
    world.put(
        &world.user_config(),
        "[model]\ndefault = 'scripted:script.toml'\ninput_price = 2\noutput_price = 10\ncurrency = '€'\n",
    );
    let said = world.run(&["run", "Hi."]);
    assert_eq!((said.code, said.out.as_str()), (0, "Hello.\n"), "{said:?}");
    assert!(said.err.contains("1,100,000 tokens, €3.00"), "{said:?}");
    let said = world.run(&["run", "Hi.", "--model", "scripted:./script.toml"]);
    assert!(said.code == 0 && !said.err.contains('€'), "another model has no known price: {said:?}");
}

/// A run that came with a repository is not the person's own past.
#[test]
fn a_record_of_somebody_else_is_not_continued() {
    let theirs = World::new().file("script.toml", COMMANDS);
    assert_eq!(run(&theirs, &["Write.", "--max-turns", "1"]).code, 10);
    let ours = World::new().file("script.toml", COMMANDS);
    world_copy(&theirs, &ours);
    let said = run(&ours, &["--continue"]);
    assert!(said.code != 0 && said.err.contains("sign"), "{said:?}");
    assert!(!ours.workspace().join("log").exists(), "no call was made");
}

/// Copies the runs of one workspace into another.
fn world_copy(from: &World, to: &World) {
    let runs = from.workspace().join(".toolgate");
    let copied = from.command("cp").arg("-a").arg(runs).arg(to.workspace()).status().unwrap();
    assert!(copied.success());
}
