//! One line changed in a file of 1 MB, by `edit` and by `patch`, through the whole gate with its record and its way back,
//! beside `git apply` of the same patch. All take turns, on the disk and in memory (`/dev/shm`): every change of ours is
//! brought to the disk before it counts, which `git apply` doesn't do.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark makes its files and runs its peer")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolgate_testkit::TestWorkspace;

const ROUNDS: usize = 31;
const LINES: usize = 12_500;
const CHANGED: usize = LINES / 2;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for directory in ["/dev/shm".into(), std::env::temp_dir()] {
        if directory.is_dir() {
            compare(&runtime, &directory);
        }
    }
}

fn compare(runtime: &Runtime, directory: &Path) {
    let world = TestWorkspace::new_in(directory, toolgate_tools::all(), "");
    let peer = tempfile::tempdir_in(directory).unwrap();
    let file = content("before");
    let line = format!("line {CHANGED:06} before and some more text to make it eighty characters long, as usual\n");
    let (mut edits, mut patches, mut git) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        world.file("a.txt", &file);
        let args = json!({"path": "a.txt", "find": line, "replace": line.replace("before", "after")});
        edits.push(time(|| perform(runtime, &world, "edit", args)));
        world.file("a.txt", &file);
        patches.push(time(|| perform(runtime, &world, "patch", json!({"patch": patch()}))));
        std::fs::write(peer.path().join("a.txt"), &file).unwrap();
        std::fs::write(peer.path().join("patch"), patch()).unwrap();
        git.push(time(|| {
            let status = Command::new("git").args(["apply", "patch"]).current_dir(peer.path()).status().unwrap();
            assert!(status.success());
        }));
        // The first round only warms up.
        if round == 0 {
            [&mut edits, &mut patches, &mut git].into_iter().for_each(Vec::clear);
        }
    }
    let git = median(git);
    println!("one line of 1 MB in {}, medians of {ROUNDS} rounds; git apply takes {git:?}", directory.display());
    for (name, times) in [("edit", edits), ("patch", patches)] {
        let ours = median(times);
        let ratio = ours.as_secs_f64() / git.as_secs_f64();
        let place = directory.display();
        println!("{name} of one line of 1 MB in {place} ÷ git apply: {ratio:.2} x   (wanted: at most 0.5)");
    }
}

fn content(word: &str) -> String {
    let line = |n| format!("line {n:06} {word} and some more text to make it eighty characters long, as usual\n");
    (0..LINES).map(line).collect()
}

fn patch() -> String {
    let line = |mark: &str, n: usize, word: &str| {
        format!("{mark}line {n:06} {word} and some more text to make it eighty characters long, as usual\n")
    };
    let context = |range: std::ops::Range<usize>| range.map(|n| line(" ", n, "before")).collect::<String>();
    format!(
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -{start},7 +{start},7 @@\n{}{}{}{}",
        context(CHANGED - 3..CHANGED),
        line("-", CHANGED, "before"),
        line("+", CHANGED, "after"),
        context(CHANGED + 1..CHANGED + 4),
        start = CHANGED - 2,
    )
}

fn perform(runtime: &Runtime, world: &TestWorkspace, tool: &str, args: Value) {
    let reply = runtime.block_on(world.perform(tool, args));
    assert!(reply.ok, "{reply:?}");
}

fn time(act: impl FnOnce()) -> Duration {
    let began = Instant::now();
    act();
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
