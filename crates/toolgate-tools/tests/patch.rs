//! Patches as models write them: symbolic links, files that already exist, and what the client Codex makes of both.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toolgate_contract::{Reply, ToolError};
use toolgate_testkit::TestWorkspace;

fn world() -> TestWorkspace {
    TestWorkspace::new(toolgate_tools::all(), "")
}

fn payload(reply: Reply) -> Value {
    reply.payload.unwrap_or_else(|| panic!("{:?}", reply.error))
}

async fn patch(world: &TestWorkspace, patch: &str) -> Reply {
    world.perform("patch", json!({ "patch": patch })).await
}

async fn as_codex(world: &TestWorkspace, patch: &str) -> Reply {
    world.perform("patch", json!({ "patch": patch, "semantics": "codex" })).await
}

async fn approved(world: &TestWorkspace, args: Value) -> Reply {
    world.perform_in(&world.approving_session(), "patch", args).await
}

async fn refused(world: &TestWorkspace, text: &str) -> ToolError {
    patch(world, text).await.error.expect("the patch is refused")
}

fn content(world: &TestWorkspace, path: &str) -> String {
    std::fs::read_to_string(world.path().join(path)).unwrap()
}

fn target(world: &TestWorkspace, path: &str) -> String {
    std::fs::read_link(world.path().join(path)).unwrap().into_os_string().into_string().unwrap()
}

/// What git says about the change from one directory to another.
fn git_diff(before: impl Fn(&Path), after: impl Fn(&Path)) -> String {
    let repository = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(repository.path()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs([("HOME", "/nonexistent"), ("GIT_CONFIG_NOSYSTEM", "1"), ("LC_ALL", "C")]);
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "--quiet"]);
    before(repository.path());
    git(&["add", "--all"]);
    let tree = git(&["write-tree"]);
    after(repository.path());
    git(&["add", "--all"]);
    git(&["diff", "--cached", "--no-renames", tree.trim()])
}

#[tokio::test]
async fn diffs_of_git_that_change_links_apply_to_the_links_themselves() {
    let world = world();
    world.file("a.txt", "a\n");
    world.file("b.txt", "b\n");
    symlink("a.txt", world.path().join("changed")).unwrap();
    symlink("a.txt", world.path().join("gone")).unwrap();
    symlink("a.txt", world.path().join("becomes_file")).unwrap();
    world.file("becomes_link", "was a file\n");
    let diff = git_diff(
        |path| {
            symlink("a.txt", path.join("changed")).unwrap();
            symlink("a.txt", path.join("gone")).unwrap();
            symlink("a.txt", path.join("becomes_file")).unwrap();
            std::fs::write(path.join("becomes_link"), "was a file\n").unwrap();
        },
        |path| {
            for gone in ["changed", "gone", "becomes_file", "becomes_link"] {
                std::fs::remove_file(path.join(gone)).unwrap();
            }
            symlink("b.txt", path.join("changed")).unwrap();
            symlink("somewhere/else", path.join("new")).unwrap();
            symlink("b.txt", path.join("becomes_link")).unwrap();
            std::fs::write(path.join("becomes_file"), "a file now\n").unwrap();
        },
    );
    assert_eq!(diff.matches("120000").count(), 5, "{diff}");
    let reply = payload(approved(&world, json!({ "patch": diff })).await);
    assert_eq!(target(&world, "changed"), "b.txt", "{reply}");
    assert_eq!(target(&world, "new"), "somewhere/else");
    assert_eq!(target(&world, "becomes_link"), "b.txt");
    assert_eq!(content(&world, "becomes_file"), "a file now\n");
    assert!(world.path().join("gone").symlink_metadata().is_err());
    assert_eq!((content(&world, "a.txt"), content(&world, "b.txt")), ("a\n".into(), "b\n".into()));
}

#[tokio::test]
async fn a_changed_link_is_previewed_recorded_and_undone() {
    let world = world();
    world.file("a.txt", "a\n");
    symlink("a.txt", world.path().join("now")).unwrap();
    let diff = "diff --git a/now b/now\nindex 1..2 120000\n--- a/now\n+++ b/now\n@@ -1 +1 @@\n-a.txt\n\
                \\ No newline at end of file\n+b.txt\n\\ No newline at end of file\n";
    let dry = payload(world.perform("patch", json!({ "patch": diff, "dry_run": true })).await);
    assert!(dry["results"][0]["diff"].as_str().unwrap().contains("+b.txt"), "{dry}");
    assert_eq!(target(&world, "now"), "a.txt");
    let reply = patch(&world, diff).await;
    let call = reply.tool_call_id.clone();
    assert_eq!(reply.artifacts.files_changed, ["now"]);
    payload(reply);
    assert_eq!(target(&world, "now"), "b.txt");
    let again = refused(&world, diff).await;
    assert!(again.message.contains("already applied"), "{}", again.message);
    payload(world.perform("undo", json!({ "call": call })).await);
    assert_eq!(target(&world, "now"), "a.txt");
}

