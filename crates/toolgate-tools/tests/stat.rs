//! `stat` through the gate: what is told about files, directories and links, and about what policy hides.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::{Value, json};
use toolgate_contract::sha256;
use toolgate_testkit::TestWorkspace;

fn world() -> TestWorkspace {
    TestWorkspace::new(toolgate_tools::all(), "")
}

async fn stat(world: &TestWorkspace, path: &str) -> Value {
    let reply = world.perform("stat", json!({ "path": path })).await;
    reply.payload.unwrap_or_else(|| panic!("{:?}", reply.error))
}

#[tokio::test]
async fn a_file_is_described_as_the_file_system_knows_it() {
    let world = world();
    world.file("dir/notes.md", "one\ntwo\n");
    let path = world.path().join("dir/notes.md");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let found = std::fs::metadata(&path).unwrap();
    let told = stat(&world, "dir/notes.md").await;
    let expected = json!({
        "kind": "file", "size": 8, "mode": "640", "user": found.uid(), "group": found.gid(), "links": 1,
        "mime": "text/markdown", "lines": 2, "sha256": sha256("one\ntwo\n"),
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&told[field], value, "{field}: {told}");
    }
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let told = stat(&world, "dir/notes.md").await;
    assert_eq!((&told["modified"], told.get("target")), (&json!("1970-01-01T00:00:00Z"), None));
    for time in ["accessed", "changed"] {
        assert!(told[time].as_str().unwrap().ends_with('Z'), "{told}");
    }
}

#[tokio::test]
async fn a_link_is_described_itself_wherever_it_leads() {
    let world = world();
    world.file("a.txt", "a\n").file("real/b.txt", "b\n");
    symlink("a.txt", world.path().join("to_file")).unwrap();
    symlink("/etc/passwd", world.path().join("outside")).unwrap();
    symlink("nowhere", world.path().join("dangling")).unwrap();
    symlink("real", world.path().join("linked")).unwrap();
    for (path, target) in [("to_file", "a.txt"), ("outside", "/etc/passwd"), ("dangling", "nowhere")] {
        let told = stat(&world, path).await;
        assert_eq!((&told["kind"], &told["target"]), (&json!("link"), &json!(target)), "{told}");
        assert!(told.get("sha256").is_none() && told.get("mime").is_none(), "nothing of the target: {told}");
    }
    let through = stat(&world, "linked/b.txt").await;
    assert_eq!((&through["kind"], &through["lines"]), (&json!("file"), &json!(1)), "{through}");
}

#[tokio::test]
async fn directories_binary_files_and_missing_ones() {
    let world = world();
    world.file("dir/a.bin", b"\x7FELF\x02\0\0").file("empty", "");
    let told = stat(&world, "dir").await;
    assert_eq!((&told["kind"], told.get("mime")), (&json!("folder"), None));
    assert_eq!(stat(&world, ".").await["kind"], "folder");
    let told = stat(&world, "dir/a.bin").await;
    assert_eq!((&told["mime"], told.get("lines")), (&json!("application/x-executable"), None));
    assert_eq!(told["sha256"], sha256(b"\x7FELF\x02\0\0"));
    let told = stat(&world, "empty").await;
    assert_eq!((&told["lines"], &told["mime"]), (&json!(0), &json!("text/plain")));
    let missing = world.perform("stat", json!({ "path": "missing" })).await.error.unwrap();
    assert_eq!(missing.code.as_str(), "not_found");
}

#[tokio::test]
async fn what_policy_hides_is_not_described() {
    let world = world();
    world.file(".env", "KEY=1\n");
    symlink(".env", world.path().join("alias")).unwrap();
    std::fs::hard_link(world.path().join(".env"), world.path().join("twin")).unwrap();
    for path in [".env", "twin"] {
        let error = world.perform("stat", json!({ "path": path })).await.error.unwrap();
        assert_eq!(error.code.as_str(), "sensitive_path", "{path}: {}", error.message);
    }
    assert_eq!(stat(&world, "alias").await["target"], ".env");
    let error = world.perform("stat", json!({ "path": "../outside" })).await.error.unwrap();
    assert_eq!(error.code.as_str(), "path_outside_workspace");
}
