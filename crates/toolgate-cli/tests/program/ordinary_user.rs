//! Commands of an ordinary user, for whom modes count: whatever a command leaves is in the workspace, undoable, or named.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::world::{Said, World};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn shell(run: &impl Fn(&[&str]) -> Said, command: &str) -> Value {
    let said = run(&["--json", "call", "--approve", "shell", &json!({ "command": command }).to_string()]);
    let reply = said.json();
    assert_eq!(reply["payload"]["exit_code"], 0, "{said:?}");
    reply
}

fn undo_last(run: &impl Fn(&[&str]) -> Said) {
    let said = run(&["undo", "last"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.out.contains("Not undone"), "{said:?}");
}

#[test]
fn a_directory_that_keeps_its_owner_out_costs_nothing() {
    let world = World::new();
    let run = world.as_ordinary_user();
    let reply = shell(&run, "mkdir -p d/e; echo in > d/e/f; chmod 000 d/e d; echo work > result.txt");
    assert_eq!(reply["payload"]["changes"]["created"], 4, "{reply}");
    assert_eq!(world.read("result.txt"), "work\n");
    assert_eq!([mode(&world.workspace().join("d")), mode(&world.workspace().join("d/e"))], [0, 0]);
    assert_eq!(world.read("d/e/f"), "in\n");
    undo_last(&run);
    assert!(!world.workspace().join("d").exists() && !world.workspace().join("result.txt").exists());
}

#[test]
fn read_only_trees_are_applied_with_their_modes() {
    let world = World::new();
    let run = world.as_ordinary_user();
    shell(&run, "mkdir -p gm/sub; echo 1 > gm/f; echo 2 > gm/sub/g; chmod -R a-w gm; echo keep > work.txt");
    shell(&run, "cp -a gm copy");
    for directory in ["gm", "gm/sub", "copy", "copy/sub"] {
        assert_eq!(mode(&world.workspace().join(directory)), 0o555, "{directory}");
    }
    assert_eq!([world.read("gm/f"), world.read("copy/sub/g"), world.read("work.txt")], ["1\n", "2\n", "keep\n"]);
    undo_last(&run);
    assert!(!world.workspace().join("copy").exists());
    shell(&run, "chmod -R u+w gm; echo more >> gm/sub/g; chmod a-w gm/f");
    assert_eq!([mode(&world.workspace().join("gm")), mode(&world.workspace().join("gm/sub"))], [0o755, 0o755]);
    assert_eq!(world.read("gm/sub/g"), "2\nmore\n");
    undo_last(&run);
    assert_eq!([mode(&world.workspace().join("gm")), mode(&world.workspace().join("gm/sub"))], [0o555, 0o555]);
    assert_eq!(world.read("gm/sub/g"), "2\n");
}

#[test]
fn a_file_that_its_owner_cannot_read_is_removed_and_brought_back() {
    let world = World::new().file("closed", "secret of mine\n").file("kept", "x");
    set_mode(&world.workspace().join("closed"), 0o000);
    let run = world.as_ordinary_user();
    let reply = shell(&run, "rm -f closed; echo y > kept");
    assert_eq!(reply["payload"]["changes"]["deleted"], 1, "{reply}");
    assert_eq!(reply["payload"]["changes"]["notes"], Value::Null, "{reply}");
    assert!(!world.workspace().join("closed").exists());
    undo_last(&run);
    assert_eq!([world.read("closed"), world.read("kept")], ["secret of mine\n", "x"]);
    assert_eq!(mode(&world.workspace().join("closed")), 0);
}

#[test]
fn a_path_that_is_too_long_costs_only_itself() {
    let world = World::new();
    let run = world.as_ordinary_user();
    let name = "n".repeat(200);
    let deep = format!("for i in $(seq 30); do mkdir {name}; cd {name}; done; echo lost > file; cd /; true");
    let reply = shell(&run, &format!("(cd . && {deep}); echo work > result.txt"));
    assert_eq!(world.read("result.txt"), "work\n");
    let quarantined = &reply["payload"]["changes"]["kept_aside"][0];
    assert!(quarantined["path"].as_str().unwrap().starts_with(&name), "{reply}");
    let call = reply["tool_call_id"].as_str().unwrap();
    let kept = fs::read_dir(world.workspace().join(".toolgate/quarantine").join(call)).unwrap().count();
    assert!(kept >= 2, "the list and the directory with all that is in it");
    let listed = run(&["quarantine", "list"]);
    assert!(listed.out.contains(&name[..50]), "{listed:?}");
    shell(&run, "echo again > result.txt");
}
