//! A person takes hold of a process from another terminal.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use toolgate_testkit::wait_for;

use crate::world::{PROGRAM, Said, World};

/// Types into `toolgate attach` on a terminal of its own, as a person would.
const PERSON: &str = include_str!("attach/person.py");

/// A call that waits for its command, which has a terminal.
fn hold(world: &World, command: &str) -> Child {
    let args = json!({ "command": command, "tty": true, "timeout_seconds": 300 }).to_string();
    world.command(PROGRAM).args(["--json", "call", "shell", &args]).stdout(Stdio::piped()).spawn().unwrap()
}

/// The processes that can be attached to, once there are some.
fn running(world: &World) -> Vec<Value> {
    wait_for("the command has started", || {
        let list = world.run(&["--json", "attach"]).list().as_array().unwrap().clone();
        (!list.is_empty()).then_some(list)
    })
}

/// The only socket in the directory of doors.
fn socket(world: &World) -> PathBuf {
    let directory = world.home().join(".local/state/toolgate/attach");
    let mode = std::fs::metadata(&directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "only its owner enters");
    let sockets: Vec<PathBuf> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(sockets.len(), 1, "{sockets:?}");
    sockets[0].clone()
}

fn end(mut child: Child) -> Value {
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.wait().unwrap();
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_person_types_lets_go_comes_back_and_ends_it() {
    let world = World::new();
    let call = hold(&world, "python3 -q");
    let list = running(&world);
    assert_eq!((&list[0]["command"], &list[0]["tty"]), (&json!("python3 -q"), &json!(true)));
    let said = Said::from(world.command("python3").args(["-c", PERSON, PROGRAM]).output().unwrap());
    assert_eq!((said.code, said.out.as_str()), (0, "detached, came back, ended\n"), "{said:?}");
    let reply = end(call);
    assert_eq!(reply["payload"]["exit_code"], json!(7), "{reply}");
    let events = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    assert_eq!(events.matches(r#""kind":"process.attached""#).count(), 2, "both times are on record");
    assert!(events.contains(r#""by":"ada""#));
    let said = world.run(&["attach"]);
    assert!(said.err.contains("no Toolgate of yours has a process running"), "{said:?}");
}

#[test]
fn a_command_cannot_come_to_the_door() {
    let world = World::new();
    let mut call = hold(&world, "sleep 200");
    running(&world);
    let socket = socket(&world);
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let line = format!(
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{}'); print('came in')\"",
        socket.display()
    );
    assert_eq!(world.shell(&line).out, "came in\n", "it works without a sandbox");
    let reply = world.call("shell", json!({ "command": line }));
    assert_ne!(reply["payload"]["exit_code"], json!(0), "{reply}");
    assert!(!reply["payload"]["stdout"].as_str().unwrap().contains("came in"), "{reply}");
    call.kill().unwrap();
    call.wait().unwrap();
    assert_eq!(world.run(&["--json", "attach"]).list(), json!([]));
    assert!(!socket.exists(), "what was left by one who was killed is cleared away");
}
