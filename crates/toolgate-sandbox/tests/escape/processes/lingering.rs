//! Outliving the call: daemons, children that hold the output, processes that ignore being asked, the host's own death.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use toolgate_contract::{ChildProcess, Output, Signal};
use toolgate_sandbox::process::{ChildExit, Sandbox, SandboxOptions, Tier};

use super::scene::{DIRECTORY, Scene, attack, finish, sh};

/// A length of sleep that nobody else sleeps, to be found by.
fn marker() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("1000.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The processes anywhere that have the marker in their command line.
fn marked(marker: &str) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let is_marked = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(marker.len()).any(|part| part == marker.as_bytes())
    };
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_marked).collect()
}

fn alive(marker: &str) -> usize {
    marked(marker).len()
}

/// Waits until nobody is alive any more; the patience is for a busy machine, not part of what is shown.
fn all_gone(marker: &str) -> bool {
    let patience = Instant::now() + Duration::from_secs(120);
    // Several looks: what was asked for before it was given up may still come, and go.
    let mut looks_without = 0;
    while looks_without < 10 && Instant::now() < patience {
        looks_without = if alive(marker) == 0 { looks_without + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(5));
    }
    looks_without == 10
}

fn kill_by_marker(marker: &str) {
    for pid in marked(marker) {
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL)
            .unwrap();
    }
}

attack! {
    fn a_daemon_does_not_outlive_its_command(scene) {
        let marker = marker();
        let line = format!("setsid nohup sleep {marker} >/dev/null 2>&1 </dev/null & sleep 0.1");
        assert!(scene.outside(&line).worked());
        assert_eq!(alive(&marker), 1, "it works without a sandbox");
        kill_by_marker(&marker);
        let inside = scene.inside(&line);
        assert!(inside.worked(), "{inside:?}");
        assert_eq!(alive(&marker), 0, "gone once the end is told");
    }
}

attack! {
    fn a_grandchild_that_holds_the_output_does_not_hold_the_reply(scene) {
        let marker = marker();
        let line = format!("(setsid sleep {marker} &) ; echo answered");
        let inside = scene.inside(&line);
        assert_eq!(inside.output, "answered\n", "the output ends, although somebody held it: {inside:?}");
        assert_eq!(alive(&marker), 0);
    }
}

attack! {
    fn what_ignores_requests_is_killed_with_all_its_children(scene) {
        let marker = marker();
        let line = format!("trap '' TERM INT HUP; setsid sh -c \"trap '' TERM; sleep {marker}; sleep {marker}\" & echo up; sleep {marker}");
        let child = scene.start(&line);
        scene.runtime.block_on(async {
            assert_eq!(child.output().await, Some(Output::Out(b"up\n".to_vec())));
            child.signal(Signal::Term).unwrap();
            let early = tokio::time::timeout(Duration::from_millis(200), child.wait()).await;
            assert!(early.is_err(), "it ignores the request: {early:?}");
            child.kill();
            let outcome = finish(&child).await;
            assert_eq!(outcome.ended, ChildExit::Signal(9));
        });
        assert_eq!(alive(&marker), 0);
    }
}

attack! {
    fn what_is_given_up_while_it_starts_leaves_nothing(scene) {
        let program = scene.path("zygote");
        let options = SandboxOptions { program: Some(program.clone()), tier: Some(scene.tier), warm: 0, ..SandboxOptions::default() };
        let marker = marker();
        scene.runtime.block_on(async {
            let sandbox = Sandbox::new(options).await.unwrap();
            // Given up in every phase of its start.
            for half_milliseconds in 0..30 {
                let (profile, spec) = (scene.profile(), sh(format!("sleep {marker}; true")));
                let patience = Duration::from_micros(500 * half_milliseconds);
                drop(tokio::time::timeout(patience, sandbox.launch(&profile, &spec)).await);
            }
            assert!(all_gone(&marker), "{} given up and yet running", alive(&marker));
        });
        // Its path is in the command line of the helper, whatever that has become.
        let helper = format!("{}\0/run/", program.display());
        assert!(all_gone(&helper), "{} helpers are left", alive(&helper));
    }
}

attack! {
    fn dropping_it_kills_it(scene) {
        let marker = marker();
        let child = scene.start(&format!("setsid sleep {marker} & sleep {marker}"));
        let _guard = scene.runtime.enter();
        drop(child);
        assert!(all_gone(&marker));
    }
}

attack! {
    fn nothing_outlives_a_killed_host(scene) {
        let marker = marker();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        fs::create_dir(scene.path("host")).unwrap();
        let entries = entries(scene);
        let mut host = std::process::Command::new("/proc/self/exe");
        host.args(["--exact", "processes::lingering::a_host_to_be_killed", "--include-ignored", "--nocapture"]);
        host.env("TOOLGATE_TEST_MARKER", &marker).env("TOOLGATE_TEST_TIER", scene.tier.name()).env(DIRECTORY, scene.path("host"));
        let mut host = host.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        let patience = Instant::now() + Duration::from_secs(20);
        while alive(&marker) < 2 {
            assert!(Instant::now() < patience, "the command never started");
            std::thread::sleep(Duration::from_millis(5));
        }
        host.kill().unwrap();
        host.wait().unwrap();
        assert!(all_gone(&marker), "{} still alive", alive(&marker));
        assert_eq!(groups_of(host.id()), Vec::<PathBuf>::new());
        assert_eq!(fs::read_to_string("/proc/self/mounts").unwrap(), mounts);
        assert_eq!(self::entries(scene), entries);
    }
}

/// The control groups of a host that are still there after a while.
fn groups_of(host: u32) -> Vec<PathBuf> {
    let name = format!("toolgate-{host}-");
    let all = || {
        let found = std::process::Command::new("find").args(["/sys/fs/cgroup", "-name", &format!("{name}*")]).output();
        String::from_utf8(found.unwrap().stdout).unwrap().lines().map(PathBuf::from).collect::<Vec<_>>()
    };
    let patience = Instant::now() + Duration::from_secs(20);
    while !all().is_empty() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    all()
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
