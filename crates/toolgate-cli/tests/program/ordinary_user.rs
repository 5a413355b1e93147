//! Commands of an ordinary user, for whom modes count: whatever a command leaves is in the workspace, undoable, or named.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use toolgate_testkit::mcp::McpClient;
use toolgate_testkit::wait_until;

use crate::mcp::client;
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

/// Lets commands work in place from now on, or on overlays again.
fn set_overlay(world: &World, mode: &str) {
    world.put(&world.user_config(), format!("[commands]\noverlay = '{mode}'\n"));
}

fn undo_last(run: &impl Fn(&[&str]) -> Said) {
    let said = run(&["undo", "last"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.out.contains("Not undone"), "{said:?}");
}

#[test]
fn a_file_that_its_owner_closes_is_applied_and_opened_again() {
    let world = World::new().file("a", "a\n");
    let run = world.as_ordinary_user();
    let reply = shell(&run, "chmod 000 a; echo work > result.txt");
    assert_eq!(reply["payload"]["changes"]["paths"], json!(["~a", "+result.txt"]), "{reply}");
    assert_eq!(reply["payload"]["changes"]["notes"], Value::Null, "{reply}");
    assert_eq!((mode(&world.workspace().join("a")), world.read("result.txt").as_str()), (0, "work\n"));
    undo_last(&run);
    assert_eq!((mode(&world.workspace().join("a")), world.read("a").as_str()), (0o644, "a\n"));
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
fn a_quarantined_file_that_keeps_its_owner_out_can_be_looked_at_and_released() {
    let world = World::new();
    let run = world.as_ordinary_user();
    let reply = shell(&run, "echo '{}' > .mcp.json; chmod 000 .mcp.json");
    assert_eq!(reply["payload"]["changes"]["kept_aside"][0]["path"], ".mcp.json", "{reply}");
    let call = reply["tool_call_id"].as_str().unwrap();
    let shown = run(&["quarantine", "show", call, ".mcp.json"]);
    assert_eq!((shown.code, shown.out.as_str()), (0, "{}\n"), "{shown:?}");
    let released = run(&["quarantine", "release", call, ".mcp.json"]);
    assert_eq!(released.code, 0, "{released:?}");
    assert_eq!((mode(&world.workspace().join(".mcp.json")), world.read(".mcp.json").as_str()), (0, "{}\n"));
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

#[test]
fn directories_that_a_command_closes_in_place_are_recorded_and_keep_their_modes() {
    let world = World::new().file("dir/sub/f", "1\n").file("other/g", "2\n");
    set_overlay(&world, "off");
    let run = world.as_ordinary_user();
    let reply = shell(&run, "echo more >> dir/sub/f; chmod 444 dir; chmod 111 other; echo x > new");
    assert_eq!(reply["payload"]["changes"]["changed"], 3, "{reply}");
    assert_eq!([mode(&world.workspace().join("dir")), mode(&world.workspace().join("other"))], [0o444, 0o111]);
    undo_last(&run);
    assert_eq!([mode(&world.workspace().join("dir")), mode(&world.workspace().join("other"))], [0o755, 0o755]);
    assert_eq!(world.read("dir/sub/f"), "1\n");
}

/// What one command was found to have changed becomes the baseline of the others, so it is looked at again when the next
/// one starts.
#[test]
fn commands_start_while_another_one_in_place_keeps_its_owner_out_of_a_directory() {
    let waits = "until [ -e end ]; do sleep 0.02; done";
    let world = World::new().file("dir/f", "1\n").file("waits.sh", format!("touch begun; {waits}"));
    let world = world.file("closes.sh", format!("echo 2 > dir/f; chmod 640 dir; touch closed; {waits}"));
    let program = world.program_of_ordinary_user();
    let mut server = client::connect(program(), &["--preset", "full"], false, json!({}));
    server.initialize();
    let mut begin = |script: &str| {
        let started = server.call("shell", json!({ "command": format!("sh {script}"), "background": true }));
        started["structuredContent"]["process"].clone()
    };
    let appears = |name: &str| wait_until(name, || world.workspace().join(name).exists());
    let waiting = begin("waits.sh");
    appears("begun");
    let closing = begin("closes.sh");
    appears("closed");
    let third = server.call("shell", json!({ "command": "echo 3 > third", "stdin": true }));
    assert_eq!(third["structuredContent"]["exit_code"], 0, "{third}");
    assert_eq!((world.read("third").as_str(), mode(&world.workspace().join("dir"))), ("3\n", 0o640));
    world.put(&world.workspace().join("end"), "");
    for process in [waiting, closing] {
        let wait = json!({ "action": "wait", "process": process, "timeout_ms": 300_000 });
        wait_until("both commands end", || {
            server.call("process", wait.clone())["structuredContent"]["running"] == false
        });
    }
    assert_eq!((server.end(), mode(&world.workspace().join("dir"))), (0, 0o640));
}

/// What a command planted is left out of the baseline of the next one, also where nobody can look.
#[test]
fn commands_start_while_a_planted_file_is_in_a_directory_that_keeps_its_owner_out() {
    let plants =
        "mkdir -p dir/.vscode; echo 1 > dir/.vscode/tasks.json; touch begun; until [ -e end ]; do sleep 0.02; done";
    let world = World::new().file("plants.sh", plants);
    let program = world.program_of_ordinary_user();
    let mut server = client::connect(program(), &["--preset", "full"], false, json!({}));
    server.initialize();
    let started = server.call("shell", json!({ "command": "sh plants.sh", "background": true }));
    let process = started["structuredContent"]["process"].clone();
    wait_until("the command runs", || world.workspace().join("begun").exists());
    set_mode(&world.workspace().join("dir"), 0o444);
    let second = server.call("shell", json!({ "command": "echo 2 > second", "stdin": true }));
    assert_eq!(second["structuredContent"]["exit_code"], 0, "{second}");
    set_mode(&world.workspace().join("dir"), 0o755);
    world.put(&world.workspace().join("end"), "");
    let wait = json!({ "action": "wait", "process": process, "timeout_ms": 300_000 });
    let mut ended = json!({});
    wait_until("the command ends", || {
        ended = server.call("process", wait.clone());
        ended["structuredContent"]["running"] == false
    });
    assert_eq!(ended["structuredContent"]["changes"]["kept_aside"][0]["path"], "dir/.vscode/tasks.json", "{ended}");
    assert_eq!((server.end(), world.workspace().join("dir/.vscode/tasks.json").exists()), (0, false));
}

/// What a change left is stored for a command in place of another process, also where the change closed the directory.
#[test]
fn a_command_closes_a_directory_beside_one_in_place_of_another_process() {
    let waits = "touch begun; until [ -e end ]; do sleep 0.02; done";
    let world = World::new().file("dir/f", "1\n").file("waits.sh", waits);
    let program = world.program_of_ordinary_user();
    let mut server = client::connect(program(), &["--preset", "full"], false, json!({}));
    server.initialize();
    let started = server.call("shell", json!({ "command": "sh waits.sh", "background": true }));
    let process = started["structuredContent"]["process"].clone();
    wait_until("the command runs", || world.workspace().join("begun").exists());
    let run = |args: &[&str]| Said::from(program().args(args).output().unwrap());
    let reply = shell(&run, "echo 2 > dir/f; chmod 444 dir");
    assert_eq!(reply["payload"]["changes"]["paths"], json!(["~dir", "~dir/f"]), "{reply}");
    assert_eq!((world.read("dir/f").as_str(), mode(&world.workspace().join("dir"))), ("2\n", 0o444));
    undo_last(&run);
    assert_eq!((world.read("dir/f").as_str(), mode(&world.workspace().join("dir"))), ("1\n", 0o755));
    world.put(&world.workspace().join("end"), "");
    let wait = json!({ "action": "wait", "process": process, "timeout_ms": 300_000 });
    wait_until("the command ends", || server.call("process", wait.clone())["structuredContent"]["running"] == false);
    assert_eq!(server.end(), 0);
}

/// What a command is found to have changed is stored for one of another process, also where that one was found to have closed the
/// directory.
#[test]
fn a_command_starts_beside_one_of_another_process_that_was_found_to_have_closed_a_directory() {
    let waits = "touch begun-$1; until [ -e end-$1 ]; do sleep 0.02; done";
    let world = World::new().file("dir/f", "1\n").file("waits.sh", waits);
    let program = world.program_of_ordinary_user();
    let connect = || {
        let mut server = client::connect(program(), &["--preset", "full"], false, json!({}));
        server.initialize();
        server
    };
    let (mut one, mut other) = (connect(), connect());
    let begin = |server: &mut McpClient, name: &str| {
        let started = server.call("shell", json!({ "command": format!("sh waits.sh {name}"), "background": true }));
        wait_until("the command runs", || world.workspace().join(format!("begun-{name}")).exists());
        started["structuredContent"]["process"].clone()
    };
    let end = |server: &mut McpClient, name: &str, process: Value| {
        world.put(&world.workspace().join(format!("end-{name}")), "");
        let wait = json!({ "action": "wait", "process": process, "timeout_ms": 300_000 });
        wait_until("the command ends", || {
            server.call("process", wait.clone())["structuredContent"]["running"] == false
        });
    };
    let first = begin(&mut one, "first");
    world.put(&world.workspace().join("dir/f"), "2\n");
    let closing = begin(&mut other, "closing");
    set_mode(&world.workspace().join("dir"), 0);
    end(&mut other, "closing", closing);
    let second = begin(&mut other, "second");
    let third = one.call("shell", json!({ "command": "echo 3 > third", "stdin": true }));
    assert_eq!(third["structuredContent"]["exit_code"], 0, "{third}");
    assert_eq!((world.read("third").as_str(), mode(&world.workspace().join("dir"))), ("3\n", 0));
    end(&mut one, "first", first);
    end(&mut other, "second", second);
    assert_eq!([one.end(), other.end(), i32::try_from(mode(&world.workspace().join("dir"))).unwrap()], [0; 3]);
}

#[test]
fn a_closed_file_that_a_command_opens_and_changes_in_place_comes_back() {
    let world = World::new().file("closed", "old\n");
    set_overlay(&world, "off");
    let run = world.as_ordinary_user();
    set_mode(&world.workspace().join("closed"), 0);
    let reply = shell(&run, "true");
    assert_eq!(reply["payload"]["changes"]["paths"], Value::Null, "looking at it is no change: {reply}");
    let reply = shell(&run, "chmod 600 closed; echo new > closed");
    assert_eq!(reply["payload"]["changes"]["paths"], json!(["~closed"]), "{reply}");
    undo_last(&run);
    assert_eq!((mode(&world.workspace().join("closed")), world.read("closed").as_str()), (0, "old\n"));
}

#[test]
fn what_a_directory_holds_that_cannot_be_entered_is_hidden_from_commands() {
    let world = World::new().file("dir/sub/.env", "TOKEN=do-not-tell\n").file("a", "a\n");
    let world = world.file("leak.sh", "chmod 755 dir\ncat dir/sub/.env\necho b > a\n");
    let run = world.as_ordinary_user();
    set_mode(&world.workspace().join("dir"), 0o444);
    for overlay in ["on", "off"] {
        set_overlay(&world, overlay);
        let args = json!({ "command": "sh leak.sh" }).to_string();
        let said = run(&["--json", "call", "--approve", "shell", &args]);
        assert!(!said.out.contains("do-not-tell"), "{said:?}");
        assert_eq!(said.json()["payload"]["exit_code"], 0, "{said:?}");
        assert_eq!(world.read("a"), "b\n");
    }
}

#[test]
fn a_path_of_a_person_that_is_too_long_stops_no_command() {
    let world = World::new();
    let name = "n".repeat(200);
    let run = world.as_ordinary_user();
    let deep = format!("for i in $(seq 30); do mkdir {name}; cd {name}; done; echo TOKEN=do-not-tell > .env");
    assert_eq!(world.shell(&deep).code, 0);
    shell(&run, "echo work > result.txt");
    set_overlay(&world, "off");
    shell(&run, "echo more >> result.txt");
    assert_eq!(world.read("result.txt"), "work\nmore\n");
}
