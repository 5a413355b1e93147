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
    for attempt in 0u64.. {
        if attempt >= 25 && killed > 0 {
            break;
        }
        let patch: String = (0..files).fold(String::new(), |mut patch, n| {
            let path = format!("many/{n:03}.txt");
            let _ = write!(patch, "--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{version}\n+{}\n", version + 1);
            patch
        });
        world.put(&world.home().join("patch.json"), json!({ "patch": patch }).to_string());
        let args = ["call", "--approve", "patch", "--args-file", "../home/patch.json"];
        let mut child = world.command(PROGRAM).args(args).stdout(std::process::Stdio::null()).spawn().unwrap();
        // Later and later, so that every moment of the change is hit by some attempt.
        std::thread::sleep(Duration::from_millis(13 * (attempt % 25)));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
        assert_eq!(world.run(&["call", "list"]).code, 0, "the program recovers what it finds");
        version = check(&world, files, version);
    }
    let verified = world.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
}

/// A command's changes are put in place one after the other: of every kind, guarded ones among them.
#[test]
fn a_commands_changes_that_are_killed_half_way_are_whole_or_undone() {
    const FILES: usize = 150;
    let world = World::new();
    for n in 0..FILES {
        world.put(&world.workspace().join(format!("many/{n:03}.txt")), "0\n");
        world.put(&world.workspace().join(format!("goes/{n:03}.txt")), "goes\n");
    }
    let script = "for f in many/*.txt; do read v < $f; echo $((v + 1)) > $f; done
        if [ -d goes ]; then rm -r goes; mkdir comes; for i in $(seq 150); do echo $i > comes/$i; done; git init -q new
        else rm -r comes new; mkdir goes; for i in $(seq -f %03g 0 149); do echo goes > goes/$i.txt; done; fi";
    world.put(&world.workspace().join("change.sh"), script);
    let changing = world.workspace().join(".toolgate/changing");
    let has_begun = || std::fs::metadata(&changing).is_ok_and(|note| note.len() > 0);
    let (mut version, mut killed) = (0, 0);
    for attempt in 0u64.. {
        if attempt >= 10 && killed > 0 {
            break;
        }
        let args = ["--json", "call", "--approve", "shell", r#"{"command":"sh change.sh"}"#];
        let mut child = world.command(PROGRAM).args(args).stdout(std::process::Stdio::null()).spawn().unwrap();
        while !has_begun() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        // The note of what is about to change is written: from here to the end, further with every attempt.
        std::thread::sleep(Duration::from_micros((attempt % 10).pow(2) * 250));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
        assert_eq!(world.run(&["call", "list"]).code, 0, "the program recovers what it finds");
        let now = check(&world, FILES, version);
        let (goes, comes) = (world.workspace().join("goes"), world.workspace().join("comes"));
        let there = [goes.exists(), comes.exists(), world.workspace().join("new/.git/config").exists()];
        let is_even = now.is_multiple_of(2);
        assert_eq!(there, [is_even, !is_even, !is_even], "attempt {attempt}: {now} after {version}");
        let directory = if is_even { goes } else { comes };
        assert_eq!(std::fs::read_dir(directory).unwrap().count(), FILES, "attempt {attempt}");
        assert_eq!(world.workspace().join("new").exists(), !is_even, "attempt {attempt}");
        version = now;
    }
    let layers = std::fs::read_dir(world.workspace().join(".toolgate/layers")).unwrap().count();
    let verified = world.run(&["audit", "verify"]);
    assert_eq!((verified.code, layers <= 1), (0, true), "{verified:?}, {layers} layers");
    let reply = world.run(&["--json", "call", "--approve", "shell", r#"{"command":"sh change.sh"}"#]).json();
    assert_eq!(check(&world, FILES, version), version + 1, "{reply}");
    let said = world.run(&["undo", reply["tool_call_id"].as_str().unwrap()]);
    assert!(said.code == 0 && !said.out.contains("Not undone"), "{said:?}");
    assert_eq!(check(&world, FILES, version), version);
    assert_eq!(std::fs::read_dir(world.workspace().join(".toolgate/layers")).unwrap().count(), 0);
}

/// An undo of many files writes all of them out before the first takes its place.
#[test]
fn an_undo_that_is_killed_half_way_is_whole_or_undone() {
    const FILES: usize = 150;
    let world = World::new();
    for n in 0..FILES {
        world.put(&world.workspace().join(format!("many/{n:03}.txt")), "0\n");
    }
    let change = || {
        let args = r#"{"command":"for f in many/*; do echo 1 > $f; done"}"#;
        let reply = world.run(&["--json", "call", "--approve", "shell", args]).json();
        reply["tool_call_id"].as_str().unwrap().to_owned()
    };
    let changing = world.workspace().join(".toolgate/changing");
    let has_begun = || std::fs::metadata(&changing).is_ok_and(|note| note.len() > 0);
    let (mut call, mut killed) = (change(), 0);
    for attempt in 0u64.. {
        if attempt >= 10 && killed > 0 {
            break;
        }
        let mut child =
            world.command(PROGRAM).args(["undo", &call]).stdout(std::process::Stdio::null()).spawn().unwrap();
        while !has_begun() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        // The note of what is about to change is written: from here to the end, further with every attempt.
        std::thread::sleep(Duration::from_micros((attempt % 10).pow(2) * 500));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
        assert_eq!(world.run(&["call", "list"]).code, 0, "the program recovers what it finds");
        if check(&world, FILES, 0) == 0 {
            call = change();
        }
    }
    assert_eq!(world.run(&["undo", &call]).code, 0);
    assert_eq!((check(&world, FILES, 0), world.run(&["audit", "verify"]).code), (0, 0));
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
