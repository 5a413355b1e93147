//! `toolgate trust`: it shows what it trusts, and asks.

use serde_json::json;

use crate::terminal::on_a_terminal;
use crate::world::World;

const POLICY: &str = "preset = 'full'\n\n[[rules]]\ndecision = 'deny'\npath = 'secret.txt'\n";

fn world() -> World {
    let world = World::new().file("toolgate.toml", POLICY).file("AGENTS.md", "Be brief.\n");
    world.file(".claude/skills/review/SKILL.md", "---\nname: review\ndescription: Reviews.\n---\nLook.\n")
}

/// Whether the looser preset of the file counts.
fn is_trusted(world: &World) -> bool {
    world.run(&["policy", "check", "--tool", "delete", r#"{"path":"hello.txt"}"#]).code == 0
}

#[test]
fn the_person_sees_what_takes_effect_and_decides() {
    let world = world();
    let script = [
        "wait toolgate.toml",
        "wait sha256 ",
        "wait preset = 'full'",
        "wait path = 'secret.txt'",
        "wait takes effect once trusted: toolgate.toml: the preset `full`",
        "wait takes effect once trusted: the skill .claude/skills/review/SKILL.md",
        "wait takes effect once trusted: the instructions for agents in AGENTS.md",
        "wait Trust this? [y/N]",
    ];
    let refused = on_a_terminal(&world, &[&script[..], &["type n", "wait Nothing was trusted."]].concat(), &["trust"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(!is_trusted(&world));
    let agreed = on_a_terminal(&world, &[&script[..], &["type y", "wait Trusted "]].concat(), &["trust"]);
    assert_eq!(agreed.code, 0, "{agreed:?}");
    assert!(is_trusted(&world));
}

#[test]
fn a_changed_file_is_shown_as_a_difference() {
    let world = world();
    assert_eq!(world.run(&["trust", "--yes"]).code, 0);
    world.put(&world.workspace().join("toolgate.toml"), POLICY.replace("secret.txt", "other.txt"));
    assert!(!is_trusted(&world));
    let shown = world.run(&["trust", "--yes"]);
    for line in ["changed since you last trusted it", "-path = 'secret.txt'", "+path = 'other.txt'"] {
        assert!(shown.out.contains(line), "{line}: {shown:?}");
    }
    assert!(is_trusted(&world));
    let again = world.run(&["trust", "--yes"]);
    assert!(again.out.contains("as you last trusted it"), "{again:?}");
}

#[test]
fn without_a_terminal_nothing_is_trusted_unasked() {
    let world = world();
    let refused = world.run(&["trust"]);
    assert!(refused.code == 2 && refused.err.contains("toolgate trust --yes"), "{refused:?}");
    assert!(refused.out.contains("preset = 'full'"), "it is shown all the same: {refused:?}");
    let shown = world.run(&["--json", "trust"]);
    let offered = shown.json();
    assert_eq!((shown.code, &offered["trusted"], &offered["content"]), (4, &json!(false), &json!(POLICY)));
    assert_eq!(offered["skills"], json!([".claude/skills/review/SKILL.md"]), "{offered}");
    assert!(!is_trusted(&world));
    assert_eq!(world.run(&["--json", "trust", "--yes"]).json()["trusted"], true);
    assert!(is_trusted(&world));
}
