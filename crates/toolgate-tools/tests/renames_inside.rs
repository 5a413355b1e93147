//! Renaming directories and linking files that existed before a command, on its overlay, as outside of it.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, Event, EventPayload};
use toolgate_testkit::{TestWorkspace, skip};

/// A repository with a directory `old`: files, a read-only directory, two names of one file, a link, times of long ago.
fn world() -> TestWorkspace {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined();
    world.git_init("do.sh\n");
    world.file("old/a", "a\n").file("old/deep/er/b", "b\n").file("old/closed/c", "c\n").file("x", "x\n");
    let old = world.path().join("old");
    std::fs::hard_link(old.join("a"), old.join("deep/a")).unwrap();
    std::os::unix::fs::symlink("../a", old.join("deep/link")).unwrap();
    world.git(&["add", "."]);
    world.git(&["commit", "-q", "-m", "base"]);
    std::fs::set_permissions(old.join("closed"), std::fs::Permissions::from_mode(0o555)).unwrap();
    world
}

async fn shell(world: &TestWorkspace, command: &str) -> Value {
    world.run_script(command, json!({})).await
}

/// Undoes the last call that changed anything.
async fn undo(world: &TestWorkspace) {
    let changing = |event: &Event| matches!(event.payload, EventPayload::FilesChanging { .. });
    let last = world.events().into_iter().rfind(changing).unwrap().tool_call_id.unwrap();
    let undone = world.perform("undo", json!({ "call": last })).await;
    assert!(undone.ok, "{:?}", undone.error);
    assert_eq!(undone.payload.as_ref().unwrap()["refused"], json!([]), "{:?}", undone.payload);
}

/// What is in `directory`: names, kinds, modes, sizes and targets of links; and which files are the same.
fn tree(world: &TestWorkspace, directory: &str) -> String {
    let find =
        "find . -printf '%P %y %m %l\\n' | sort; find . -type f | sort | xargs cat; [ a -ef deep/a ] && echo linked";
    let found = Command::new("sh").args(["-c", find]).current_dir(world.path().join(directory)).output().unwrap();
    String::from_utf8(found.stdout).unwrap()
}

