//! Questions on a real terminal: what the person sees, what a key does, and that a question goes away when somebody else
//! has answered it.

use std::io::Read;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use toolgate_testkit::wait_until;

use crate::world::{PROGRAM, Said, World};

/// Plays the person at the terminal.
const PERSON: &str = include_str!("terminal/person.py");

/// Runs the program on a terminal, with a person who follows this script.
pub(crate) fn on_a_terminal(world: &World, script: &[&str], args: &[&str]) -> Said {
    with_terminal(world, script, PROGRAM, args)
}

/// Runs any program on a terminal, with a person who follows this script.
pub(crate) fn with_terminal(world: &World, script: &[&str], program: &str, args: &[&str]) -> Said {
    let mut command = world.command("python3");
    command.args(["-c", PERSON, &script.join("\n"), program]).args(args).env("toolgate", PROGRAM).env("TERM", "dumb");
    Said::from(command.output().unwrap())
}

/// A call with nobody at its own terminal, which waits at the desk.
fn call_that_waits(world: &World) -> Child {
    world.put(&world.user_config(), "[approvals]\nwait_seconds = 600\n");
    let args = ["--json", "call", "delete", r#"{"path":"hello.txt"}"#];
    let call = world.command(PROGRAM).args(args).stdout(Stdio::piped()).spawn().unwrap();
    wait_until("the call waits for approval", || world.run(&["--json", "approvals", "list"]).list() != json!([]));
    call
}

fn end(mut call: Child) -> Value {
    let mut out = String::new();
    call.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    call.wait().unwrap();
    serde_json::from_str(&out).unwrap()
}

#[test]
fn what_waits_is_answered_one_letter_each() {
    let world = World::new();
    let call = call_that_waits(&world);
    let script = ["wait May this run? delete", "wait [n] no", "wait Your answer:", "type z", "wait one of the letters"];
    let said = on_a_terminal(&world, &[&script[..], &["type y", "wait Approved ask_"]].concat(), &["approvals"]);
    assert_eq!(said.code, 0, "{said:?}");
    let reply = end(call);
    assert_eq!(reply["ok"], true, "{reply}");
    assert!(!world.workspace().join("hello.txt").exists());
    let said = on_a_terminal(&world, &["wait Nothing waits for an answer."], &["approvals"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_workspace_is_watched_and_answered_on_the_whole_terminal() {
    let world = World::new();
    let call = call_that_waits(&world);
    // `n` asks for a reason, which the rest of the line is.
    let script = ["wait Waits for you", "wait delete hello.txt", "type nkeep it", "wait answered", "type q"];
    let said = on_a_terminal(&world, &script, &["watch"]);
    assert_eq!(said.code, 0, "{said:?}");
    let reply = end(call);
    assert_eq!(reply["error"]["code"], "approval_denied", "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("keep it"), "{reply}");
}

#[test]
fn a_no_is_told_to_the_model_with_its_reason() {
    let world = World::new();
    let call = call_that_waits(&world);
    let script = ["wait Your answer:", "type n", "wait Why not?", "type we need it", "wait Denied ask_"];
    let said = on_a_terminal(&world, &script, &["approvals"]);
    assert_eq!(said.code, 0, "{said:?}");
    let reply = end(call);
    assert_eq!(reply["error"]["code"], "approval_denied", "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("we need it"), "{reply}");
}

#[test]
fn a_question_goes_away_when_somebody_else_has_answered_it() {
    let world = World::new();
    let elsewhere = r#"run "$toolgate" approvals approve last"#;
    let script = ["wait May this run? delete", "wait Your answer:", elsewhere, "wait (no longer needed"];
    let said = on_a_terminal(&world, &script, &["call", "delete", r#"{"path":"hello.txt"}"#]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!world.workspace().join("hello.txt").exists(), "the other's yes counts");
}

#[test]
fn who_answers_what_was_answered_already_is_told_so() {
    let world = World::new();
    let call = call_that_waits(&world);
    let elsewhere = r#"run "$toolgate" approvals deny last"#;
    let script = ["wait Your answer:", elsewhere, "type y"];
    let said = on_a_terminal(&world, &script, &["approvals"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(end(call)["error"]["code"], "approval_denied", "the first answer counts");
    assert!(world.workspace().join("hello.txt").exists());
}

const ASK: &str = r#"{"question":"Which way?","choices":[{"label":"left"},{"label":"right"}],"free_text":false}"#;

#[test]
fn a_question_of_the_agents_is_answered_by_its_number() {
    let world = World::new();
    let script = ["wait Which way?", "wait [2] right", "wait Your answer:", "type 3", "wait one of the numbers"];
    let script = [&script[..], &["type 2", "wait answer: right"]].concat();
    let said = on_a_terminal(&world, &script, &["call", "ask", ASK]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_question_of_the_agents_goes_away_when_somebody_else_has_answered_it() {
    let world = World::new();
    let elsewhere = r#"run "$toolgate" approvals answer last left"#;
    let script = ["wait Which way?", "wait Your answer:", elsewhere, "wait (no longer needed", "wait answer: left"];
    let said = on_a_terminal(&world, &script, &["call", "ask", ASK]);
    assert_eq!(said.code, 0, "{said:?}");
}

/// A terminal that can't move its cursor, such as that of an editor: messages and answers are lines.
#[test]
fn a_conversation_in_a_dumb_terminal_asks_by_lines() {
    let delete = r#"calls = [{ tool = "delete", args = { path = "hello.txt" } }]"#;
    let world = World::new().file("script.toml", format!("[[turns]]\n{delete}\n\n[[turns]]\ntext = \"It is gone.\"\n"));
    let script = ["wait > ", "type Delete it.", "wait May this run? delete", "wait Your answer:", "type y"];
    let script = [&script[..], &["wait It is gone.", "wait > ", "type \u{4}"]].concat();
    let said = on_a_terminal(&world, &script, &["chat", "--model", "scripted:script.toml"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!world.workspace().join("hello.txt").exists(), "the person agreed");
}
