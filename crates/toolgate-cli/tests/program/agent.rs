//! `toolgate run` and `toolgate demo`, with models that follow a script.

use serde_json::Value;
use toolgate_testkit::{processes_with, unique_sleep, wait_until};

use crate::world::{Said, World};

const LOOKS: &str = r#"
[[turns]]
text = "Let me look."
calls = [{ tool = "read", args = { path = "hello.txt" } }]

[[turns]]
expect = ["world"]
text = "It says hello to the world."
"#;

fn run(world: &World, more: &[&str]) -> Said {
    let base = ["run", "What does it say?", "--model", "scripted:script.toml"];
    world.run(&[&base, more].concat())
}

fn events(said: &Said) -> Vec<Value> {
    said.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"))).collect()
}

#[test]
fn the_answer_goes_to_standard_output_and_the_rest_beside() {
    let world = World::new().file("script.toml", LOOKS);
    let said = run(&world, &[]);
    assert_eq!((said.code, said.out.as_str()), (0, "It says hello to the world.\n"), "{said:?}");
    for words in ["turn 1", "Let me look.", "✓ read hello.txt", "✓ answered 2 turns"] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    let tree = world.run(&["runs", "tree"]).out;
    assert!(tree.contains("agent main ✓") && tree.contains("turn 2") && tree.contains("read ✓"), "{tree}");
    let verified = world.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
}

#[test]
fn programs_get_every_event_as_a_line() {
    let world = World::new().file("script.toml", LOOKS);
    let said = run(&world, &["--json"]);
    let events = events(&said);
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"agent.started"));
    assert_eq!(kinds.last(), Some(&"agent.ended"));
    assert!(kinds.contains(&"tool_call.completed") && kinds.contains(&"turn.ended"), "{kinds:?}");
    assert_eq!(events.last().unwrap()["finish"], "answered");
}

#[test]
fn every_end_has_its_own_code() {
    let again = "[[turns]]\ncalls = [{ tool = \"list\" }]\n".repeat(9);
    let table = [
        (again.as_str(), vec!["--max-turns", "2"], 10, "turn_limit"),
        (again.as_str(), vec![], 14, "no_progress"),
        ("turns = [{}, {}, {}]", vec![], 15, "invalid_answers"),
        ("turns = []", vec![], 16, "model_failed"),
        (LOOKS, vec!["--context-tokens", "9"], 13, "context_limit"),
        (
            "[[turns]]\ntokens = { input = 9, output = 9 }\ncalls = [{ tool = \"list\" }]",
            vec!["--max-tokens", "5"],
            12,
            "token_limit",
        ),
        ("[[turns]]\npause_ms = 60000", vec!["--max-minutes", "0.005"], 11, "time_limit"),
    ];
    for (script, flags, code, words) in table {
        let world = World::new().file("script.toml", script);
        let said = run(&world, &flags);
        assert_eq!(said.code, code, "{words}: {said:?}");
        assert!(said.err.contains(words) && said.out.is_empty(), "{words}: {said:?}");
    }
}

#[test]
fn what_is_missing_is_said_before_anything_runs() {
    let world = World::new();
    for (args, words) in [
        (vec!["run", "task"], "--model"),
        (vec!["run", "task", "--model", "openai:gpt-5"], "OPENAI_API_KEY"),
        (vec!["run", "task", "--model", "what"], "provider:name"),
        (vec!["run", " ", "--model", "ollama:x"], "The task is empty"),
    ] {
        let said = world.run(&args);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(words), "{said:?}");
    }
    assert!(!world.workspace().join(".toolgate/runs").exists(), "nothing was recorded, since nothing happened");
}

