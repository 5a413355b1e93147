//! Hidden directories of a repository: commands see what is committed of them, and nothing else.

use serde_json::{Value, json};
use toolgate_testkit::TestWorkspace;

use super::{has_decoy, read, shell};

const CONFIG: &str = "[default]\nregion = eu\n";

/// A repository that tracks files in hidden directories: one that is on the list of sensitive paths, one that a rule hides.
fn world() -> TestWorkspace {
    let rules = "preset = 'full'\n[[rules]]\ndecision = 'deny'\npath = 'secrets/**'\nreason = 'Not for tools.'";
    let world = TestWorkspace::new(toolgate_tools::all(), rules).confined();
    world.git_init("do.sh\n");
    world.file(".aws/config", CONFIG).file("secrets/a/key.txt", "committed\n").file("a.txt", "one\n");
    world.git(&["add", "-f", ".aws", "secrets", "a.txt"]);
    world.git(&["commit", "-q", "-m", "base"]);
    world.git(&["checkout", "-q", "-b", "other"]);
    world.file("secrets/a/key.txt", "other\n").file("secrets/b/new.txt", "other\n");
    world.git(&["rm", "-q", "-r", ".aws"]);
    world.git(&["add", "secrets"]);
    world.git(&["commit", "-q", "-m", "other"]);
    world.git(&["checkout", "-q", "main"]);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn tracked_files_of_hidden_directories_are_as_git_has_them() {
    for command in [
        "test -z \"$(git status --porcelain)\"",
        "git diff --exit-code",
        "echo two >> a.txt && git add -A && git commit -qm two && test -z \"$(git status --porcelain)\"",
        "echo two >> a.txt && git commit -qam two",
        "echo two >> a.txt && git stash -q -u && git stash pop -q && git diff --name-only | grep -qx a.txt",
        "git reset -q --hard",
        "git clean -qfd",
        "git checkout -q other && test ! -e .aws && grep -q other secrets/a/key.txt && git checkout -q main",
        "echo two >> a.txt && git commit -qam two && git rebase -q other && git reset -q --hard main",
    ] {
        let world = world();
        let payload = shell(&world, command).await;
        assert_eq!(payload["exit_code"], json!(0), "{command}: {payload}");
        assert_eq!(payload["changes"]["kept_aside"], Value::Null, "{command}: {payload}");
        assert!(!has_decoy(&world), "{command}");
        let expected = if command.contains("rebase") { "other\n" } else { "committed\n" };
        assert_eq!(read(&world, "secrets/a/key.txt"), expected, "{command}");
        assert_eq!(world.path().join(".aws/config").exists(), !command.contains("rebase"), "{command}");
        assert_eq!(world.git(&["status", "--porcelain", "-uno"]).replace(" M a.txt\n", ""), "", "{command}");
        world.git(&["fsck", "--strict"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn git_moves_hidden_directories_between_branches() {
    let world = world();
    let payload = shell(&world, "git checkout -q other").await;
    assert_eq!((payload["exit_code"].clone(), payload["changes"]["kept_aside"].clone()), (json!(0), Value::Null));
    assert!(!world.path().join(".aws").exists(), "{payload}");
    assert_eq!(read(&world, "secrets/b/new.txt"), "other\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_else_of_a_hidden_directory_is_seen_or_touched() {
    let world = world();
    let (credentials, changed) = ("[default]\nkey = SECRET1\n", "committed\nSECRET2\n");
    world
        .file(".aws/credentials", credentials)
        .file(".aws/cache/token", "SECRET3\n")
        .file("secrets/a/key.txt", changed);
    world.file("secrets/deep/er/token", "SECRET4\n");
    let payload = shell(&world, "git grep --no-index SECRE[T]; grep -r SECRE[T] .aws secrets; cat .aws/config").await;
    let output = payload["stdout"].as_str().unwrap();
    assert!(!output.contains("SECRET") && output.ends_with(CONFIG), "{payload}");
    for command in [
        "test -z \"$(git status --porcelain)\"",
        "git add -A && git commit -q --allow-empty -m all",
        "git commit -qam all --allow-empty",
        "echo x > x && git stash -q -u && git stash pop -q && rm x",
        "git reset -q --hard",
        "git clean -qfd",
        "git diff --exit-code",
    ] {
        let payload = shell(&world, command).await;
        assert_eq!(payload["exit_code"], json!(0), "{command}: {payload}");
        assert_eq!(payload["changes"]["kept_aside"], Value::Null, "{command}: {payload}");
        assert!(!has_decoy(&world), "{command}");
        for (path, content) in
            [(".aws/credentials", credentials), ("secrets/a/key.txt", changed), ("secrets/deep/er/token", "SECRET4\n")]
        {
            assert_eq!(read(&world, path), content, "{command}");
        }
        let expected = "M secrets/a/key.txt\n?? .aws/cache/\n?? .aws/credentials\n?? secrets/deep/\n";
        assert_eq!(world.git(&["status", "--porcelain"]).trim_start(), expected, "{command}");
        world.git(&["fsck", "--strict"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_git_changes_a_hidden_directory() {
    for command in
        ["rm -rf .aws", "echo mine > .aws/config", "echo mine > .aws/mine", "echo mine > .aws/config; git add -A"]
    {
        let world = world();
        let payload = shell(&world, command).await;
        let aside = payload["changes"]["kept_aside"].to_string();
        assert!(aside.contains(".aws/"), "{command}: {payload}");
        assert_eq!(read(&world, ".aws/config"), CONFIG, "{command}");
        assert!(!world.path().join(".aws/mine").exists(), "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_without_index_and_without_info_ignores_what_is_hidden() {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined();
    world.git(&["init", "-q", "-b", "main", "--template="]);
    world.file(".env", "TOKEN=x\n").file(".aws/credentials", "x\n");
    let payload = shell(&world, "git clean -qfd -e do.sh && git status --porcelain && git add do.sh").await;
    assert_eq!((payload["exit_code"].clone(), payload["stdout"].clone()), (json!(0), json!("?? do.sh\n")), "{payload}");
    assert!(!world.path().join(".git/info").exists(), "nothing of it stays");
    assert_eq!(world.git(&["ls-files"]), "do.sh\n");
}
