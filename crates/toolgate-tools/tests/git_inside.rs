//! Ordinary work with git inside: repositories are removed as a whole or not at all, and an edit of git's configuration is judged
//! setting by setting.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use serde_json::{Value, json};
use toolgate_contract::{Event, EventPayload};
use toolgate_testkit::TestWorkspace;

/// A repository with one commit.
fn world() -> TestWorkspace {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined();
    world.git_init("do.sh\n");
    world.file("a.txt", "one\n");
    world.git(&["add", "a.txt"]);
    world.git(&["commit", "-q", "-m", "base"]);
    world
}

/// A repository in the workspace's directory `nested`, with a commit and a hook.
fn nested(world: &TestWorkspace) {
    world.git(&["init", "-q", "-b", "main", "nested"]);
    world.file("nested/b.txt", "one\n").file("nested/.git/hooks/pre-commit", "#!/bin/sh\n");
    world.git(&["-C", "nested", "add", "b.txt"]);
    let author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "core.hooksPath=/dev/null"];
    world.git(&[&author[..], &["-C", "nested", "commit", "-q", "-m", "nested"]].concat());
}

fn read(world: &TestWorkspace, path: &str) -> String {
    std::fs::read_to_string(world.path().join(path)).unwrap()
}

async fn shell_with(world: &TestWorkspace, command: &str, more: Value) -> Value {
    world.run_script(command, more).await
}

/// Undoes the last call that changed anything.
async fn undo(world: &TestWorkspace) {
    let changing = |event: &Event| matches!(event.payload, EventPayload::FilesChanging { .. });
    let last = world.events().into_iter().rfind(changing).unwrap().tool_call_id.unwrap();
    let undone = world.perform("undo", json!({ "call": last })).await;
    assert!(undone.ok, "{:?}", undone.error);
    assert_eq!(undone.payload.as_ref().unwrap()["refused"], json!([]), "{:?}", undone.payload);
}

async fn shell(world: &TestWorkspace, command: &str) -> Value {
    shell_with(world, command, json!({})).await
}

