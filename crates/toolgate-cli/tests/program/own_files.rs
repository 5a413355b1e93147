//! What a session made it takes away without a question, also when every call is a program of its own.

#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use serde_json::{Value, json};

use crate::world::World;

/// The exit code of a call that waits for an approval that nobody gives.
const NOT_APPROVED: i32 = 4;

fn call(world: &World, session: &str, tool: &str, args: &Value) -> i32 {
    world.run(&["--json", "call", "--session", session, tool, &args.to_string()]).code
}

fn write(world: &World, session: &str, path: &str, content: &str) {
    assert_eq!(call(world, session, "write", &json!({ "path": path, "content": content })), 0);
}

fn delete(world: &World, session: &str, path: &str) -> i32 {
    call(world, session, "delete", &json!({ "path": path }))
}

fn shell(world: &World, session: &str, command: &str) -> i32 {
    call(world, session, "shell", &json!({ "command": command }))
}

#[test]
fn what_an_earlier_program_of_the_session_made_is_its_own() {
    let world = World::new();
    write(&world, "one", "a.txt", "a\n");
    assert_eq!(shell(&world, "one", "mkdir made && echo b > made/b.txt && echo c > c.txt"), 0);
    assert_eq!(delete(&world, "other", "a.txt"), NOT_APPROVED, "another session didn't make it");
    assert_eq!(delete(&world, "one", "hello.txt"), NOT_APPROVED, "nobody made it here");
    assert_eq!(delete(&world, "one", "a.txt"), 0);
    assert_eq!(shell(&world, "one", "rm -r made c.txt"), 0);
    assert!(!world.workspace().join("made").exists() && !world.workspace().join("a.txt").exists());
}

#[test]
fn what_somebody_else_changed_or_brought_back_is_no_longer_the_sessions() {
    let world = World::new();
    write(&world, "one", "changed.txt", "a\n");
    write(&world, "one", "edited.txt", "a\n");
    world.put(&world.workspace().join("changed.txt"), "a person's\n");
    assert_eq!(call(&world, "other", "edit", &json!({ "path": "edited.txt", "find": "a", "replace": "b" })), 0);
    assert_eq!(delete(&world, "one", "changed.txt"), NOT_APPROVED);
    assert_eq!(delete(&world, "one", "edited.txt"), NOT_APPROVED);
    // What the session didn't make, and only brought back.
    let said = world.run(&["--json", "call", "--session", "one", "--approve", "delete", r#"{"path":"hello.txt"}"#]);
    let undo = json!({ "call": said.json()["tool_call_id"] }).to_string();
    assert_eq!(world.run(&["call", "--session", "one", "--approve", "undo", &undo]).code, 0);
    assert_eq!(delete(&world, "one", "hello.txt"), NOT_APPROVED);
}

#[test]
fn a_record_that_was_changed_proves_nothing() {
    let world = World::new();
    write(&world, "one", "a.txt", "a\n");
    let journal = world.last_run().join("events.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let forged = text.replace("\"a.txt\"", "\"hello.txt\"");
    assert_ne!(forged, text);
    std::fs::write(&journal, forged).unwrap();
    world.put(&world.workspace().join("hello.txt"), "a\n");
    assert_eq!(delete(&world, "one", "hello.txt"), NOT_APPROVED);
}
