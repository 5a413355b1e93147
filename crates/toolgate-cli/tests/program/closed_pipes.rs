//! `toolgate … | head -1`: whoever reads may leave early. The command stays quiet and ends as it would otherwise.

use std::process::Stdio;

use crate::world::{PROGRAM, World};

/// Runs the program with an output that nobody reads any more when it starts.
fn into_a_closed_pipe(world: &World, args: &[&str]) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = world.command(PROGRAM);
    let output = command.args(args).stdout(writer).stderr(Stdio::piped()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_closed_pipe_is_no_error() {
    let world = World::new().file("script.toml", "[[turns]]\ntext = \"Done.\"\n");
    world.run(&["call", "write", r#"{"path":"new.txt","content":"x"}"#]);
    world.run(&["run", "Say it.", "--model", "scripted:script.toml"]);
    for args in [
        &["call", "read", r#"{"path":"hello.txt"}"#][..],
        &["--json", "call", "list"],
        &["tools"],
        &["runs", "list"],
        &["runs", "tree"],
        &["runs", "tail"],
        &["runs", "export"],
        &["changes"],
        &["audit", "verify"],
        &["policy", "test", "--all"],
        &["completions", "bash"],
        &["man"],
        &["doctor"],
        &["--help"],
        &["--version"],
        &["--json", "run", "Say it.", "--model", "scripted:script.toml"],
    ] {
        let (usual, (code, err)) = (world.run(args), into_a_closed_pipe(&world, args));
        assert_eq!(code, Some(usual.code), "{args:?}: {err}");
        let is_noise = |words: &str| err.contains(words) && !usual.err.contains(words);
        assert!(!is_noise("panicked") && !is_noise("ipe") && !is_noise("error"), "{args:?}: {err}");
    }
}

#[test]
fn what_follows_a_run_for_ever_ends_when_its_reader_leaves() {
    let world = World::new();
    world.run(&["call", "list"]);
    // A run that hasn't ended.
    let events = world.last_run().join("events.jsonl");
    let text = std::fs::read_to_string(&events).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    std::fs::write(&events, lines[..lines.len() - 1].concat()).unwrap();
    assert_eq!(into_a_closed_pipe(&world, &["runs", "tail", "-f"]), (Some(0), String::new()));
}

#[test]
fn a_reader_of_one_line_gets_it() {
    let world = World::new();
    let said = world.shell(r#""$toolgate" tools 2>&1 | head -1"#);
    assert!(said.out.starts_with("TOOL ") && said.out.lines().count() == 1 && said.err.is_empty(), "{said:?}");
}
