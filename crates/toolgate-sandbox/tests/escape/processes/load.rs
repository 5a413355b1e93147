//! Many commands at a time, half of them killed: nothing may pile up.

use std::fs;

use toolgate_contract::ChildProcess;
use toolgate_sandbox::process::ChildExit;

use super::scene::{Scene, attack, finish, sh};
use crate::testkit::wait_until;

const COMMANDS: usize = 500;
const AT_A_TIME: usize = 32;
/// Sandboxes that wait for the next command hold two descriptors each, for four plans at most: what other tests leave lying
/// around can change a plan.
const PREPARED: usize = 8;

attack! {
    fn five_hundred_commands_leave_nothing_behind(scene) {
        let zygote = zygote(scene);
        round(scene, AT_A_TIME);
        let before = (descriptors("self"), descriptors(&zygote));
        round(scene, COMMANDS);
        wait_until("our descriptors are closed", || descriptors("self") <= before.0 + PREPARED);
        wait_until("the zygote's descriptors are closed", || descriptors(&zygote) <= before.1);
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
