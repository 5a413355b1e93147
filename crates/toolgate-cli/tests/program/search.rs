//! `toolgate search` and `toolgate index`: for people, for programs, in two processes, and killed while they index.

use serde_json::Value;

use crate::world::{PROGRAM, Said, World};

fn world() -> World {
    World::new()
        .file("src/retry.rs", "/// Waits longer after each failure.\npub fn backoff_delay(attempt: u32) -> u64 {\n    100 << attempt\n}\n")
        .file("src/main.rs", "fn main() {}\n")
}

#[test]
fn a_person_gets_places_that_a_terminal_opens_and_a_program_gets_json() {
    let world = world();
    let said = world.run(&["search", "how", "long", "to", "wait", "after", "failure"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.starts_with("src/retry.rs:1  backoff_delay\n"), "{}", said.out);
    assert!(said.out.contains("    3     100 << attempt"), "{}", said.out);
    let directory = world.workspace().canonicalize().unwrap().display().to_string();
    let from_elsewhere = ["-w", &directory, "search", "backoff_delay"];
    let elsewhere = Said::from(world.command(PROGRAM).current_dir("/").args(from_elsewhere).output().unwrap());
    assert!(elsewhere.out.starts_with(&format!("{directory}/src/retry.rs:1  backoff_delay\n")), "{elsewhere:?}");
    let both = "pub fn first_delay() -> u64 {\n    1\n}\n\npub fn second_delay() -> u64 {\n    2\n}\n";
    let said = World::new().file("src/delays.rs", both).run(&["search", "delay"]);
    assert!(said.out.contains("\n  also src/delays.rs:5  second_delay\n"), "{}", said.out);
    let json = world.run(&["--json", "search", "backoffDelay", "--lang", "rust", "--kind", "code"]).json();
    assert_eq!(json["payload"]["results"][0]["path"], Value::from("src/retry.rs"));
    let said = world.run(&["search", "backoffDelay", "--lang", "klingon"]);
    assert!(said.code != 0 && said.err.contains("klingon"), "{said:?}");
}

#[test]
fn the_index_can_be_shown_rebuilt_and_removed() {
    let world = world();
    assert!(world.run(&["index", "status"]).out.contains("empty"));
    let status = world.run(&["--json", "index", "rebuild"]).json();
    assert_eq!((&status["files"], &status["damaged"]), (&Value::from(3), &Value::from(false)), "{status}");
    assert!(world.run(&["doctor"]).out.contains("search index"));
    let removed = world.run(&["--json", "index", "drop"]).json();
    assert!(removed["removed_bytes"].as_u64().unwrap() > 0);
    assert!(world.run(&["index", "status"]).out.contains("empty"));
}

#[test]
fn programs_that_index_at_the_same_time_or_are_killed_meanwhile_leave_a_whole_index() {
    let world = (0..400).fold(world(), |world, number| {
        world.file(&format!("many/m{number}.rs"), format!("fn function_{number}() {{}}\n").repeat(200))
    });
    let search = || {
        world
            .command(PROGRAM)
            .args(["--json", "search", "function_7"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    for pause in [5, 40, 120, 300] {
        let mut killed = search();
        std::thread::sleep(std::time::Duration::from_millis(pause));
        // It may have ended by itself.
        let _ = killed.kill();
        killed.wait().unwrap();
    }
    let together = [search(), search(), search()].map(|child| child.wait_with_output().unwrap());
    for output in together {
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(reply["payload"]["results"][0]["path"], Value::from("many/m7.rs"), "{reply}");
        assert_eq!(reply["payload"]["coverage"]["indexed"], Value::from(403));
    }
    let status = world.run(&["--json", "index", "status"]).json();
    assert_eq!((&status["files"], &status["damaged"]), (&Value::from(403), &Value::from(false)));
}
