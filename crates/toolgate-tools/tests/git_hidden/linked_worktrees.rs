//! Hidden files in linked worktrees and in submodules, where `.git` is a file that names the git directory.

use serde_json::{Value, json};
use toolgate_testkit::TestWorkspace;

use super::{SECRET, has_decoy, read, shell, world};

/// A repository with a linked worktree `tree`, on a branch of its own.
fn with_worktree() -> TestWorkspace {
    let world = world();
    world.git(&["worktree", "add", "-q", "-b", "tree", "tree", "main"]);
    world
}

/// A repository with a submodule `sub`, which tracks a hidden file.
fn with_submodule() -> TestWorkspace {
    let world = world();
    world.git(&["init", "-q", "-b", "main", "library"]);
    world.file("library/.env", SECRET).file("library/a.txt", "one\n");
    world.git(&["-C", "library", "add", "-f", ".env", "a.txt"]);
    let author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    world.git(&[&author[..], &["-C", "library", "commit", "-q", "-m", "library"]].concat());
    world.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./library", "sub"]);
    for (key, value) in [("user.name", "Ada"), ("user.email", "ada@example.org")] {
        world.git(&["-C", "sub", "config", key, value]);
    }
    std::fs::remove_dir_all(world.path().join("library")).unwrap();
    world.git(&["commit", "-q", "-m", "submodule"]);
    world
}

const COMMANDS: &[&str] = &[
    "test -z \"$(git status --porcelain)\"",
    "git diff --exit-code",
    "echo two >> a.txt && git add -A && git commit -qm two && test -z \"$(git status --porcelain)\"",
    "echo two >> a.txt && git commit -qam two",
    "echo two >> a.txt && git stash -q -u && git stash pop -q && git checkout -q a.txt",
    "git reset -q --hard",
    "git clean -qfd",
    "git checkout -q -b new && git checkout -q -",
    "echo two >> a.txt && git commit -qam two && git rebase -q HEAD~1",
];

#[tokio::test(flavor = "multi_thread")]
async fn tracked_files_are_as_git_has_them() {
    for (make, directory) in [(with_worktree as fn() -> TestWorkspace, "tree"), (with_submodule, "sub")] {
        for command in COMMANDS {
            let world = make();
            let payload = shell(&world, &format!("cd {directory} && {command}")).await;
            assert_eq!(payload["exit_code"], json!(0), "{directory}: {command}: {payload}");
            assert_eq!(payload["changes"]["kept_aside"], Value::Null, "{directory}: {command}: {payload}");
            assert!(!has_decoy(&world), "{directory}: {command}");
            assert_eq!(read(&world, &format!("{directory}/.env")), SECRET, "{directory}: {command}");
            assert_eq!(world.git(&["-C", directory, "status", "--porcelain"]), "", "{directory}: {command}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_and_untracked_files_are_none_of_gits_business() {
    for (make, directory) in [(with_worktree as fn() -> TestWorkspace, "tree"), (with_submodule, "sub")] {
        for command in COMMANDS {
            let world = make();
            let (env, pem) = (format!("{directory}/.env"), format!("{directory}/new.pem"));
            world.file(&env, "TOKEN=changed since\n").file(&pem, "-----BEGIN PRIVATE\n");
            let payload = shell(&world, &format!("cd {directory} && {command}")).await;
            assert_eq!(payload["exit_code"], json!(0), "{directory}: {command}: {payload}");
            assert_eq!(payload["changes"]["kept_aside"], Value::Null, "{directory}: {command}: {payload}");
            assert!(!has_decoy(&world), "{directory}: {command}");
            assert_eq!(
                (read(&world, &env).as_str(), read(&world, &pem).as_str()),
                ("TOKEN=changed since\n", "-----BEGIN PRIVATE\n"),
                "{directory}: {command}"
            );
            assert_eq!(world.git(&["-C", directory, "show", "HEAD:.env"]), SECRET, "{directory}: {command}");
            let left = world.git(&["-C", directory, "status", "--porcelain"]);
            assert_eq!(left, " M .env\n?? new.pem\n", "{directory}: {command}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn git_moves_a_committed_file_in_a_linked_worktree() {
    let world = with_worktree();
    let payload = shell(&world, "cd tree && git checkout -q other").await;
    assert_eq!((payload["exit_code"].clone(), payload["changes"]["kept_aside"].clone()), (json!(0), Value::Null));
    assert_eq!((read(&world, "tree/.env"), read(&world, ".env")), ("TOKEN=other\n".into(), SECRET.into()));
}