#[tokio::test]
async fn lines_are_never_patched_into_a_link_nor_a_target_into_a_file() {
    let world = world();
    world.file("a.txt", "a\n");
    symlink("a.txt", world.path().join("now")).unwrap();
    let moved = "*** Begin Patch\n*** Update File: now\n*** Move to: later\n-a.txt\n+b.txt\n*** End Patch\n";
    let error = approved(&world, json!({ "patch": moved })).await.error.unwrap();
    assert_eq!((error.code.as_str(), target(&world, "now").as_str()), ("not_a_file", "a.txt"));
    let link = "diff --git a/a.txt b/a.txt\nindex 1..2 120000\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n";
    let error = refused(&world, link).await;
    assert!(error.message.contains("which is a file"), "{}", error.message);
    assert_eq!(content(&world, "a.txt"), "a\n");
}

#[tokio::test]
async fn a_patch_onto_an_existing_file_says_how_to_go_on_and_that_works() {
    let world = world();
    world.file("a.txt", "a\n");
    world.file("b.txt", "b\n");
    let add = "*** Add File: b.txt\n+new\n";
    let moved = "*** Update File: a.txt\n*** Move to: b.txt\n-a\n+A\n";
    for (part, said, tool) in [(add, "creates `b.txt`", "`write`"), (moved, "`a.txt` to `b.txt`", "`move`")] {
        let error = refused(&world, &format!("*** Begin Patch\n{part}*** End Patch\n")).await;
        assert!(error.message.contains(said), "{}", error.message);
        let hint = error.hint.unwrap();
        for way in ["*** Update File: b.txt", "*** Delete File: b.txt", tool] {
            assert!(hint.contains(way), "{hint}");
        }
    }
    assert_eq!(content(&world, "b.txt"), "b\n");
    let replacing = format!("*** Begin Patch\n*** Delete File: b.txt\n{moved}*** End Patch\n");
    payload(approved(&world, json!({ "patch": replacing })).await);
    assert_eq!(content(&world, "b.txt"), "A\n");
    assert!(!world.path().join("a.txt").exists());
    let unified = "diff --git a/b.txt b/b.txt\nnew file mode 100644\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+x\n";
    assert!(refused(&world, unified).await.hint.unwrap().contains("read `b.txt` and send a diff"));
}

#[tokio::test]
async fn with_the_semantics_of_codex_an_unclear_patch_does_what_that_client_does() {
    let world = world();
    world.file("a.txt", "a\n");
    world.file("b.txt", "b\n");
    let unclear = "*** Begin Patch\n*** Update File: a.txt\n@@\n+more\n*** End Patch\n";
    assert!(refused(&world, unclear).await.message.contains("without saying where"));
    let reply = payload(as_codex(&world, unclear).await);
    assert!(reply["results"][0]["hunks"][0]["note"].as_str().unwrap().contains("end of the file"), "{reply}");
    assert_eq!(content(&world, "a.txt"), "a\nmore\n");

    let add = "*** Begin Patch\n*** Add File: b.txt\n+new\n*** End Patch\n";
    payload(as_codex(&world, add).await);
    assert_eq!(content(&world, "b.txt"), "new\n");

    let moved = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n-a\n+A\n*** End Patch\n";
    let args = json!({ "patch": moved, "semantics": "codex" });
    let reply = payload(approved(&world, args).await);
    assert_eq!(reply["results"][0]["note"], "`b.txt` existed and was replaced.", "{reply}");
    assert_eq!(content(&world, "b.txt"), "A\nmore\n");
}

#[tokio::test]
async fn what_codex_would_replace_is_kept_if_somebody_else_changed_it() {
    let world = world();
    let session = world.session();
    world.file("b.txt", "b\n");
    payload(world.perform_in(&session, "read", json!({ "path": "b.txt" })).await);
    world.file("b.txt", "somebody else's\n");
    let add = "*** Begin Patch\n*** Add File: b.txt\n+new\n*** End Patch\n";
    let reply = world.perform_in(&session, "patch", json!({ "patch": add, "semantics": "codex" })).await;
    assert_eq!(reply.error.unwrap().code.as_str(), "stale_file");
    assert_eq!(content(&world, "b.txt"), "somebody else's\n");
}
