//! Outliving the call: daemons, children that hold the output, processes that ignore being asked, the host's own death.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use toolgate_contract::{ChildProcess, Output, Signal};
use toolgate_sandbox::process::{ChildExit, Sandbox, SandboxOptions, Tier};

use super::scene::{DIRECTORY, Scene, attack, finish, sh};
use crate::testkit::{processes_with, unique_sleep, wait_until};

/// Waits until no process has these words in its command line.
fn wait_until_gone(words: &str) {
    wait_until(&format!("no process has `{words}` in its command line"), || processes_with(words).is_empty());
}

/// How many processes sleep for this long.
fn sleepers(duration: &str) -> usize {
    processes_with(&format!("sleep\0{duration}")).len()
}

fn kill_by_marker(marker: &str) {
    for pid in processes_with(marker) {
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL)
            .unwrap();
    }
}

attack! {
    fn a_daemon_does_not_outlive_its_command(scene) {
        let marker = unique_sleep();
        // The line ends once the daemon is on its own: it says so through the pipe.
        let daemon = format!("echo up; exec sleep {marker} >/dev/null 2>&1 </dev/null");
        let line = format!("(setsid nohup sh -c '{daemon}' 2>/dev/null &) | read up");
        assert!(scene.outside(&line).worked());
        // While it executes `sleep`, its command line is empty for a moment.
        wait_until("the daemon works without a sandbox", || sleepers(&marker) == 1);
        kill_by_marker(&marker);
        let inside = scene.inside(&line);
        assert!(inside.worked(), "{inside:?}");
        assert_eq!(processes_with(&marker), [] as [i32; 0], "gone once the end is told");
    }
}

attack! {
    fn a_grandchild_that_holds_the_output_does_not_hold_the_reply(scene) {
        let marker = unique_sleep();
        let line = format!("(setsid sleep {marker} &) ; echo answered");
        let inside = scene.inside(&line);
        assert_eq!(inside.output, "answered\n", "the output ends, although somebody held it: {inside:?}");
        assert_eq!(processes_with(&marker), [] as [i32; 0]);
    }
}

attack! {
    fn what_ignores_requests_is_killed_with_all_its_children(scene) {
        let marker = unique_sleep();
        let line = format!(
            "trap '' TERM INT HUP; trap 'echo still here' USR1; \
             setsid sh -c \"trap '' TERM; sleep {marker}; sleep {marker}\" & sleep {marker} & \
             echo up; wait; while :; do sleep {marker}; done"
        );
        let child = scene.start(&line);
        scene.runtime.block_on(async {
            assert_eq!(child.output().await, Some(Output::Out(b"up\n".to_vec())));
            child.signal(Signal::Term).unwrap();
            child.signal(Signal::Usr1).unwrap();
            let answer = child.output().await;
            assert_eq!(answer, Some(Output::Out(b"still here\n".to_vec())), "it ignores the request");
            child.kill();
            let outcome = finish(&child).await;
            assert_eq!(outcome.ended, ChildExit::Signal(9));
        });
        assert_eq!(processes_with(&marker), [] as [i32; 0]);
    }
}

attack! {
    fn what_is_given_up_while_it_starts_leaves_nothing(scene) {
        let program = scene.path("zygote");
        let options = SandboxOptions { program: Some(program.clone()), tier: Some(scene.tier), warm: 0, ..SandboxOptions::default() };
        let marker = unique_sleep();
        scene.runtime.block_on(async {
            let sandbox = Sandbox::new(options).await.unwrap();
            // Given up in every phase of its start.
            for half_milliseconds in 0..30 {
                let (profile, spec) = (scene.profile(), sh(format!("sleep {marker}; true")));
                let patience = Duration::from_micros(500 * half_milliseconds);
                drop(tokio::time::timeout(patience, sandbox.launch(&profile, &spec)).await);
            }
            // The helper takes one request after the other: what is answered now comes after all that was given up.
            let child = sandbox.launch(&scene.profile(), &sh("true")).await.unwrap();
            assert_eq!(finish(&child).await.ended, ChildExit::Code(0));
            wait_until_gone(&marker);
        });
        // Its path is in the command line of the helper, whatever that has become.
        wait_until_gone(&format!("{}\0/run/", program.display()));
        assert_eq!(processes_with(&marker), [] as [i32; 0], "without the helper nothing more can come");
    }
}

attack! {
    fn dropping_it_kills_it(scene) {
        let marker = unique_sleep();
        let child = scene.start(&format!("setsid sleep {marker} & sleep {marker}"));
        wait_until("both of its processes run", || sleepers(&marker) == 2);
        let _guard = scene.runtime.enter();
        drop(child);
        wait_until_gone(&marker);
    }
}

attack! {
    fn nothing_outlives_a_killed_host(scene) {
        let marker = unique_sleep();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        fs::create_dir(scene.path("host")).unwrap();
        let entries = entries(scene);
        let mut host = std::process::Command::new("/proc/self/exe");
        host.args(["--exact", "processes::lingering::a_host_to_be_killed", "--include-ignored", "--nocapture"]);
        host.env("TOOLGATE_TEST_MARKER", &marker).env("TOOLGATE_TEST_TIER", scene.tier.name()).env(DIRECTORY, scene.path("host"));
        let mut host = host.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        wait_until("both processes of the command run", || sleepers(&marker) == 2);
        host.kill().unwrap();
        host.wait().unwrap();
        wait_until_gone(&marker);
        wait_until("its control groups are removed", || control_groups_of(host.id()).is_empty());
        assert_eq!(fs::read_to_string("/proc/self/mounts").unwrap(), mounts);
        assert_eq!(self::entries(scene), entries);
    }
}

/// The control groups of a host.
fn control_groups_of(host: u32) -> Vec<PathBuf> {
    let name = format!("toolgate-{host}-*");
    let found = std::process::Command::new("find").args(["/sys/fs/cgroup", "-name", &name]).output();
    String::from_utf8(found.unwrap().stdout).unwrap().lines().map(PathBuf::from).collect()
}

fn entries(scene: &Scene) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(scene.path(""))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into())
        .collect();
    names.sort();
    names
}

/// Not a test but the host that another test kills.
#[test]
#[ignore = "started by another test"]
fn a_host_to_be_killed() {
    let (Ok(marker), Ok(tier)) = (std::env::var("TOOLGATE_TEST_MARKER"), std::env::var("TOOLGATE_TEST_TIER")) else {
        return;
    };
    let tiers = [Tier::Namespaces, Tier::Bubblewrap, Tier::Landlock];
    let scene = Scene::new(tiers.into_iter().find(|one| one.name() == tier).unwrap());
    let child = scene.start(&format!("setsid sleep {marker} & trap '' TERM; sleep {marker}; sleep {marker}"));
    scene.runtime.block_on(child.wait()).unwrap();
}
