//! Hidden files in a git repository, with real git: commands see what git has committed of them anyway, and never a decoy in
//! an index, in an object or in the workspace.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

#[path = "git_hidden/directories.rs"]
mod directories;
#[path = "git_hidden/in_place.rs"]
mod in_place;
#[path = "git_hidden/linked_worktrees.rs"]
mod linked_worktrees;

use serde_json::{Value, json};
use toolgate_contract::DECOY_CONTENT;
use toolgate_testkit::TestWorkspace;

const SECRET: &str = "TOKEN=committed\n";

/// A repository that tracks two files which policy hides, on two branches.
fn world() -> TestWorkspace {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined();
    world.git_init(".toolgate/\ndo.sh\n");
    world.file(".env", SECRET).file("certs/server.pem", "-----BEGIN\n").file("a.txt", "one\n");
    world.git(&["add", "-f", ".env", "certs", "a.txt"]);
    world.git(&["commit", "-q", "-m", "base"]);
    world.git(&["checkout", "-q", "-b", "other"]);
    world.file(".env", "TOKEN=other\n");
    world.git(&["commit", "-q", "-am", "other"]);
    world.git(&["checkout", "-q", "main"]);
    world
}

fn read(world: &TestWorkspace, path: &str) -> String {
    std::fs::read_to_string(world.path().join(path)).unwrap()
}

async fn shell(world: &TestWorkspace, command: &str) -> Value {
    shell_with(world, command, json!({})).await
}

async fn shell_with(world: &TestWorkspace, command: &str, more: Value) -> Value {
    world.run_script(command, more).await
}