async fn in_place(world: &TestWorkspace, command: &str) -> Value {
    shell_with(world, command, json!({ "stdin": true, "yield_ms": 600_000 })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn git_leaves_toolgates_own_state_alone() {
    for command in
        ["git clean -qfd -e do.sh", "echo x > x && git stash -q -u && git stash pop -q", "git add -A && git status"]
    {
        for run_in_place in [false, true] {
            let world = world();
            let payload = if run_in_place { in_place(&world, command).await } else { shell(&world, command).await };
            assert_eq!(payload["exit_code"], json!(0), "{command}: {payload}");
            assert_eq!(world.git(&["ls-files", ".toolgate"]), "", "{command}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nested_repository_is_removed_as_a_whole() {
    for command in ["rm -rf nested", "rm -r nested/b.txt && rm -rf nested/.git && rmdir nested"] {
        let world = world();
        nested(&world);
        let payload = shell(&world, command).await;
        assert_eq!(payload["exit_code"], json!(0), "{command}: {payload}");
        assert_eq!(payload["changes"]["kept_aside"], Value::Null, "{command}: {payload}");
        assert!(!world.path().join("nested").exists(), "{command}: {payload}");
        undo(&world).await;
        assert_eq!(read(&world, "nested/.git/hooks/pre-commit"), "#!/bin/sh\n");
        world.git(&["-C", "nested", "fsck", "--strict"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_git_directory_stays_whole_where_its_worktree_stays() {
    for (command, directory) in [("rm -rf .git", "."), ("rm -rf nested/.git", "nested"), ("rm -f .git/HEAD", ".")] {
        for run_in_place in [false, true] {
            let world = world();
            nested(&world);
            let payload = if run_in_place { in_place(&world, command).await } else { shell(&world, command).await };
            let aside = payload["changes"]["kept_aside"].to_string();
            assert!(aside.contains("as a whole, or not at all"), "{command}: {payload}");
            assert_eq!(world.git(&["-C", directory, "status", "--porcelain", "-uno"]), "", "{command}: {payload}");
            world.git(&["-C", directory, "fsck", "--strict"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nested_repository_whose_removal_is_stopped_in_place_stays_a_repository() {
    let world = world();
    nested(&world);
    let payload = in_place(&world, "rm -rf nested").await;
    assert_ne!(payload["exit_code"], json!(0), "{payload}");
    assert!(payload["denied"].to_string().contains("protected"), "{payload}");
    assert_eq!(world.git(&["-C", "nested", "status", "--porcelain"]), " D b.txt\n", "{payload}");
    world.git(&["-C", "nested", "fsck", "--strict"]);
    let payload = shell(&world, "rm -rf nested").await;
    assert!(payload["exit_code"] == json!(0) && !world.path().join("nested").exists(), "{payload}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_policy_keeps_in_a_worktree_keeps_its_repository() {
    let world = world();
    nested(&world);
    world.file("nested/.env", "TOKEN=x\n");
    let payload = shell(&world, "rm -rf nested").await;
    assert_eq!(read(&world, "nested/.env"), "TOKEN=x\n", "{payload}");
    world.git(&["-C", "nested", "fsck", "--strict"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_linked_worktree_is_removed_in_a_later_call() {
    let world = world();
    let payload = shell(&world, "git worktree add -q tree && git worktree add -q other").await;
    assert_eq!(
        (payload["exit_code"].clone(), payload["changes"]["kept_aside"].clone()),
        (json!(0), Value::Null),
        "{payload}"
    );
    let payload = shell(&world, "git worktree remove tree && git worktree list").await;
    assert_eq!(
        (payload["exit_code"].clone(), payload["changes"]["kept_aside"].clone()),
        (json!(0), Value::Null),
        "{payload}"
    );
    assert!(!world.path().join("tree").exists() && !world.path().join(".git/worktrees/tree").exists(), "{payload}");
    let payload = in_place(&world, "git worktree remove other").await;
    assert_ne!(payload["exit_code"], json!(0), "{payload}");
    assert!(
        world.path().join("other/.git").exists() && world.path().join(".git/worktrees/other/HEAD").exists(),
        "{payload}"
    );
    world.git(&["-C", "other", "status"]);
    world.git(&["fsck", "--strict"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worktree_is_not_led_to_another_repository() {
    let world = world();
    nested(&world);
    world.git(&["worktree", "add", "-q", "tree"]);
    let link = read(&world, "tree/.git");
    let payload = shell(&world, "echo 'gitdir: ../nested/.git' > tree/.git").await;
    assert!(payload["changes"]["kept_aside"].to_string().contains("tree/.git"), "{payload}");
    assert_eq!(read(&world, "tree/.git"), link);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_gits_configuration_is_judged_setting_by_setting() {
    let world = world();
    let command = "git config rerere.enabled true && git config core.longpaths true && git config core.fsmonitor ./evil && \
                   git remote add fork https://example.org/fork.git && git config alias.x '!evil'";
    let payload = shell(&world, command).await;
    assert_eq!(payload["exit_code"], json!(0), "{payload}");
    let aside = &payload["changes"]["kept_aside"];
    assert_eq!(aside[0]["path"], json!(".git/config"), "{payload}");
    let reason = aside[0]["reason"].as_str().unwrap();
    assert!(reason.contains("`alias.x`, `core.fsmonitor` are unusual; the rest"), "{reason}");
    assert_eq!(world.git(&["config", "rerere.enabled"]), "true\n");
    assert_eq!(world.git(&["remote", "get-url", "fork"]), "https://example.org/fork.git\n");
    assert!(!read(&world, ".git/config").contains("evil"), "{payload}");
    undo(&world).await;
    assert!(!read(&world, ".git/config").contains("rerere"));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_a_person_made_do_not_stop_git() {
    let world = world();
    world.git(&["config", "alias.st", "!git status"]);
    world.git(&["config", "core.hooksPath", ".husky"]);
    let payload =
        shell(&world, "git checkout -q -b new && git branch --set-upstream-to=main && git config rerere.enabled true")
            .await;
    assert_eq!(
        (payload["exit_code"].clone(), payload["changes"]["kept_aside"].clone()),
        (json!(0), Value::Null),
        "{payload}"
    );
    assert_eq!(world.git(&["config", "branch.new.merge"]), "refs/heads/main\n");
    assert_eq!(world.git(&["config", "core.hooksPath"]), ".husky\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sparse_checkout_is_applied() {
    let world = world();
    world.file("deep/x.txt", "x\n").file("other/y.txt", "y\n");
    world.git(&["add", "deep", "other"]);
    world.git(&["commit", "-q", "-m", "more"]);
    let payload = shell(&world, "git sparse-checkout set deep").await;
    assert_eq!(
        (payload["exit_code"].clone(), payload["changes"]["kept_aside"].clone()),
        (json!(0), Value::Null),
        "{payload}"
    );
    assert!(world.path().join("deep/x.txt").exists() && !world.path().join("other").exists(), "{payload}");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_push_goes_stays() {
    for command in [
        "git remote set-url origin https://evil.example/a.git",
        "git remote set-url --push origin https://evil.example/a.git",
        "git config url.https://evil.example/.pushInsteadOf https://example.org/",
        "git remote remove origin && git remote add origin https://evil.example/a.git",
        "git remote remove origin; git config rerere.enabled true",
    ] {
        let world = world();
        world.git(&["remote", "add", "origin", "https://example.org/a.git"]);
        let payload = shell(&world, command).await;
        assert_eq!(payload["exit_code"], json!(0), "{command}: {payload}");
        assert_eq!(payload["changes"]["kept_aside"][0]["path"], json!(".git/config"), "{command}: {payload}");
        assert_eq!(
            world.git(&["remote", "get-url", "--push", "--all", "origin"]),
            "https://example.org/a.git\n",
            "{command}"
        );
        let rerere = read(&world, ".git/config").contains("rerere");
        assert_eq!(rerere, command.contains("rerere"), "{command}: {payload}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rehearsed_edit_is_committed_without_what_is_not_harmless() {
    let world = world();
    let session = world.session();
    world.file("do.sh", "git config rerere.enabled true; git config core.fsmonitor ./evil");
    let args = json!({ "command": "sh do.sh", "rehearse": true });
    let payload = world.perform_in(&session, "shell", args).await.payload.unwrap();
    let rehearsal = payload["changes"]["rehearsal"].clone();
    let reply = world.perform_in(&session, "commit", json!({ "rehearsal": rehearsal })).await;
    assert!(reply.ok, "{payload}: {:?}", reply.error);
    let config = read(&world, ".git/config");
    assert!(config.contains("rerere") && !config.contains("evil"), "{config}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_place_git_learns_why_its_configuration_is_busy() {
    let world = world();
    let payload = in_place(&world, "git config rerere.enabled true").await;
    let denied = payload["denied"].to_string();
    assert!(denied.contains("Without `stdin`, `tty` and `background` git can change it"), "{payload}");
}

#[tokio::test(flavor = "multi_thread")]
async fn git_clone_copies_objects_with_several_names() {
    let world = world();
    nested(&world);
    std::fs::create_dir(world.path().join("copy")).unwrap();
    let done = std::process::Command::new("cp").args(["-al", "nested/.git", "copy"]).current_dir(world.path()).status();
    assert!(done.unwrap().success());
    let payload = shell(&world, "git clone -q --local nested clone").await;
    assert_ne!(payload["exit_code"], json!(0), "{payload}");
    assert!(payload["denied"].to_string().contains("`git clone` without `--local`"), "{payload}");
    let payload = shell(&world, "git clone -q nested clone").await;
    assert_eq!(payload["exit_code"], json!(0), "{payload}");
    assert_eq!(read(&world, "clone/b.txt"), "one\n");
}
