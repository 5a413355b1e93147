//! The zygote's spare sandbox: it is used once, sees the machine as it is then, and isn't needed. All other attacks are made on
//! spare sandboxes as well.

use std::fs;
use std::os::fd::AsRawFd;

use super::scene::{Scene, finish, sh, spare_sandboxes, user};
use crate::testkit::{skip, wait_until};
use toolgate_contract::{NetworkAccess, Output};
use toolgate_sandbox::process::Child;

/// The PID of a sandbox's first process, as this process numbers it.
fn first_process(child: &Child) -> i32 {
    let descriptor = child.first_process().unwrap().as_raw_fd();
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap();
    about.lines().find_map(|line| line.strip_prefix("Pid:")).unwrap().trim().parse().unwrap()
}

/// The spare sandbox that waits now, made after a command.
fn waiting_spare(scene: &Scene) -> i32 {
    scene.wait_for_spare(&scene.profile());
    let spares = spare_sandboxes(&scene.path("zygote"));
    assert_eq!(spares.len(), 1, "{spares:?}");
    spares[0]
}

#[test]
fn a_spare_sandbox_becomes_that_of_the_next_command_and_of_no_other() {
    let scene = Scene::with_spares();
    let line = "ls /tmp /run; touch /tmp/left /run/left; readlink /proc/self/ns/*; sleep 1000";
    let mut running = Vec::new();
    let mut namespaces: Vec<String> = Vec::new();
    for _ in 0..3 {
        let spare = waiting_spare(&scene);
        let child = scene.runtime.block_on(scene.sandbox.launch(&scene.profile(), &sh(line))).unwrap();
        assert_eq!(first_process(&child), spare);
        let mut output = String::new();
        while !output.contains("uts:") {
            let Some(Output::Out(bytes)) = scene.runtime.block_on(child.output()) else { panic!("{output}") };
            output.push_str(&String::from_utf8(bytes).unwrap());
        }
        assert!(!output.contains("left"), "{output}");
        let own = ["cgroup:", "ipc:", "mnt:", "net:", "pid:", "user:", "uts:"];
        let of = |name: &str| output.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        namespaces.extend(own.map(of));
        running.push(child);
    }
    let count = namespaces.len();
    namespaces.sort();
    namespaces.dedup();
    assert_eq!(namespaces.len(), count, "every namespace is one sandbox's own: {namespaces:?}");
}

#[test]
fn a_spare_sandbox_that_was_killed_is_replaced() {
    let scene = Scene::with_spares();
    for _ in 0..2 {
        let spare = waiting_spare(&scene);
        rustix::process::kill_process(rustix::process::Pid::from_raw(spare).unwrap(), rustix::process::Signal::KILL)
            .unwrap();
        wait_until("it is gone", || !spare_sandboxes(&scene.path("zygote")).contains(&spare));
        let child = scene.runtime.block_on(scene.sandbox.launch(&scene.profile(), &sh("echo works"))).unwrap();
        assert_eq!(scene.runtime.block_on(finish(&child)).output, "works\n");
    }
}

#[test]
fn a_command_that_needs_another_root_or_network_does_not_get_the_spare_sandbox() {
    let scene = Scene::with_spares();
    let spare = waiting_spare(&scene);
    let shared = sh("echo works").network(NetworkAccess::Shared);
    let child = scene.runtime.block_on(scene.sandbox.launch(&scene.profile(), &shared)).unwrap();
    assert_ne!(first_process(&child), spare);
    assert_eq!(scene.runtime.block_on(finish(&child)).output, "works\n");
    let mut profile = scene.profile();
    profile.limits.temporary_bytes = Some(1 << 20);
    let line = "head -c 2M /dev/zero > /tmp/large || echo full";
    let child = scene.runtime.block_on(scene.sandbox.launch(&profile, &sh(line))).unwrap();
    assert_ne!(first_process(&child), spare);
    assert_eq!(scene.runtime.block_on(finish(&child)).output, "full\n");
}

/// What was mounted after the spare sandbox was made, and what was unmounted.
#[test]
fn mounts_of_the_machine_are_seen_as_they_are_when_the_command_starts() {
    if user() != 0 {
        return skip("not-root", "only root can mount something");
    }
    let scene = Scene::with_spares();
    let place = scene.workspace().join("mounted");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("beneath"), "").unwrap();
    let launch = |spare: i32| {
        let child = scene.runtime.block_on(scene.sandbox.launch(&scene.profile(), &sh("ls mounted"))).unwrap();
        assert_eq!(first_process(&child), spare);
        scene.runtime.block_on(finish(&child)).output
    };
    let spare = waiting_spare(&scene);
    rustix::mount::mount("none", &place, "tmpfs", rustix::mount::MountFlags::empty(), None).unwrap();
    fs::write(place.join("above"), "").unwrap();
    let mounted = launch(spare);
    let spare = waiting_spare(&scene);
    rustix::mount::unmount(&place, rustix::mount::UnmountFlags::DETACH).unwrap();
    assert_eq!((mounted.as_str(), launch(spare).as_str()), ("above\n", "beneath\n"));
}
