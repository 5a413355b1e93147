//! SIGKILL in the middle of a change of many files: all of it, or none, once the program runs again.

use std::fmt::Write;
use std::time::Duration;

use serde_json::json;

use crate::world::{PROGRAM, World};

#[test]
fn a_change_that_is_killed_half_way_is_whole_or_undone() {
    kill_at_every_moment(150, "");
}

#[test]
fn a_change_of_large_files_that_is_killed_half_way_is_whole_or_undone() {
    kill_at_every_moment(20, &"some text\n".repeat(30_000));
}

/// Changes the first line of so many files, each followed by `rest`.
fn kill_at_every_moment(files: usize, rest: &str) {
    let world = World::new();
    for n in 0..files {
        world.put(&world.workspace().join(format!("many/{n:03}.txt")), format!("0\n{rest}"));
    }
    let (mut version, mut killed) = (0u32, 0);
    for attempt in 0..25u64 {
        let patch: String = (0..files).fold(String::new(), |mut patch, n| {
            let path = format!("many/{n:03}.txt");
            let _ = write!(patch, "--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{version}\n+{}\n", version + 1);
            patch
        });
        world.put(&world.home().join("patch.json"), json!({ "patch": patch }).to_string());
        let args = ["call", "--approve", "patch", "--args-file", "../home/patch.json"];
        let mut child = world.command(PROGRAM).args(args).stdout(std::process::Stdio::null()).spawn().unwrap();
        // Later and later, so that every moment of the change is hit by some attempt.
        std::thread::sleep(Duration::from_millis(20 + 12 * attempt));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
        assert_eq!(world.run(&["call", "list"]).code, 0, "the program mends what it finds");
        version = check(&world, files, version);
    }
    assert!(killed > 0, "no attempt was early enough to be killed");
    let verified = world.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
}

/// All files hold one version, the one before or the next; nothing else lies about.
fn check(world: &World, files: usize, before: u32) -> u32 {
    let entries: Vec<_> =
        std::fs::read_dir(world.workspace().join("many")).unwrap().map(|e| e.unwrap().path()).collect();
    let contents: std::collections::BTreeSet<String> =
        entries.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let versions: Vec<_> = contents.iter().map(|content| content.lines().next()).collect();
    assert_eq!(contents.len(), 1, "a mixture: {versions:?}");
    let strays: Vec<_> = entries.iter().filter(|path| path.extension().is_none_or(|kind| kind != "txt")).collect();
    assert_eq!((entries.len(), strays.len()), (files, 0), "{strays:?}");
    let version: u32 = versions[0].unwrap().parse().unwrap();
    assert!(version == before || version == before + 1, "{version} after {before}");
    version
}