/// Ways to rename `old` to `new` that don't copy when they can't.
const RENAMES: &[(&str, &str)] = &[
    ("perl", "perl -e 'rename(\"old\", \"new\") or die $!'"),
    ("python3", "python3 -c 'import os; os.rename(\"old\", \"new\")'"),
    ("node", "node -e 'require(\"fs\").renameSync(\"old\", \"new\")'"),
    ("git", "git mv old new"),
    (
        "perl",
        "mkdir new && cd old/deep && perl -e 'rename(\"..\", \"../../new\") and die; rename(\"../../old/\", \"../../new\") or die $!'",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn an_existing_directory_is_renamed_with_all_that_is_in_it() {
    for (program, command) in RENAMES {
        if Command::new(program).arg("--version").output().is_err() {
            skip("program-missing", &format!("`{program}` isn't installed"));
            continue;
        }
        let world = world();
        let before = tree(&world, "old");
        let payload = shell(&world, &format!("({command}) && ls old; find new | wc -l")).await;
        assert_eq!(payload["stdout"], json!("9\n"), "{command}: {payload}");
        assert!(!world.path().join("old").exists(), "{command}");
        assert_eq!(tree(&world, "new"), before, "{command}");
        assert!(before.ends_with("linked\n"), "{before}");
        undo(&world).await;
        assert!(!world.path().join("new").exists(), "{command}");
        assert_eq!(tree(&world, "old").replace("linked\n", ""), before.replace("linked\n", ""), "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_with_a_repository_is_moved() {
    let world = world();
    world.git(&["init", "-q", "-b", "main", "nested"]);
    world.file("nested/b.txt", "one\n");
    world.git(&["-C", "nested", "add", "b.txt"]);
    world.git(&[
        "-C",
        "nested",
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=a@example.org",
        "commit",
        "-q",
        "-m",
        "nested",
    ]);
    let payload = shell(&world, "mv nested moved && git -C moved status --short && git -C moved log --format=%s").await;
    assert_eq!((&payload["exit_code"], &payload["stdout"]), (&json!(0), &json!("nested\n")), "{payload}");
    assert_eq!(payload["changes"]["kept_aside"], Value::Null, "{payload}");
    assert!(!world.path().join("nested").exists());
    world.git(&["-C", "moved", "fsck", "--strict"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_that_is_refused_outside_is_refused_inside_and_moves_nothing() {
    let world = world();
    world.file("full/f", "f\n").file("file", "f\n");
    let trees = || [tree(&world, "old"), tree(&world, "full")];
    let before = trees();
    for (to, reason) in [
        ("full", "Directory not empty"),
        ("file", "Not a directory"),
        ("old/deep/new", "Invalid argument"),
        ("missing/new", "No such file or directory"),
    ] {
        let command = format!("perl -e 'rename(\"old\", \"{to}\") or print $!'");
        let payload = shell(&world, &command).await;
        assert_eq!(payload["stdout"], json!(reason), "{to}: {payload}");
        assert_eq!(trees(), before, "{to}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_cant_be_moved_as_a_whole_stays_as_it_is() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skip("not-root", "only root can give a directory to somebody else");
    }
    let world = world();
    world.file("old/deep/theirs/d", "d\n");
    std::os::unix::fs::chown(world.path().join("old/deep/theirs"), Some(1), Some(1)).unwrap();
    let before = tree(&world, "old");
    let payload =
        shell(&world, "perl -e 'rename(\"old\", \"new\") or print \"refused\\n\"'; find old | wc -l; ls -d new").await;
    assert_eq!(payload["stdout"], json!("refused\n11\n"), "{payload}");
    assert_eq!(tree(&world, "old").replace("linked\n", ""), before.replace("linked\n", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_one_file_while_the_command_runs_and_afterwards() {
    let world = world();
    let payload = shell(&world, "ln x y && [ x -ef y ] && stat -c %h x y && echo more >> y && cat x").await;
    assert_eq!(payload["stdout"], json!("2\n2\nx\nmore\n"), "{payload}");
    let payload = shell(&world, "ln old/deep/er/b y2 && [ old/deep/er/b -ef y2 ] && echo one").await;
    assert_eq!(payload["stdout"], json!("one\n"), "{payload}");
    let inode = |path: &str| std::fs::metadata(world.path().join(path)).unwrap().ino();
    assert_eq!(inode("x"), inode("y"), "both were changed, and are one file");
    assert_eq!(inode("old/deep/er/b"), inode("y2"), "the first wasn't changed, and has one more name");
    undo(&world).await;
    assert!(!world.path().join("y2").exists());
    assert_eq!(std::fs::read_to_string(world.path().join("old/deep/er/b")).unwrap(), "b\n");
}

/// By another name, a later command could write to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_commands_may_not_change_gets_no_other_name() {
    let world = world();
    world.file(".vscode/tasks.json", "{}\n").file("plain", "p\n");
    let payload = shell(&world, "ln .vscode/tasks.json y && ln .git/hooks/pre-push.sample z; ln plain p").await;
    let inode = |path: &str| std::fs::metadata(world.path().join(path)).unwrap().ino();
    assert_ne!(inode(".vscode/tasks.json"), inode("y"), "{payload}");
    assert_eq!(std::fs::read_to_string(world.path().join("y")).unwrap(), "{}\n");
    assert_eq!(inode("plain"), inode("p"), "{payload}");
}

/// Two entries change places, whatever they are.
#[tokio::test(flavor = "multi_thread")]
async fn entries_are_exchanged() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("program-missing", "`python3` isn't installed");
    }
    for (one, other) in [("old", "full"), ("old", "x"), ("x", "old"), ("old/deep", "full"), ("x", "full/f")] {
        let world = world();
        world.file("full/f", "f\n");
        let look = |path: &str| match world.path().join(path).is_dir() {
            true => tree(&world, path),
            false => std::fs::read_to_string(world.path().join(path)).unwrap(),
        };
        let before = [look(one), look(other)];
        let command = format!(
            "python3 -c 'import ctypes; c = ctypes.CDLL(None, use_errno=True); \
             print(c.renameat2(-100, b\"{one}\", -100, b\"{other}\", 2), ctypes.get_errno())'; ls -A | grep -c exchange"
        );
        let payload = shell(&world, &command).await;
        assert_eq!(payload["stdout"], json!("0 0\n0\n"), "{one} and {other}: {payload}");
        assert_eq!([look(other), look(one)], before, "{one} and {other}");
        undo(&world).await;
        let without_links = |trees: [String; 2]| trees.map(|tree| tree.replace("linked\n", ""));
        assert_eq!(without_links([look(one), look(other)]), without_links(before), "{one} and {other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn git_clones_a_repository_of_the_workspace() {
    let world = world();
    world.git(&["clone", "-q", ".", "first"]);
    let payload = shell(&world, "git clone -q first second && git -C second fsck && ls second/old").await;
    assert_eq!((&payload["exit_code"], &payload["stdout"]), (&json!(0), &json!("a\nclosed\ndeep\n")), "{payload}");
}

/// The layer holds a copy of `x` for its new name; that is no reason to make `x` again.
#[tokio::test(flavor = "multi_thread")]
async fn committing_another_name_of_a_file_does_not_bring_the_file_back() {
    let world = world();
    let session = world.session();
    let args = json!({ "command": "ln x y", "rehearse": true });
    let rehearsed = world.perform_in(&session, "shell", args).await.payload.unwrap();
    std::fs::remove_file(world.path().join("x")).unwrap();
    let commit = json!({ "rehearsal": rehearsed["changes"]["rehearsal"] });
    let error = world.perform_in(&session, "commit", commit).await.error.unwrap();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::StaleFile, "`x` was changed since the rehearsal."));
    assert!(!world.path().join("x").exists() && !world.path().join("y").exists());
}