/// Whether git has a decoy in any object.
fn has_decoy(world: &TestWorkspace) -> bool {
    let hashed = world.path().join("decoy-for-comparison");
    std::fs::write(&hashed, DECOY_CONTENT).unwrap();
    let id = world.git(&["hash-object", "decoy-for-comparison"]);
    std::fs::remove_file(hashed).unwrap();
    let objects = world.git(&["cat-file", "--batch-check", "--batch-all-objects"]);
    objects.contains(id.trim())
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_see_committed_files_as_git_has_them() {
    for command in [
        "test -z \"$(git status --porcelain)\"",
        "git diff --exit-code",
        "echo two >> a.txt && git add -A && git commit -qm two && test -z \"$(git status --porcelain)\"",
        "echo two >> a.txt && git commit -qam two",
        "echo two >> a.txt && git stash -q && git stash pop -q && git diff --name-only | grep -qx a.txt",
        "git reset -q --hard",
        "git clean -qfd",
        "git checkout -q other && grep -q other .env && git checkout -q main",
        "echo two >> a.txt && git commit -qam two && git rebase -q other",
    ] {
        let world = world();
        let payload = shell(&world, command).await;
        assert_eq!(payload["exit_code"], json!(0), "{command}: {payload}");
        assert_eq!(payload["changes"]["kept_aside"], Value::Null, "{command}: {payload}");
        assert!(!has_decoy(&world), "{command}");
        let expected = if command.contains("rebase") { "TOKEN=other\n" } else { SECRET };
        assert_eq!(read(&world, ".env"), expected, "{command}");
        assert_eq!(world.git(&["diff", "--name-only", "HEAD", "--", ".env", "certs"]), "", "{command}");
        world.git(&["fsck", "--strict"]);
    }
}

/// A key store may have megabytes; it is seen as a small file is, on an overlay and in place.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_committed_file_is_seen_as_git_has_it() {
    let large = |word: &str| format!("{word}\n").repeat(3 * 1024 * 1024 / (word.len() + 1));
    for in_place in [false, true] {
        let world = world();
        world.file("store.p12", large("committed")).file("changed.p12", large("committed too"));
        world.git(&["add", "-f", "store.p12", "changed.p12"]);
        world.git(&["commit", "-q", "-m", "stores"]);
        let mine = large("changed since") + "then\n";
        world.file("changed.p12", &mine);
        let command = "head -qn 1 *.p12; git status --porcelain; echo two >> a.txt; git add -A; git commit -qm two";
        let payload = shell_with(&world, command, json!({ "stdin": in_place, "yield_ms": 600_000 })).await;
        let seen = json!("committed too\ncommitted\n");
        assert_eq!((&payload["exit_code"], &payload["stdout"]), (&json!(0), &seen), "in place: {in_place}");
        assert_eq!(payload["changes"]["kept_aside"], Value::Null, "in place: {in_place}");
        assert!(!has_decoy(&world) && read(&world, "changed.p12") == mine, "in place: {in_place}");
        assert_eq!(world.git(&["status", "--porcelain"]), " M changed.p12\n", "in place: {in_place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn git_moves_a_committed_file_between_branches() {
    let world = world();
    let payload = shell(&world, "git checkout -q other").await;
    assert_eq!((payload["exit_code"].clone(), payload["changes"]["kept_aside"].clone()), (json!(0), Value::Null));
    assert_eq!((read(&world, ".env"), world.git(&["status", "--porcelain"])), ("TOKEN=other\n".into(), String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_git_changes_a_committed_file() {
    for command in ["echo mine > .env", "echo mine > .env && git add .env", "rm .env"] {
        let world = world();
        let payload = shell(&world, command).await;
        assert_eq!(read(&world, ".env"), SECRET, "{command}: {payload}");
        let aside = payload["changes"]["kept_aside"].as_array().unwrap_or_else(|| panic!("{command}: {payload}"));
        assert!(aside.iter().any(|one| one["path"] == ".env"), "{command}: {payload}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decoy_reaches_no_object_no_index_and_not_the_workspace() {
    for command in
        ["git add -f secret.pem", "git add -f secret.pem && git commit -qm leak && git gc -q", "cp secret.pem copy.txt"]
    {
        let world = world();
        world.file("secret.pem", "-----BEGIN PRIVATE\n");
        let head = world.git(&["rev-parse", "HEAD"]);
        let payload = shell(&world, command).await;
        assert_eq!(payload["exit_code"], json!(0), "{command}: {payload}");
        let aside = payload["changes"]["kept_aside"].to_string();
        assert!(aside.contains("decoy"), "{command}: {payload}");
        assert!(!has_decoy(&world) && !world.path().join("copy.txt").exists(), "{command}");
        assert_eq!(
            (world.git(&["rev-parse", "HEAD"]), world.git(&["status", "--porcelain"])),
            (head, "?? secret.pem\n".into())
        );
        assert_eq!(read(&world, "secret.pem"), "-----BEGIN PRIVATE\n");
        world.git(&["fsck", "--strict"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn git_finds_nothing_to_add_of_what_is_hidden() {
    for command in [
        "echo new > new.txt && git add -A && git commit -qm all",
        "git commit -qam all --allow-empty",
        "git stash -q -u; git stash pop -q; true",
        "git reset -q --hard",
        "git clean -qfd",
        "git checkout -q other; true",
        "git diff --exit-code",
    ] {
        let world = world();
        let (env, pem) = ("TOKEN=changed since\n", "-----BEGIN PRIVATE\n");
        world.file(".env", env).file("new.pem", pem);
        let payload = shell(&world, command).await;
        assert_eq!(payload["exit_code"], json!(0), "{command}: {payload}");
        assert!(!has_decoy(&world), "{command}");
        assert_eq!(
            (read(&world, ".env").as_str(), read(&world, "new.pem").as_str()),
            (env, pem),
            "{command}: {payload}"
        );
        assert_eq!(read(&world, ".git/info/exclude"), ".toolgate/\ndo.sh\n", "{command}");
        assert_eq!(world.git(&["ls-files", "new.pem"]), "", "{command}");
        assert!(!world.git(&["show", "HEAD:.env"]).contains("changed since"), "{command}");
        world.git(&["fsck", "--strict"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_a_command_adds_to_what_git_ignores_are_its_own() {
    let world = world();
    world.file("new.pem", "-----BEGIN PRIVATE\n");
    shell(&world, "echo build/ >> .git/info/exclude").await;
    assert_eq!(read(&world, ".git/info/exclude"), ".toolgate/\ndo.sh\nbuild/\n");
}
