//! Hidden files in linked worktrees and in submodules, where `.git` is a file that names the git directory.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_contract::{Call, Right};
use toolgate_testkit::TestWorkspace;

use super::{SECRET, has_decoy, read, shell, shell_with, world};

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

/// A workspace that is a linked worktree of a repository outside of it, with a hidden file that git tracks.
fn of_repository(repository: &Path, configuration: &str) -> TestWorkspace {
    let world = TestWorkspace::new(toolgate_tools::all(), &format!("preset = 'full'\n{configuration}"));
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git").args(args).current_dir(repository).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.name", "Ada"]);
    git(&["config", "user.email", "ada@example.org"]);
    std::fs::write(repository.join(".env"), SECRET).unwrap();
    std::fs::write(repository.join("a.txt"), "one\n").unwrap();
    git(&["add", "-f", ".env", "a.txt"]);
    git(&["commit", "-q", "-m", "base"]);
    std::fs::write(repository.join(".git/info/exclude"), ".toolgate/\ndo.sh\n").unwrap();
    // Git makes worktrees in new directories alone.
    git(&["worktree", "add", "-q", "-b", "tree", "tree"]);
    for name in [".git", ".env", "a.txt"] {
        std::fs::copy(repository.join("tree").join(name), world.path().join(name)).unwrap();
    }
    std::fs::remove_dir_all(repository.join("tree")).unwrap();
    git(&["worktree", "repair", world.path().to_str().unwrap()]);
    world.confined()
}

/// What git can't write outside of the roots is explained, not offered, and nothing of it is half done.
#[tokio::test(flavor = "multi_thread")]
async fn a_git_directory_outside_of_the_roots_is_only_read_and_the_reply_says_so() {
    for command in [
        "echo two >> a.txt && git add -A && git commit -qm two",
        "echo two >> a.txt && git commit -qam two",
        "echo two >> a.txt && git stash -q",
        "echo two >> a.txt && git reset -q --hard",
        "git checkout -q -b new",
        "git branch new",
    ] {
        for in_place in [false, true] {
            let repository = tempfile::tempdir_in("/var/tmp").unwrap();
            let world = of_repository(repository.path(), "");
            let more = json!({ "stdin": in_place, "yield_ms": 600_000 });
            let payload = shell_with(&world, &format!("git log --format=%s && {command}"), more).await;
            assert_ne!(payload["exit_code"], json!(0), "{command}: {payload}");
            assert!(payload["stdout"].as_str().unwrap().starts_with("base\n"), "{command}: {payload}");
            let git = repository.path().join(".git");
            let told = format!("`{}`, is outside of the roots", git.display());
            assert!(payload["denied"].to_string().contains(&told), "{command}: {payload}");
            assert!(!payload.to_string().contains("fs.write"), "{command}: {payload}");
            assert!(!has_decoy(&world), "{command}: {payload}");
            assert_eq!(read(&world, ".env"), SECRET, "{command}: {payload}");
            assert_eq!(world.git(&["branch", "--format=%(refname:short)"]), "main\ntree\n", "{command}: {payload}");
            assert_eq!(world.git(&["status", "--porcelain"]).replace(" M a.txt\n", ""), "", "{command}: {payload}");
            world.git(&["fsck", "--strict"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_to_write_there_is_refused_where_a_decoy_would_be_committed() {
    for inner in [None, Some(".git/objects"), Some(".git/worktrees")] {
        let repository = tempfile::tempdir_in("/var/tmp").unwrap();
        let world = of_repository(repository.path(), "");
        let granted = inner.map_or(repository.path().to_owned(), |inner| repository.path().join(inner));
        let call = Call {
            requested_permissions: vec![Right::Write { path: granted.display().to_string() }],
            ..world.call("shell", json!({ "command": "git add -A && git commit -qm two" }))
        };
        let reply = world.gate.perform(call, &world.approving_session(), Default::default()).await;
        assert!(!has_decoy(&world), "{inner:?}: {:?}", reply.payload);
        let message = reply.error.unwrap().message;
        assert!(message.contains("is outside of the roots"), "{inner:?}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_git_directory_outside_that_is_a_root_is_as_in_the_workspace() {
    for command in COMMANDS {
        let repository = tempfile::tempdir_in("/var/tmp").unwrap();
        let git = repository.path().join(".git");
        std::fs::create_dir(&git).unwrap();
        let root = format!("[[roots]]\npath = '{}'\naccess = 'write'\n", git.display());
        let world = of_repository(repository.path(), &root);
        let payload = shell(&world, command).await;
        assert_eq!(payload["exit_code"], json!(0), "{command}: {payload}");
        assert!(!has_decoy(&world), "{command}");
        assert_eq!(read(&world, ".env"), SECRET, "{command}");
        assert_eq!(world.git(&["status", "--porcelain"]), "", "{command}");
        world.git(&["fsck", "--strict"]);
    }
}