/// A key that is in a file of the workspace, in the environment, and asked for by a command, is seen nowhere.
#[test]
fn the_models_key_is_seen_nowhere() {
    let key = "sk-0123456789-abcdefgh-ZYXWVUT";
    let script = r#"
[[turns]]
calls = [{ tool = "read", args = { path = "leak.txt" } }, { tool = "shell", args = { command = "env" } }]

[[turns]]
expect = ["leak: ***REDACTED***"]
text = "It is hidden."
"#;
    let world = World::new().file("script.toml", script).file("leak.txt", format!("leak: {key}\n"));
    world.put(&world.home().join("key"), key);
    let file = world.home().join("key");
    let said = run(&world, &["--key-file", file.to_str().unwrap()]);
    assert_eq!(said.code, 0, "{said:?}");
    let record = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    assert!(!format!("{said:?}{record}").contains(key));
    let from_environment = world
        .command(crate::world::PROGRAM)
        .env("TOOLGATE_MODEL_KEY", key)
        .args(["--json", "run", "x", "--model", "scripted:script.toml"])
        .output()
        .unwrap();
    let said = Said::from(from_environment);
    assert!(said.code == 0 && !format!("{said:?}").contains(key), "{said:?}");
}

#[test]
fn a_workspaces_own_instructions_count_once_it_is_trusted() {
    let world =
        World::new().file("script.toml", "turns = [{ text = 'ok' }, { text = 'ok' }]").file("AGENTS.md", "Be kind.\n");
    let reads = |said: Said| events(&said).iter().filter(|event| event["tool"] == "read").count();
    assert_eq!(reads(run(&world, &["--json"])), 0);
    assert_eq!(world.run(&["init"]).code, 0);
    assert_eq!(reads(run(&world, &["--json"])), 1, "it is read through the gate, on record");
}

#[test]
fn a_trusted_workspace_needs_no_configuration_for_its_instructions_to_count() {
    let world = World::new().file("script.toml", "turns = [{ text = 'ok' }]").file("AGENTS.md", "Be kind.\n");
    let reads = |said: Said| events(&said).iter().filter(|event| event["tool"] == "read").count();
    assert_eq!(reads(run(&world, &["--json"])), 0);
    assert_eq!(world.run(&["trust", "--yes"]).code, 0);
    assert_eq!(reads(run(&world, &["--json"])), 1);
    assert_eq!(world.run(&["trust", "--revoke"]).code, 0);
    assert_eq!(reads(run(&world, &["--json"])), 0);
}

#[test]
fn an_approval_that_nobody_can_give_is_a_refusal_and_the_work_goes_on() {
    let script = r#"
[[turns]]
calls = [{ tool = "delete", args = { path = "hello.txt" } }]

[[turns]]
expect = ["error[approval_required]"]
text = "I may not."
"#;
    let world = World::new().file("script.toml", script);
    assert_eq!(run(&world, &[]).code, 0);
    assert_eq!(world.read("hello.txt"), "hello\nworld\n");
}

#[test]
fn a_kind_of_agent_that_the_user_wrote_down_can_be_sent() {
    let script = r#"
[[turns]]
calls = [{ tool = "task", args = { agent = "reviewer", objective = "Look at hello.txt." } }]

[[turns]]
agent = "reviewer"
calls = [{ tool = "write", args = { path = "new.txt", content = "x" } }]

[[turns]]
agent = "reviewer"
expect = ["error[tool_not_allowed]"]
text = "I only look."

[[turns]]
expect = ["summary: I only look."]
text = "Reviewed."
"#;
    let world = World::new().file("script.toml", script);
    let kind = world.user_config().with_file_name("agents").join("reviewer.toml");
    world.put(&kind, "description = 'Reviews.'\ntools = ['read']\n");
    let said = run(&world, &[]);
    assert_eq!((said.code, said.out.as_str()), (0, "Reviewed.\n"), "{said:?}");
    let tree = world.run(&["runs", "tree"]).out;
    assert!(tree.contains("agent reviewer ✓") && tree.contains("write ✗ tool_not_allowed"), "{tree}");
    world.put(&kind, "tools = ['read']");
    assert_eq!(run(&world, &[]).code, 2, "a kind that can't be read is said before anything runs");
}

