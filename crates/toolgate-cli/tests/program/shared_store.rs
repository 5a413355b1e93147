//! Many hosts with one store, as their users meet it: a real PostgreSQL server, and a world for each host.

#[path = "../../../toolgate-journal/tests/postgres/cluster.rs"]
pub(crate) mod cluster;

use postgres::{Client, NoTls};
use serde_json::{Value, json};
use toolgate_testkit::wait_until;

use self::cluster::Cluster;
use crate::inbox::{add, task, worker};
use crate::world::{PROGRAM, World};

const SCRIPT: &str = r#"
[[turns]]
calls = [{ tool = "shell", args = { command = "echo once >> log.txt; env" } }]

[[turns]]
text = "All done."
"#;

/// A host whose user's configuration names this store.
pub(crate) fn host(url: &str, script: &str) -> World {
    let world = World::new().file("script.toml", script);
    world.put(&world.user_config(), format!("[store]\nurl = '{url}'\nqueue = 'team'\n"));
    world
}

pub(crate) fn address(cluster: &Cluster) -> String {
    cluster.database("toolgate").replace("toolgate@", "toolgate:hunter2@")
}

#[test]
fn a_task_of_one_host_is_done_by_another_and_both_see_the_answer() {
    let cluster = Cluster::start();
    let url = address(&cluster);
    let (asks, does) = (host(&url, SCRIPT), host(&url, SCRIPT));
    let id = add(&asks, "write it down");
    let said = worker(&does, &["--once"]).wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).contains("All done."), "{said:?}");
    let done = task(&asks, &id);
    assert_eq!((&done["state"], &done["answer"]), (&json!("done"), &json!("All done.")));
    let run = done["runs"][0].as_str().unwrap();
    assert!(!asks.run(&["runs", "list"]).out.contains(run), "it was in another workspace");
    assert!(asks.run(&["runs", "list", "--everywhere"]).out.contains(run));
    assert!(does.run(&["runs", "list"]).out.contains(run));
}

#[test]
fn workers_of_two_hosts_never_take_the_same_task() {
    let cluster = Cluster::start();
    let url = address(&cluster);
    let script = "[[turns]]\ntext = \"done\"\n".repeat(6);
    let hosts = [host(&url, &script), host(&url, &script)];
    let ids: Vec<String> = (0..6).map(|number| add(&hosts[0], &format!("task {number}"))).collect();
    let workers = hosts.each_ref().map(|host| worker(host, &["--once"]));
    let said = workers.map(|one| String::from_utf8(one.wait_with_output().unwrap().stdout).unwrap()).concat();
    for id in ids {
        let task = task(&hosts[1], &id);
        assert_eq!((&task["state"], &task["attempts"]), (&json!("done"), &json!(1)), "{task}");
        assert_eq!(said.matches(&id).count(), 1, "{said}");
    }
}

#[test]
fn a_host_that_is_gone_leaves_its_task_to_another_which_is_told() {
    let cluster = Cluster::start();
    let url = address(&cluster);
    let held = SCRIPT.replace("env\"", "sleep 3600\"");
    let (dies, goes_on) = (host(&url, &held), host(&url, SCRIPT));
    let id = add(&dies, "write it down");
    let mut child = worker(&dies, &["--once"]);
    let mut store = Client::connect(&url, NoTls).unwrap();
    let begun = "SELECT 1 FROM events WHERE kind = 'tool_call.started'";
    wait_until("the call has begun", || {
        assert!(child.try_wait().unwrap().is_none(), "the worker ended before its call began");
        store.query(begun, &[]).is_ok_and(|rows| !rows.is_empty())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    store.execute("UPDATE inbox SET lease_until = 0", &[]).unwrap();
    worker(&goes_on, &["--once"]).wait_with_output().unwrap();
    let done = task(&dies, &id);
    assert_eq!((&done["state"], &done["attempts"]), (&json!("done"), &json!(2)), "{done}");
    let run = done["runs"][1].as_str().unwrap();
    let events = goes_on.read(&format!(".toolgate/runs/{run}/events.jsonl"));
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told = events.filter_map(|event| event["objective"].as_str().map(str::to_owned)).next().unwrap();
    assert!(told.contains("echo once") && told.contains("ran on another host"), "{told}");
}

#[test]
fn the_password_is_neither_shown_nor_recorded_nor_passed_on() {
    let cluster = Cluster::start();
    let world = host(&address(&cluster), SCRIPT).file("notes.txt", "the password is hunter2\n");
    add(&world, "write it down");
    let said = worker(&world, &["--once"]).wait_with_output().unwrap();
    let doctor = world.run(&["doctor"]);
    assert!(doctor.out.contains("PostgreSQL, database toolgate at /"), "{doctor:?}");
    let read = world.call("read", json!({ "path": "notes.txt" }));
    assert_eq!(read["payload"]["content"], "the password is ***REDACTED***\n");
    let passed_on = world.call("shell", json!({ "command": "env" }));
    assert_eq!(passed_on["ok"], true, "{passed_on}");
    let record = world.shell("cat .toolgate/runs/*/events.jsonl");
    for text in [format!("{said:?}"), format!("{doctor:?}"), passed_on.to_string(), record.out] {
        assert!(!text.contains("hunter2") && !text.contains("TOOLGATE_STORE"), "{text}");
    }
}

#[test]
fn calls_go_on_without_the_server_and_the_doctor_tells() {
    let cluster = Cluster::start();
    let url = address(&cluster);
    let world = host(&url, SCRIPT);
    cluster.kill();
    assert_eq!(world.call("read", json!({ "path": "hello.txt" }))["ok"], true);
    let doctor = world.run(&["doctor"]);
    assert!(doctor.out.contains("error connecting to server") && !doctor.out.contains("hunter2"), "{doctor:?}");
    cluster.run();
    assert_eq!(world.run(&["--json", "runs", "list"]).list().as_array().unwrap().len(), 1, "it has caught up");
}

#[test]
fn the_environment_names_the_store_too_and_a_wrong_address_is_told_without_repeating_it() {
    let cluster = Cluster::start();
    let world = World::new();
    let doctor = |url: &str| world.command(PROGRAM).env("TOOLGATE_STORE", url).arg("doctor").output().unwrap();
    let said = String::from_utf8(doctor(&address(&cluster)).stdout).unwrap();
    assert!(said.contains("PostgreSQL, database toolgate at /"), "{said}");
    let wrong = doctor("postgres://ada:hunter2@host:port/db");
    let said = String::from_utf8_lossy(&wrong.stdout).into_owned() + &String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("can't be read") && said.contains("TOOLGATE_STORE") && !said.contains("hunter2"), "{said}");
}
