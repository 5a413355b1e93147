//! Hidden files of a repository, seen by commands that work in place: the committed version is mounted over each.

use serde_json::{Value, json};
use toolgate_testkit::{TestWorkspace, Tier, wait_until_async};

use super::{SECRET, has_decoy, read, shell_with, world};

/// Runs a script in place to its end.
async fn in_place(world: &TestWorkspace, command: &str) -> Value {
    shell_with(world, command, json!({ "stdin": true, "yield_ms": 600_000 })).await
}

const COMMANDS: &[&str] = &[
    "test -z \"$(git status --porcelain)\"",
    "git diff --exit-code",
    "echo two >> a.txt && git add -A && git commit -qm two && test -z \"$(git status --porcelain)\"",
    "echo two >> a.txt && git commit -qam two",
    "echo two >> a.txt && git stash -q -u && git stash pop -q && git diff --name-only | grep -qx a.txt",
    "git reset -q --hard",
    "echo two >> a.txt && git checkout -q .",
    "git clean -qfd",
    "git checkout -q -b new && git checkout -q main",
    "echo two >> a.txt && git commit -qam two && git checkout -q -b new HEAD~1 && echo b > b && git add -A && \
     git commit -qm b && git rebase -q main",
];

#[tokio::test(flavor = "multi_thread")]
async fn tracked_files_are_as_git_has_them() {
    for command in COMMANDS {
        let world = world();
        world.file("deep/.aws/config", "x\n");
        world.git(&["add", "-f", "deep"]);
        world.git(&["commit", "-q", "-m", "deep"]);
        let payload = in_place(&world, command).await;
        assert_eq!(payload["exit_code"], json!(0), "{command}: {payload}");
        assert_eq!(payload["changes"]["kept_aside"], Value::Null, "{command}: {payload}");
        assert!(!has_decoy(&world), "{command}");
        assert_eq!(
            (read(&world, ".env").as_str(), read(&world, "deep/.aws/config").as_str()),
            (SECRET, "x\n"),
            "{command}"
        );
        assert_eq!(world.git(&["status", "--porcelain"]).replace(" M a.txt\n", ""), "", "{command}");
        world.git(&["fsck", "--strict"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn git_finds_nothing_to_add_of_what_is_hidden() {
    for command in COMMANDS {
        let world = world();
        let (env, pem) = ("TOKEN=changed since\n", "-----BEGIN PRIVATE\n");
        world.file(".env", env).file("new.pem", pem).file(".aws/credentials", "key\n");
        let payload = in_place(&world, command).await;
        assert_eq!(payload["exit_code"], json!(0), "{command}: {payload}");
        assert_eq!(payload["changes"]["kept_aside"], Value::Null, "{command}: {payload}");
        assert!(!has_decoy(&world), "{command}");
        assert_eq!(
            (read(&world, ".env").as_str(), read(&world, "new.pem").as_str()),
            (env, pem),
            "{command}: {payload}"
        );
        assert_eq!(read(&world, ".aws/credentials"), "key\n", "{command}: {payload}");
        assert_eq!(read(&world, ".git/info/exclude"), ".toolgate/\ndo.sh\n", "{command}");
        let left = world.git(&["status", "--porcelain"]).replace(" M a.txt\n", "");
        assert_eq!(left, " M .env\n?? .aws/\n?? new.pem\n", "{command}");
        world.git(&["fsck", "--strict"]);
    }
}

/// What a person writes to a hidden file beside a command in place is neither seen by the command nor taken for its change.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_changes_a_hidden_file_beside_a_command() {
    let world = world();
    let session = world.session();
    let script =
        "touch started; until [ -e go ]; do sleep 0.02; done; grep -q committed .env && git diff --exit-code -- .env";
    world.file("do.sh", script);
    let args = json!({ "command": "sh do.sh", "background": true });
    let started = world.perform_in(&session, "shell", args).await.payload.unwrap();
    wait_until_async("the command runs", || world.path().join("started").exists()).await;
    world.file(".env", "TOKEN=new\n").file("go", "");
    let wait = json!({ "action": "wait", "process": started["process"], "offset": 0, "timeout_ms": 300_000 });
    let ended = loop {
        let payload = world.perform_in(&session, "process", wait.clone()).await.payload.unwrap();
        if payload["running"] == json!(false) {
            break payload;
        }
    };
    assert_eq!(ended["exit_code"], json!(0), "{ended}");
    assert_eq!(read(&world, ".env"), "TOKEN=new\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_mounted_cannot_be_written() {
    for command in ["echo mine > .env", "rm -f .env", "mv .env x", "echo mine > certs/server.pem"] {
        let world = world();
        let payload = in_place(&world, command).await;
        assert_ne!(payload["exit_code"], json!(0), "{command}: {payload}");
        assert_eq!(read(&world, ".env"), SECRET, "{command}: {payload}");
        assert_eq!(read(&world, "certs/server.pem"), "-----BEGIN\n", "{command}: {payload}");
    }
}

/// Git can't replace what is mounted: the reply says so, and what to do, which then works.
#[tokio::test(flavor = "multi_thread")]
async fn git_learns_why_a_hidden_file_is_busy() {
    for (command, is_noticed) in
        [("git checkout -q other", false), ("git reset -q --hard other", true), ("git merge -q other", true)]
    {
        let world = world();
        world.file("do.sh", command);
        let args = json!({ "command": "sh do.sh", "stdin": true, "yield_ms": 600_000 });
        let reply = world.perform("shell", args).await;
        let payload = reply.payload.unwrap();
        let (exit_code, told) = (payload["exit_code"].as_i64().unwrap(), payload.to_string());
        assert_eq!(exit_code != 0, is_noticed, "{command}: {payload}");
        assert!(told.contains("`.env` is hidden") && told.contains("without `stdin`, `tty`"), "{command}: {payload}");
        assert_eq!(read(&world, ".env"), SECRET, "{command}: {payload}");
        if !is_noticed {
            let undone = world.perform("undo", json!({ "call": reply.tool_call_id })).await;
            assert!(undone.ok, "{:?}", undone.error);
        }
        assert_eq!(world.git(&["status", "--porcelain", "-uno"]), "", "{command}: {payload}");
        let payload = shell_with(&world, command, json!({})).await;
        assert_eq!(payload["exit_code"], json!(0), "{command}: {payload}");
        assert_eq!(read(&world, ".env"), "TOKEN=other\n", "{command}: {payload}");
        world.git(&["fsck", "--strict"]);
    }
}

/// Bubblewrap has no overlay, so every command works in place.
#[tokio::test(flavor = "multi_thread")]
async fn bubblewrap_mounts_the_committed_versions_too() {
    let world = world().confined_by(Tier::Bubblewrap);
    world.file(".env", "TOKEN=changed since\n").file("new.pem", "-----BEGIN PRIVATE\n").file(".aws/credentials", "x\n");
    let command = "set -e; grep -q committed .env; if grep -q PRIVATE new.pem; then exit 1; fi; echo two >> a.txt; git add -A; \
                   git commit -qm two; git stash -q -u; git clean -qfd; git reset -q --hard; git status --porcelain";
    let payload = in_place(&world, command).await;
    assert_eq!((payload["exit_code"].clone(), payload["stdout"].clone()), (json!(0), json!("")), "{payload}");
    assert!(!has_decoy(&world), "{payload}");
    assert_eq!(read(&world, ".env"), "TOKEN=changed since\n");
    assert_eq!(world.git(&["status", "--porcelain"]), " M .env\n?? .aws/\n?? new.pem\n");
    assert_eq!(world.git(&["show", "HEAD:.env"]), SECRET);
}
