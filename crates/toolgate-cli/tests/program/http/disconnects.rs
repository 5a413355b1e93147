//! Clients that leave, and servers that stop: nothing goes on behind their backs, and everything is on record.

use serde_json::{Value, json};
use toolgate_testkit::{processes_with, unique_sleep, wait_until};

use super::client::Client;
use super::server::Server;

/// Whether a process sleeps for this long.
fn runs(marker: &str) -> bool {
    !processes_with(marker).is_empty()
}

/// A call of a command that has begun and made a file, and what the command is found by.
fn sleeping(client: &mut Client) -> String {
    let marker = unique_sleep();
    let call = json!({ "name": "shell", "args": { "command": format!("echo new > made.txt; sleep {marker}") } });
    client.send("POST", "/v1/calls", &[], Some(&call));
    // Not only its shell, which has the same words in its command line.
    wait_until("the command runs", || runs(&format!("sleep\0{marker}")));
    marker
}

fn ending(server: &Server, run: &str) -> Option<Value> {
    server.events(run).into_iter().find(|event| event["kind"] == "tool_call.failed")
}

#[test]
fn a_client_that_leaves_takes_its_call_and_its_processes_along() {
    let server = Server::start();
    let (session, mut client) = server.session(&json!({}));
    let marker = sleeping(&mut client);
    client.leave();
    wait_until("the process ends", || !runs(&marker));
    let run = session["run"].as_str().unwrap();
    wait_until("the end is on record", || ending(&server, run).is_some());
    let end = ending(&server, run).unwrap();
    assert_eq!(end["error"]["code"], "cancelled");
    assert_eq!(end["files_changed"], json!(["made.txt"]), "what it did until then: {end}");
    assert_eq!(end["commands_run"], json!([format!("echo new > made.txt; sleep {marker}")]), "{end}");
    let kinds: Vec<Value> = server.events(run).into_iter().map(|event| event["kind"].clone()).collect();
    let position = |kind: &str| kinds.iter().position(|one| one == kind).unwrap_or_else(|| panic!("{kind}: {kinds:?}"));
    assert!(position("files.changing") < position("tool_call.failed"), "{kinds:?}");
    assert_eq!(std::fs::read_to_string(server.world.workspace().join("made.txt")).unwrap(), "new\n");
}

#[test]
fn a_call_can_be_cancelled_by_its_id() {
    let server = Server::start();
    let (_, mut client) = server.session(&json!({ "id": "mine" }));
    let marker = unique_sleep();
    let command = format!("sleep {marker}");
    let call = json!({ "name": "shell", "args": { "command": command }, "tool_call_id": "call-1" });
    client.send("POST", "/v1/calls", &[], Some(&call));
    wait_until("the command runs", || runs(&marker));
    let twice = server.owner().request("POST", "/v1/calls", &[("X-Toolgate-Session", "mine")], Some(&call));
    assert_eq!((twice.status, twice.code().as_str()), (409, "duplicate_call"));
    assert_eq!(server.owner().delete("/v1/calls/call-1").status, 404, "it isn't a call of the owner's own session");
    let cancel = server.owner().request("DELETE", "/v1/calls/call-1", &[("X-Toolgate-Session", "mine")], None);
    assert_eq!(cancel.status, 202);
    assert_eq!(client.receive().json()["error"]["code"], "cancelled");
    wait_until("the process ends", || !runs(&marker));
}

#[test]
fn a_server_that_is_told_to_stop_ends_its_calls_and_finishes_the_record() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::start();
        let (session, mut client) = server.session(&json!({}));
        let marker = sleeping(&mut client);
        server.signal(signal);
        let reply = client.receive().json();
        assert_eq!(reply["error"]["code"], "cancelled", "the client is told: {reply}");
        assert!(server.wait().success(), "{signal}");
        assert!(!runs(&marker));
        let run = session["run"].as_str().unwrap();
        let events =
            std::fs::read_to_string(server.world.workspace().join(format!(".toolgate/runs/{run}/events.jsonl")))
                .unwrap();
        assert!(events.lines().last().unwrap().contains("run.ended"), "{events}");
        let verified = server.world.run(&["audit", "verify", run]);
        assert_eq!(verified.code, 0, "{verified:?}");
    }
}

#[test]
fn a_client_that_leaves_while_it_waits_for_approval_withdraws_its_ask() {
    let server = Server::start();
    let (_, mut client) = server.session(&json!({ "wait_seconds": 600 }));
    client.send("POST", "/v1/calls", &[], Some(&json!({ "name": "delete", "args": { "path": "hello.txt" } })));
    let asks = || server.owner().get("/v1/approvals").json()["approvals"].as_array().unwrap().len();
    wait_until("it asks", || asks() == 1);
    client.leave();
    wait_until("it is withdrawn", || asks() == 0);
}

#[test]
fn processes_outlive_their_calls_and_end_with_their_session() {
    let server = Server::start();
    let (session, mut client) = server.session(&json!({}));
    let marker = unique_sleep();
    let started = client.call("shell", json!({ "command": format!("sleep {marker}"), "background": true }));
    assert_eq!(started["payload"]["running"], json!(true), "{started}");
    let process = started["payload"]["process"].clone();
    let read = client.call("process", json!({ "action": "read", "process": process }));
    assert_eq!(read["payload"]["running"], json!(true), "{read}");
    let (_, mut other) = server.session(&json!({}));
    let refused = other.call("process", json!({ "action": "stop", "process": process }));
    assert_eq!(refused["error"]["code"], json!("not_found"), "{refused}");
    wait_until("it runs", || runs(&marker));
    let id = session["id"].as_str().unwrap();
    assert_eq!(server.owner().delete(&format!("/v1/sessions/{id}")).status, 204);
    assert!(!runs(&marker), "gone once the server says so");
    let events = server.events(session["run"].as_str().unwrap());
    assert!(events.iter().any(|event| event["kind"] == "process.ended"), "{events:?}");
}

#[test]
fn a_server_that_is_killed_leaves_no_process_mount_or_file() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mut server = Server::start();
    let (session, mut client) = server.session(&json!({}));
    let run = server.world.workspace().join(".toolgate/runs").join(session["run"].as_str().unwrap());
    let marker = unique_sleep();
    let command =
        format!("setsid nohup sleep {marker} & trap '' TERM HUP; seq 1 200000; sleep {marker}; sleep {marker}");
    for tty in [false, true] {
        let started = client.call("shell", json!({ "command": command, "background": true, "tty": tty }));
        let process = started["payload"]["process"].clone();
        let wait =
            json!({ "action": "wait", "process": process, "offset": 0, "pattern": "200000", "timeout_ms": 120_000 });
        assert_eq!(client.call("process", wait)["payload"]["heard"], json!("pattern"));
    }
    wait_until("it runs", || runs(&marker));
    server.signal("KILL");
    server.wait();
    wait_until("everything ends", || !runs(&marker));
    assert_eq!(std::fs::read_to_string("/proc/self/mounts").unwrap(), mounts);
    let recorded = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    for directory in ["artifacts", "sandbox"] {
        let left = std::fs::read_dir(run.join(directory)).unwrap().map(|entry| entry.unwrap().file_name());
        // What a reply was too short for stays, and is on record.
        let is_recorded = |name: &str| name.starts_with("art_") && recorded.contains(name.trim_end_matches(".json"));
        let left: Vec<_> = left.filter(|name| !is_recorded(&name.to_string_lossy())).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
