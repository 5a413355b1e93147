//! Commands that a person runs in the sandbox: what they read, where they write, and what is said of them.

use serde_json::{Value, json};

use crate::terminal::on_a_terminal;
use crate::world::World;

#[test]
fn what_is_piped_in_is_read_and_nobody_has_to_read_it() {
    let world = World::new().file("long.txt", "line\n".repeat(200_000));
    let said = world.shell(r#"echo hi | "$toolgate" sandbox -- cat"#);
    assert_eq!((said.code, said.out.as_str()), (0, "hi\n"), "{said:?}");
    let said = world.shell(r#""$toolgate" sandbox -- wc -l < long.txt"#);
    assert_eq!(said.out.trim(), "200000", "{said:?}");
    let said = world.shell(r#"cat long.txt | "$toolgate" sandbox -- true && echo ended"#);
    assert_eq!(said.out, "ended\n", "{said:?}");
}

#[test]
fn who_sits_at_a_terminal_gets_one_for_the_command_too() {
    let command = "stty size; read line; test -t 0 && test -t 1 && echo \"got $line\"; exit 5";
    let script = ["wait 24 80", "type hello", "wait got hello"];
    let said = on_a_terminal(&World::new(), &script, &["sandbox", "--", "sh", "-c", command]);
    assert_eq!(said.code, 5, "{said:?}");
}

#[test]
fn a_program_is_told_how_it_ended_and_what_held() {
    let world = World::new();
    let said = world.run(&["--json", "sandbox", "--", "sh", "-c", "echo out; exit 3"]);
    let told: Value = serde_json::from_str(said.err.trim()).unwrap();
    assert_eq!((said.code, said.out.as_str(), &told["exit_code"]), (3, "out\n", &json!(3)), "{said:?}");
    assert_eq!(told["tier"], json!("namespaces"));
    assert!(told["guarantees"].to_string().contains(r#""guarantee":"process_tree","holding":"held""#), "{told}");
    let said = world.run(&["sandbox", "--verbose", "--", "true"]);
    assert!(said.err.contains("✓ process tree: all its processes end with"), "{said:?}");
}