/// Ctrl-C while a command runs: the command is stopped, the end is on record, and the program says so.
#[test]
fn an_interrupt_ends_the_work_cleanly() {
    let marker = unique_sleep();
    let script = format!("[[turns]]\ncalls = [{{ tool = 'shell', args = {{ command = 'sleep {marker}' }} }}]\n");
    let world = World::new().file("script.toml", script);
    let child = world
        .command(crate::world::PROGRAM)
        .args(["--json", "run", "wait", "--model", "scripted:script.toml"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the command runs", || !processes_with(&format!("sleep\0{marker}")).is_empty());
    let interrupt = format!("kill -INT {}", child.id());
    assert!(world.command("sh").args(["-c", &interrupt]).status().unwrap().success());
    let said = Said::from(child.wait_with_output().unwrap());
    let kinds: Vec<Value> = events(&said).iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(
        (said.code, kinds[kinds.len() - 3..].to_vec()),
        (130, vec!["tool_call.failed".into(), "turn.ended".into(), "agent.ended".into()]),
        "{said:?}"
    );
}

#[test]
fn the_demo_shows_what_it_promises() {
    let said = World::new().run(&["demo"]);
    assert_eq!(said.code, 0, "{said:?}");
    let shown = format!("{}\n{}", said.err, said.out);
    for words in [
        "expected hello-world, got Hello-World",
        "✓ edit slug.sh",
        "ok: 2 tests",
        "sensitive_path",
        "policy_denied",
        "There is no terminal, so the demo approves",
        "✓ delete slug.sh.orig",
        "agent main ✓",
        "Undone:",
        "undoes this",
    ] {
        assert!(shown.contains(words), "{words} isn't in:\n{shown}");
    }
    assert_eq!(shown.matches("got Hello-World").count(), 2, "it fails again once all is undone:\n{shown}");
}

#[test]
fn a_run_can_be_written_as_a_script_that_does_it_again() {
    let script = r#"
[[turns]]
text = "I have it looked up."
calls = [{ tool = "task", args = { agent = "explore", objective = "What does it say?" } }]

[[turns]]
agent = "explore"
calls = [{ tool = "read", args = { path = "hello.txt" } }]

[[turns]]
agent = "explore"
text = "Hello."

[[turns]]
text = "Now I write it down."
calls = [{ tool = "write", args = { path = "said.txt", content = "It says \"hello\".\n" } }]

[[turns]]
text = "It says hello."
"#;
    let first = World::new().file("script.toml", script);
    assert_eq!(run(&first, &[]).code, 0);
    let exported = first.run(&["runs", "export", "--script"]);
    assert_eq!(exported.code, 0, "{exported:?}");
    let second = World::new().file("script.toml", &exported.out);
    let said = run(&second, &[]);
    assert_eq!((said.code, said.out.as_str()), (0, "It says hello.\n"), "{said:?}\n{}", exported.out);
    assert_eq!(second.read("said.txt"), first.read("said.txt"));
    assert_eq!(second.run(&["runs", "export", "--script"]).out, exported.out);
    first.call("list", serde_json::json!({}));
    assert_eq!(first.run(&["runs", "export", "--script"]).code, 2, "in that run no model was at work");
}

#[test]
fn the_turns_of_one_agent_are_undone_without_those_of_another() {
    let write =
        |path: &str| format!("calls = [{{ tool = \"write\", args = {{ path = \"{path}\", content = \"x\" }} }}]\n");
    let script = format!(
        "[[turns]]\n{}[[turns]]\ncalls = [{{ tool = \"task\", args = {{ objective = \"Write.\" }} }}]\n\
         [[turns]]\nagent = \"general\"\n{}[[turns]]\nagent = \"general\"\ntext = \"Written.\"\n\
         [[turns]]\ntext = \"Done.\"\n",
        write("mine.txt"),
        write("theirs.txt")
    );
    let world = World::new().file("script.toml", script);
    let said = run(&world, &["--json"]);
    let events = events(&said);
    let sent = events.iter().find(|event| event["kind"] == "agent.started" && event["agent"] == "general").unwrap();
    let agent = sent["trace_id"].as_str().unwrap();
    let run = sent["run"].as_str().unwrap();
    let undone = world.run(&["undo", "--run", run, "--turn", "1", "--agent", agent]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert!(world.workspace().join("mine.txt").exists() && !world.workspace().join("theirs.txt").exists());
}
