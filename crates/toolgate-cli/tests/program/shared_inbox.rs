//! Workers of many hosts whose server restarts or is gone, and whose clocks are wrong. What is waited for is what a worker
//! says or what is on record; no step waits for a time.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};

use serde_json::json;
use toolgate_testkit::wait_until;

use crate::inbox::{add, start_worker, task, worker};
use crate::inbox_killed::{REST, approve, is_on_record, wait_beside};
use crate::shared_store::cluster::Cluster;
use crate::shared_store::{address, host};
use crate::world::{PROGRAM, World};

/// What a worker says when the inbox fails, and when it works again.
const FAILS: &str = "The inbox can't be used";
const WORKS_AGAIN: &str = "The inbox can be used again";

/// A worker whose warnings are read while it runs.
struct WatchedWorker {
    child: Child,
    warnings: Arc<Mutex<String>>,
}

impl WatchedWorker {
    fn new(mut child: Child) -> Self {
        let (warnings, errors) = (Arc::new(Mutex::new(String::new())), child.stderr.take().unwrap());
        let heard = Arc::clone(&warnings);
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                heard.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        Self { child, warnings }
    }

    fn warnings(&self) -> String {
        self.warnings.lock().unwrap().clone()
    }

    fn wait_for(&mut self, words: &str) {
        let warnings = Arc::clone(&self.warnings);
        wait_beside(&mut self.child, words, || warnings.lock().unwrap().contains(words));
    }

    fn ended(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    fn assert_warned_once(&self) {
        let said = self.warnings();
        assert_eq!((said.matches(FAILS).count(), said.matches(WORKS_AGAIN).count()), (1, 1), "{said}");
    }
}

/// A host on which a task has begun and waits for an approval.
fn begun(url: &str, command: impl Fn(&World) -> Command) -> (World, String, WatchedWorker) {
    let delete = r#"calls = [{ tool = "delete", args = { path = "hello.txt" } }]"#;
    let world = host(url, &format!("[[turns]]\n{delete}\n{REST}"));
    let config = std::fs::read_to_string(world.user_config()).unwrap();
    world.put(&world.user_config(), config + "\n[approvals]\nwait_seconds = 3600\n");
    let id = add(&world, "delete it");
    let mut child = start_worker(&world, command(&world), 3600, &["--once"]);
    wait_beside(&mut child, "it asks", || is_on_record(&world, "approval_required"));
    (world, id, WatchedWorker::new(child))
}

/// Approves what the worker waits for, and expects it to finish at its first attempt.
fn assert_finished(world: &World, id: &str, mut worker: WatchedWorker, command: impl Fn(&World) -> Command) {
    let approve = || command(world).args(["approvals", "approve", "last"]).output().unwrap().status.success();
    wait_beside(&mut worker.child, "it is approved", approve);
    assert!(worker.ended().success(), "{}", worker.warnings());
    let task = task(world, id);
    assert_eq!((&task["state"], &task["answer"]), (&json!("done"), &json!("All done.")), "{task}");
    assert_eq!((&task["attempts"], task["runs"].as_array().unwrap().len()), (&json!(1), 1), "{task}");
}

fn as_it_is(world: &World) -> Command {
    world.command(PROGRAM)
}

#[test]
fn a_restart_of_the_server_in_the_middle_of_a_task_stops_nothing() {
    let cluster = Cluster::start();
    let (world, id, mut worker) = begun(&address(&cluster), as_it_is);
    cluster.kill();
    worker.wait_for(FAILS);
    cluster.run();
    worker.wait_for(WORKS_AGAIN);
    worker.assert_warned_once();
    assert_finished(&world, &id, worker, as_it_is);
}

/// The server is gone when the answer has to be stored, and comes back later.
#[test]
fn an_answer_waits_for_the_server() {
    let cluster = Cluster::start();
    let (world, id, mut worker) = begun(&address(&cluster), as_it_is);
    cluster.kill();
    approve(&world, &mut worker.child);
    wait_beside(&mut worker.child, "the agent's end", || is_on_record(&world, "agent.ended"));
    worker.wait_for(FAILS);
    cluster.run();
    assert!(worker.ended().success(), "{}", worker.warnings());
    worker.assert_warned_once();
    let task = task(&world, &id);
    assert_eq!((&task["state"], &task["attempts"]), (&json!("done"), &json!(1)), "{task}");
}

#[test]
fn working_once_without_a_server_ends_with_an_error_of_its_own_and_one_warning() {
    let cluster = Cluster::start();
    let world = host(&address(&cluster), REST);
    cluster.kill();
    let ended = worker(&world, &["--once", "--retry-seconds", "2"]).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(5), "{said}");
    assert_eq!((said.matches(FAILS).count(), said.matches(WORKS_AGAIN).count()), (1, 0), "{said}");
    assert!(said.contains("isn't available") && !said.contains("hunter2"), "{said}");
}

/// The server is connected and says nothing: its host is frozen, or a firewall drops what it sends.
#[test]
fn working_once_with_a_silent_server_ends_with_an_error_of_its_own() {
    let cluster = Cluster::start();
    let world = host(&format!("{}&connect_timeout=1", address(&cluster)), REST);
    let _frozen = cluster.freeze();
    let ended = worker(&world, &["--once", "--retry-seconds", "2"]).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(5), "{said}");
    assert!(said.contains("didn't answer within") && !said.contains("hunter2"), "{said}");
}

#[test]
fn a_worker_without_a_server_keeps_trying_until_it_is_back() {
    let cluster = Cluster::start();
    let world = host(&address(&cluster), REST);
    let id = add(&world, "say it");
    cluster.kill();
    let mut worker = WatchedWorker::new(worker(&world, &[]));
    worker.wait_for(FAILS);
    cluster.run();
    worker.wait_for(WORKS_AGAIN);
    wait_until("the task is done", || task(&world, &id)["state"] == "done");
    worker.assert_warned_once();
    worker.child.kill().unwrap();
    worker.ended();
}

/// The program on a host whose clock is wrong by this much.
fn with_clock_off_by(hours: &'static str) -> impl Fn(&World) -> Command {
    move |world| {
        let mut command = world.command("faketime");
        command.args(["--exclude-monotonic", "-f", hours, PROGRAM]);
        command
    }
}

/// Lets another host look for tasks, and expects it to find none.
fn assert_takes_nothing(url: &str, command: impl Fn(&World) -> Command) {
    let other = host(url, "turns = []\n");
    let ended = start_worker(&other, command(&other), 3600, &["--once"]).wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stdout.is_empty() && ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn a_host_whose_clock_is_ahead_takes_no_task_from_a_living_worker() {
    let cluster = Cluster::start();
    let url = address(&cluster);
    let (world, id, worker) = begun(&url, as_it_is);
    assert_takes_nothing(&url, with_clock_off_by("+5h"));
    assert_finished(&world, &id, worker, as_it_is);
}

#[test]
fn a_host_whose_clock_is_behind_loses_no_task() {
    let cluster = Cluster::start();
    let url = address(&cluster);
    let (world, id, worker) = begun(&url, with_clock_off_by("-5h"));
    assert_takes_nothing(&url, as_it_is);
    // The host's clock is wrong for whoever approves there, too.
    assert_finished(&world, &id, worker, with_clock_off_by("-5h"));
}
