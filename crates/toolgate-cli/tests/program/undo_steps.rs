//! `toolgate undo last` steps back, and `--turn` alone is enough.

use serde_json::json;

use crate::world::World;

fn write(world: &World, content: &str) -> String {
    let reply = world.call("write", json!({"path": "notes.md", "content": content}));
    assert_eq!(reply["ok"], json!(true), "{reply}");
    reply["tool_call_id"].as_str().unwrap().to_owned()
}

#[test]
fn last_steps_back_until_nothing_is_left_and_an_undo_is_undone_by_name() {
    let world = World::new();
    for content in ["one\n", "two\n", "three\n"] {
        world.call("read", json!({"path": "notes.md"}));
        write(&world, content);
    }
    assert_eq!(world.run(&["undo", "last"]).code, 0);
    assert_eq!(world.read("notes.md"), "two\n");
    let second = world.run(&["--json", "undo", "last"]).json();
    assert_eq!(world.read("notes.md"), "one\n", "{second}");
    let redone = world.run(&["undo", second["tool_call_id"].as_str().unwrap()]);
    assert_eq!((redone.code, world.read("notes.md").as_str()), (0, "two\n"), "{redone:?}");
    assert!(world.run(&["undo", "last"]).code == 0 && world.read("notes.md") == "one\n");
    assert_eq!(world.run(&["undo", "last"]).code, 0);
    assert!(!world.workspace().join("notes.md").exists());
    let nothing = world.run(&["undo", "last"]);
    assert_ne!(nothing.code, 0);
    assert!(nothing.err.contains("Nothing is left to undo"), "{nothing:?}");
}

#[test]
fn an_undo_that_failed_is_passed_over() {
    let world = World::new();
    let first = write(&world, "one\n");
    let edit = world.call("edit", json!({"path": "hello.txt", "find": "hello", "replace": "bye"}));
    assert_eq!(edit["ok"], json!(true), "{edit}");
    world.put(&world.workspace().join("hello.txt"), "mine\n");
    let failed = world.run(&["undo", "last"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.err.contains(&format!("undo {first}` undoes the change before it")), "{failed:?}");
    // Once the cause is gone, the same command works: the failed undo isn't the last change.
    world.put(&world.workspace().join("hello.txt"), "bye\nworld\n");
    let undone = world.run(&["undo", "last"]);
    assert_eq!((undone.code, world.read("hello.txt").as_str()), (0, "hello\nworld\n"), "{undone:?}");
    assert_eq!(world.run(&["undo", "last"]).code, 0);
    assert!(!world.workspace().join("notes.md").exists(), "and the next one is the change before");
}

#[test]
fn the_hint_of_an_undo_is_a_command_that_works() {
    let world = World::new();
    write(&world, "one\n");
    let workspace = world.workspace().display().to_string();
    let said = crate::world::Said::from(
        world
            .command(crate::world::PROGRAM)
            .current_dir("/")
            .args(["-w", &workspace, "undo", "last"])
            .output()
            .unwrap(),
    );
    let hint = said.err.split('`').nth(1).unwrap_or_else(|| panic!("{said:?}"));
    assert!(hint.contains(&workspace), "it names the workspace, as we aren't in it: {hint}");
    let words = hint.split_once(' ').unwrap().1;
    let redone = world.shell(&format!("cd / && \"$toolgate\" {words}"));
    assert_eq!((redone.code, world.read("notes.md").as_str()), (0, "one\n"), "{redone:?}");
}

const TURNS: &str = r#"
[[turns]]
calls = [{ tool = "write", args = { path = "a.txt", content = "a" } }]

[[turns]]
calls = [{ tool = "write", args = { path = "b.txt", content = "b" } }]

[[turns]]
text = "Done."
"#;

#[test]
fn a_turn_alone_is_one_of_the_last_run_that_has_turns() {
    let world = World::new().file("script.toml", TURNS);
    let none = world.run(&["undo", "--turn", "1"]);
    assert!(none.code != 0 && none.err.contains("No run here has turns"), "{none:?}");
    let said = world.run(&["run", "Write.", "--model", "scripted:script.toml"]);
    assert_eq!(said.code, 0, "{said:?}");
    world.call("read", json!({"path": "hello.txt"}));
    let undone = world.run(&["undo", "--turn", "2"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    let exists = |path: &str| world.workspace().join(path).exists();
    assert!(exists("a.txt") && !exists("b.txt"));
    assert_eq!(world.run(&["undo", "last"]).code, 0);
    assert!(!exists("a.txt"), "what the turn's undo undid is passed over");
}
