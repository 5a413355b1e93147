//! Using up the machine: processes, memory, disk.

use toolgate_contract::{ChildProcess, Guarantee, GuaranteeLevel, Output, Streams};
use toolgate_sandbox::process::{ChildExit, ResourceLimits, Sandbox, SandboxOptions, Tier};

use super::scene::{Scene, attack, sh, user};

/// Root is exempt from the limit by user, and without a user namespace that limit counts all that the user runs. Only a
/// namespace of our own making limits for everybody.
fn limits_processes(scene: &Scene) -> bool {
    match scene.tier {
        Tier::Namespaces => true,
        Tier::Bubblewrap => user() != 0,
        Tier::Landlock | Tier::Open => false,
    }
}

attack! {
    fn processes_and_threads_are_limited(scene) {
        let line = format!("{} threads 400", scene.attacker());
        assert!(scene.outside(&line).worked(), "it works without a sandbox");
        let inside = scene.inside(&line);
        let holding = scene.start("true").enforcement().holding(Guarantee::Resources).unwrap();
        let limited = limits_processes(scene);
        assert_eq!(inside.worked(), !limited, "{inside:?}");
        assert_eq!(holding, if limited { GuaranteeLevel::Held } else { GuaranteeLevel::Partly });
    }
}

attack! {
    fn a_fork_bomb_stays_inside(scene) {
        if !limits_processes(scene) {
            return;
        }
        let child = scene.start("bomb() { bomb | bomb & }; bomb; exec sleep 1000");
        scene.runtime.block_on(async {
            // It goes on until the limit is reached: then shells complain that they can't fork.
            let mut complaints = String::new();
            while !complaints.contains("fork") {
                match child.output().await.expect("the bomb reaches the limit before it ends") {
                    Output::Err(bytes) => complaints += &String::from_utf8_lossy(&bytes),
                    Output::Out(_) => {}
                }
            }
            child.kill();
            child.wait().await.unwrap();
        });
        let after = scene.inside("echo well");
        assert_eq!(after.output, "well\n", "{after:?}");
    }
}

attack! {
    fn memory_is_limited(scene) {
        let line = format!("{} allocate {}", scene.attacker(), 600 << 20);
        let mut profile = scene.profile();
        assert!(scene.inside_with(&profile, &line).worked(), "it works without a limit");
        for limits in [
            ResourceLimits { memory: Some(400 << 20), ..profile.limits },
            ResourceLimits { address_space: Some(400 << 20), ..profile.limits },
        ] {
            profile.limits = limits;
            let inside = scene.inside_with(&profile, &line);
            assert!(inside.output.starts_with("12 "), "out of memory: {inside:?}");
        }
    }
}

attack! {
    fn memory_of_all_processes_together_is_limited_where_that_can_be_had(scene) {
        let options = SandboxOptions { memory: Some(300 << 20), ..scene.options.clone() };
        let mut profile = scene.profile();
        profile.limits.memory = None;
        let small = scene.runtime.block_on(Sandbox::new(options)).unwrap();
        let holding = scene.runtime.block_on(small.prepare(&profile, &sh(""))).unwrap().holding(Guarantee::Resources);
        let line = format!("{} allocate {}", scene.attacker(), 600 << 20);
        let child = scene.runtime.block_on(small.launch(&profile, &sh(line.clone()))).unwrap();
        let ended = scene.runtime.block_on(child.wait()).unwrap();
        let enforcement = child.enforcement().clone();
        let limited = enforcement.guarantees.iter().any(|report| report.reason.contains("together"));
        assert_eq!(ended == ChildExit::Code(0), !limited, "{ended:?} under {enforcement:?}");
        if limits_processes(scene) {
            assert_eq!(holding, Some(if limited { GuaranteeLevel::Held } else { GuaranteeLevel::Partly }));
        }
        assert!(scene.inside_with(&profile, &line).worked(), "it works with a wider limit");
    }
}

attack! {
    fn files_and_private_directories_are_limited(scene) {
        let mut profile = scene.profile();
        profile.limits = ResourceLimits { file_size: Some(1 << 20), temporary_bytes: Some(4 << 20), ..profile.limits };
        let line = "head -c 2000000 /dev/zero > large";
        assert!(scene.inside(line).worked(), "it works with a wider limit");
        let inside = scene.inside_with(&profile, line);
        assert!(!inside.worked(), "{inside:?}");
        if scene.has_namespaces() {
            let line = "for i in 1 2 3 4 5 6 7 8; do head -c 900000 /dev/zero > /tmp/$i || exit 1; done";
            assert!(scene.inside(line).worked(), "it works with a wider limit");
            let inside = scene.inside_with(&profile, line);
            assert!(!inside.worked(), "{inside:?}");
        }
    }
}

attack! {
    fn inotify_instances_are_left_to_others(scene) {
        // Bubblewrap and Landlock alone leave no way to limit them, and the report says so.
        let limited = scene.start("true").enforcement().guarantees.iter().all(|report| !report.reason.contains("inotify"));
        assert_eq!(limited, scene.tier == Tier::Namespaces);
        if !limited {
            return;
        }
        let code = "import ctypes; libc = ctypes.CDLL(None); made = 0\nwhile libc.inotify_init() >= 0: made += 1\nprint(made, flush=True)\ninput()";
        let spec = sh(format!("python3 -c '{code}'")).streams(Streams::Input);
        let child = scene.runtime.block_on(scene.sandbox.launch(&scene.profile(), &spec)).unwrap();
        let Some(Output::Out(made)) = scene.runtime.block_on(child.output()) else { panic!("it says how many it made") };
        let made: u64 = String::from_utf8(made).unwrap().trim().parse().unwrap();
        let of_user: u64 = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").unwrap().trim().parse().unwrap();
        assert!(made >= 1 && made <= of_user / 4, "{made} of {of_user}");
        let ours: Vec<_> = (0..8).map(|_| rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC)).collect();
        assert!(ours.iter().all(Result::is_ok), "{ours:?}");
    }
}
