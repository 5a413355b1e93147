//! Many commands at a time, half of them killed: nothing may pile up.

use std::fs;

use toolgate_contract::{ChildProcess, Streams};
use toolgate_sandbox::process::ChildExit;

use super::scene::{Scene, attack, finish, sh};
use crate::testkit::wait_until;

const COMMANDS: usize = 500;
const AT_A_TIME: usize = 32;
/// Sandboxes that wait for the next command hold two descriptors each, for four plans at most: what other tests leave lying
/// around can change a plan.
const PREPARED: usize = 8;
/// A zygote holds two descriptors of its spare sandbox.
const SPARE: usize = 2;
/// Commands that are launched by threads of their own, so many at a time.
const THREADS: usize = 8;

attack! {
    fn five_hundred_commands_leave_nothing_behind(scene) {
        let zygote = zygote(scene);
        round(scene, AT_A_TIME);
        let before = (descriptors("self"), descriptors(&zygote));
        round(scene, COMMANDS);
        wait_until("our descriptors are closed", || descriptors("self") <= before.0 + PREPARED);
        wait_until("the zygote's descriptors are closed", || descriptors(&zygote) <= before.1 + SPARE);
    }
}

attack! {
    /// A parent-death signal comes when the thread ends that forked, so none may come from threads of the host.
    fn commands_outlive_the_threads_that_launched_them(scene) {
        let (profile, handle) = (scene.profile(), scene.runtime.handle());
        for _ in 0..COMMANDS / THREADS / 4 {
            let children = std::thread::scope(|scope| {
                let launch = || handle.block_on(scene.sandbox.launch(&profile, &sh("read line; echo $line").streams(Streams::Input)));
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(launch)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect::<Vec<_>>()
            });
            for child in children {
                handle.block_on(child.write(b"still here\n")).unwrap();
                let outcome = handle.block_on(finish(&child));
                assert_eq!((outcome.output.as_str(), outcome.ended), ("still here\n", ChildExit::Code(0)), "{outcome:?}");
            }
        }
    }
}

fn round(scene: &Scene, commands: usize) {
    let profile = scene.profile();
    scene.runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..commands {
            if tasks.len() == AT_A_TIME {
                tasks.join_next().await.unwrap().unwrap();
            }
            let (sandbox, profile) = (scene.sandbox.clone(), profile.clone());
            tasks.spawn(async move {
                let killed = number % 2 == 0;
                let line = if killed { "echo started; sleep 1000 & sleep 1000" } else { "echo started" };
                let child = sandbox.launch(&profile, &sh(line)).await.unwrap();
                if killed {
                    child.kill();
                }
                let outcome = finish(&child).await;
                let expected = if killed { ChildExit::Signal(9) } else { ChildExit::Code(0) };
                assert_eq!(outcome.ended, expected);
                assert!(killed || outcome.output == "started\n", "{outcome:?}");
            });
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
    });
}

/// How many descriptors a process has open.
fn descriptors(process: &str) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

/// The zygote is the child of ours that runs the stage's copy of the program.
fn zygote(scene: &Scene) -> String {
    let program = scene.path("zygote");
    let ours = format!("PPid:\t{}\n", std::process::id());
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_zygote = |path: &std::path::PathBuf| {
        fs::read_link(path.join("exe")).is_ok_and(|exe| exe == program)
            && fs::read_to_string(path.join("status")).is_ok_and(|status| status.contains(&ours))
    };
    let found = { processes }.find(is_zygote).expect("the zygote runs");
    found.file_name().unwrap().to_str().unwrap().to_owned()
}
