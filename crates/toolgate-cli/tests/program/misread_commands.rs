//! Commands that are read as ones that change nothing, and do. They can't, the reply says so, and it is on record.

use serde_json::{Value, json};

use crate::world::World;

/// A repository whose own configuration makes `git diff` run a program, which no reading of `git diff` could tell.
fn repository() -> World {
    let world = World::new().file("a.txt", "one\n").file("evil.sh", "#!/bin/sh\necho x > stolen\necho x >> a.txt\n");
    let said = world.shell(
        "chmod +x evil.sh && git init -q && git add a.txt && git -c user.name=a -c user.email=a@b commit -qm a \
         && echo two >> a.txt && git config diff.external ./evil.sh",
    );
    assert_eq!(said.code, 0, "{said:?}");
    world
}

fn names(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.workspace()).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != ".toolgate");
    names.sort();
    names
}

fn assert_refused(reply: &Value) {
    let changes = &reply["payload"]["changes"];
    let refused = changes["refused"].as_array().unwrap_or_else(|| panic!("{reply}"));
    assert!(refused.contains(&json!("stolen")) && refused.contains(&json!("a.txt")), "{reply}");
    assert!(changes["notes"][0].as_str().unwrap().contains("nothing was changed"), "{reply}");
    assert_eq!(reply["files_changed"].as_array().map_or(0, Vec::len), 0, "{reply}");
}

#[test]
fn a_misread_command_changes_nothing_and_is_told_and_recorded_as_one() {
    let world = repository();
    let before = names(&world);
    for args in [json!({}), json!({ "stdin": true, "yield_ms": 20_000 })] {
        let mut args = args;
        args["command"] = json!("git diff");
        assert_refused(&world.call("shell", args));
        assert_eq!((names(&world), world.read("a.txt").as_str()), (before.clone(), "one\ntwo\n"));
    }
    let said = world.run(&["doctor"]);
    assert!(said.out.contains("misread commands") && said.out.contains("`git diff` tried to change"), "{said:?}");
}

#[test]
fn hidden_files_that_git_must_not_see_change_nothing_of_that() {
    let world = repository().file(".env", "TOKEN=correct-horse");
    let before = names(&world);
    let status = world.call("shell", json!({ "command": "git status --short" }));
    assert!(!status["payload"]["stdout"].as_str().unwrap().contains(".env"), "{status}");
    assert_refused(&world.call("shell", json!({ "command": "git diff" })));
    assert_eq!((names(&world), world.read("a.txt").as_str()), (before, "one\ntwo\n"));
}

#[test]
fn what_really_reads_works_as_before_and_leaves_nothing_on_record() {
    let world = repository();
    assert_eq!(world.shell("git config --unset diff.external").code, 0);
    let index = || std::fs::read(world.workspace().join(".git/index")).unwrap();
    let before = index();
    for (command, expected) in [
        ("ls *.txt", "a.txt\nhello.txt\n"),
        ("git status --short a.txt", " M a.txt\n"),
        ("git log --format=%s", "a\n"),
        ("git diff --stat -- a.txt | tail -1", " 1 file changed, 1 insertion(+)\n"),
        ("grep -c o a.txt", "2\n"),
    ] {
        let reply = world.call("shell", json!({ "command": command }));
        assert_eq!(reply["payload"]["stdout"], json!(expected), "{command}: {reply}");
        assert!(reply["payload"]["changes"].is_null(), "{command}: {reply}");
    }
    assert_eq!(index(), before);
    assert!(!world.run(&["doctor"]).out.contains("misread"));
}
