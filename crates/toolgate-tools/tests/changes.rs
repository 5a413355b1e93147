//! Changes under stress: many at once, killed half-way, on a full disk, undone.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_contract::Reply;
use toolgate_runtime::Session;
use toolgate_testkit::TestWorkspace;

fn world() -> TestWorkspace {
    TestWorkspace::new(toolgate_tools::all(), "")
}

fn payload(reply: Reply) -> Value {
    reply.payload.unwrap_or_else(|| panic!("{:?}", reply.error))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_tasks_on_one_file_and_on_many_lose_nothing() {
    let world = Arc::new(world());
    world.file("shared.txt", (0..16).map(|n| format!("slot {n:02}\n")).collect::<String>());
    let tasks: Vec<_> = (0..16)
        .map(|n| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                let session = world.session();
                let edit =
                    json!({"path": "shared.txt", "find": format!("slot {n:02}"), "replace": format!("done {n:02}")});
                payload(world.perform_in(&session, "edit", edit).await);
                for round in 0..4 {
                    let path = format!("own/{n}.txt");
                    let args = json!({"path": path, "content": format!("{round}\n"), "mode": "append"});
                    payload(world.perform_in(&session, "write", args).await);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let shared = std::fs::read_to_string(world.path().join("shared.txt")).unwrap();
    assert_eq!(shared, (0..16).map(|n| format!("done {n:02}\n")).collect::<String>());
    for n in 0..16 {
        assert_eq!(std::fs::read_to_string(world.path().join(format!("own/{n}.txt"))).unwrap(), "0\n1\n2\n3\n");
    }
}

#[tokio::test]
async fn a_write_over_what_changed_outside_is_refused_and_an_edit_is_rebased() {
    let world = world();
    let session = world.session();
    world.file("a.txt", "one\ntwo\n");
    payload(world.perform_in(&session, "read", json!({"path": "a.txt"})).await);
    world.file("a.txt", "one\ntwo\nthree\n");
    let write = world.perform_in(&session, "write", json!({"path": "a.txt", "content": "x"})).await;
    let error = write.error.unwrap();
    assert_eq!(error.code.as_str(), "stale_file");
    assert!(error.message.contains("outside this gate"), "{}", error.message);
    let edit =
        payload(world.perform_in(&session, "edit", json!({"path": "a.txt", "find": "two", "replace": "2"})).await);
    assert!(edit["note"].as_str().unwrap().contains("rebased"), "{edit}");
    assert_eq!(std::fs::read_to_string(world.path().join("a.txt")).unwrap(), "one\n2\nthree\n");

    let other = Session::new("other", "run_test", Arc::new(world.recorder()), world.run.artifacts.clone());
    payload(world.perform_in(&other, "read", json!({"path": "a.txt"})).await);
    let mine = world.perform_in(&session, "edit", json!({"path": "a.txt", "find": "one", "replace": "1"})).await;
    let call = mine.tool_call_id.clone();
    payload(mine);
    let theirs = world.perform_in(&other, "write", json!({"path": "a.txt", "content": "x"})).await;
    let message = theirs.error.unwrap().message;
    assert!(message.contains(&call), "the call that changed it is named: {message}");
}

#[tokio::test]
async fn a_touched_but_unchanged_file_is_the_same_file() {
    let world = world();
    let session = world.session();
    world.file("a.txt", "one\n");
    payload(world.perform_in(&session, "read", json!({"path": "a.txt"})).await);
    world.file("a.txt", "one\n");
    payload(world.perform_in(&session, "write", json!({"path": "a.txt", "content": "two\n"})).await);
}

#[tokio::test]
async fn a_patch_of_many_files_is_taken_back_whole_and_what_moved_on_is_left_alone() {
    let world = world();
    let session = world.approving_session();
    world.file("keep.txt", "keep\n").file("gone.txt", "gone\n").file("old.txt", "old\n");
    std::fs::set_permissions(world.path().join("gone.txt"), std::fs::Permissions::from_mode(0o750)).unwrap();
    let patch = "*** Begin Patch\n*** Update File: keep.txt\n@@\n-keep\n+kept\n*** Delete File: gone.txt\n\
                 *** Add File: new/file.txt\n+new\n*** Update File: old.txt\n*** Move to: moved.txt\n@@\n-old\n+moved\n*** End Patch\n";
    let reply = world.perform_in(&session, "patch", json!({"patch": patch})).await;
    let call = reply.tool_call_id.clone();
    assert_eq!(reply.artifacts.files_changed.len(), 5, "{reply:?}");
    payload(reply);
    assert!(!world.path().join("gone.txt").exists() && world.path().join("new/file.txt").exists());
    world.file("keep.txt", "changed by hand\n");
    let undone = payload(world.perform_in(&session, "undo", json!({"call": call})).await);
    assert_eq!(undone["refused"][0]["path"], "keep.txt", "{undone}");
    assert_eq!(undone["undone"], json!(["gone.txt", "moved.txt", "new", "new/file.txt", "old.txt"]));
    assert_eq!(std::fs::read_to_string(world.path().join("keep.txt")).unwrap(), "changed by hand\n");
    assert_eq!(std::fs::read_to_string(world.path().join("gone.txt")).unwrap(), "gone\n");
    assert_eq!(std::fs::metadata(world.path().join("gone.txt")).unwrap().permissions().mode() & 0o777, 0o750);
    assert!(!world.path().join("new/file.txt").exists() && !world.path().join("moved.txt").exists());
}

#[tokio::test]
async fn read_only_files_and_directories() {
    let world = world();
    world.file("file.txt", "old\n");
    std::fs::set_permissions(world.path().join("file.txt"), std::fs::Permissions::from_mode(0o444)).unwrap();
    payload(world.perform("write", json!({"path": "file.txt", "content": "new\n"})).await);
    let mode = std::fs::metadata(world.path().join("file.txt")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o444, "the mode is kept");
}

#[tokio::test]
async fn a_hard_link_is_replaced_and_not_written_through() {
    let world = world();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("target"), "outside\n").unwrap();
    std::fs::hard_link(outside.path().join("target"), world.path().join("link.txt")).unwrap();
    payload(world.perform("edit", json!({"path": "link.txt", "find": "outside", "replace": "inside"})).await);
    assert_eq!(std::fs::read_to_string(outside.path().join("target")).unwrap(), "outside\n");
    assert_eq!(std::fs::read_to_string(world.path().join("link.txt")).unwrap(), "inside\n");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_is_written_undo_restores_bytes_and_mode(before in any::<Vec<u8>>(), after in ".*", mode in 0o400u32..0o777) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = world();
            world.file("a", &before);
            let path = world.path().join("a");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let written = world.perform("write", json!({"path": "a", "content": after})).await;
            assert!(written.ok, "{written:?}");
            assert_eq!(std::fs::read(&path).unwrap(), after.as_bytes());
            let undone = world.perform("undo", json!({"call": written.tool_call_id})).await;
            assert_eq!(undone.ok, before != after.as_bytes(), "{undone:?}");
            assert_eq!(std::fs::read(&path).unwrap(), before);
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode);
        });
    }
}

#[tokio::test]
async fn a_moved_file_keeps_its_time_and_its_other_names() {
    let world = world();
    world.file("a", "moved\n").file("b", "replaced\n");
    let (a, b, c) = (world.path().join("a"), world.path().join("b"), world.path().join("deep/c"));
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    std::fs::File::options().append(true).open(&a).unwrap().set_modified(time).unwrap();
    let facts = |path: &std::path::Path| {
        let facts = std::fs::metadata(path).unwrap();
        (facts.modified().unwrap(), std::os::unix::fs::MetadataExt::ino(&facts), std::fs::read_to_string(path).unwrap())
    };
    let original = facts(&a);
    let session = world.approving_session();
    payload(world.perform_in(&session, "move", json!({"from": "a", "to": "b", "overwrite": true})).await);
    assert_eq!(facts(&b), original);
    std::fs::hard_link(&b, world.path().join("second")).unwrap();
    let moved = world.perform_in(&session, "move", json!({"from": "b", "to": "deep/c"})).await;
    let call = moved.tool_call_id.clone();
    payload(moved);
    assert_eq!((facts(&c), b.exists()), (original.clone(), false));
    // Two names of one file: `rename` would do nothing, and leave both.
    payload(world.perform_in(&session, "move", json!({"from": "second", "to": "deep/c", "overwrite": true})).await);
    assert_eq!((facts(&c).0, facts(&c).2), (original.0, original.2.clone()));
    assert!(!world.path().join("second").exists());
    let names: Vec<_> =
        std::fs::read_dir(world.path().join("deep")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names, ["c"], "nothing temporary is left");
    payload(world.perform_in(&session, "undo", json!({ "call": call })).await);
    assert_eq!((facts(&b).0, facts(&b).2), (original.0, original.2), "undo restores the time, too");
}

#[tokio::test]
async fn the_record_has_the_modes_that_directories_really_get() {
    let world = world();
    let shared = world.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    // What is made in such a directory has the bit, too.
    std::fs::set_permissions(&shared, std::os::unix::fs::PermissionsExt::from_mode(0o2775)).unwrap();
    let args = json!({"path": "shared/new/deep/f", "content": "x"});
    payload(world.perform_in(&world.approving_session(), "write", args).await);
    let mut made = 0;
    for event in world.events() {
        let toolgate_contract::EventPayload::FilesChanging { changes, .. } = event.payload else { continue };
        for change in changes {
            let facts = std::fs::metadata(world.path().join(&change.path)).unwrap();
            let mode = std::os::unix::fs::MetadataExt::mode(&facts);
            let recorded = change.after.unwrap();
            assert_eq!(recorded.permissions(), mode & 0o7777, "{}", change.path);
            made += usize::from(recorded.is_directory());
        }
    }
    assert_eq!(made, 2);
}

#[tokio::test]
async fn several_edits_are_one_change_or_none() {
    let world = world();
    world.file("a.txt", "one\ntwo\nthree\n");
    let edits = json!([
        { "find": "one", "replace": "1" },
        { "find": "1\ntwo", "replace": "1\n2" },
        { "find": "e", "replace": "E", "all": true },
    ]);
    let reply = world.perform("edit", json!({ "path": "a.txt", "edits": edits })).await;
    let call = reply.tool_call_id.clone();
    let told = payload(reply);
    assert_eq!((&told["replacements"], &told["first_line"]), (&json!(4), &json!(1)), "{told}");
    assert_eq!(std::fs::read_to_string(world.path().join("a.txt")).unwrap(), "1\n2\nthrEE\n");
    payload(world.perform("undo", json!({ "call": call })).await);
    assert_eq!(std::fs::read_to_string(world.path().join("a.txt")).unwrap(), "one\ntwo\nthree\n", "undone as one");

    let edits = json!([{ "find": "one", "replace": "1" }, { "find": "nowhere", "replace": "x" }]);
    let error = world.perform("edit", json!({ "path": "a.txt", "edits": edits })).await.error.unwrap();
    assert_eq!(error.code.as_str(), "no_match");
    assert!(error.message.starts_with("Edit 2 of 2: "), "{}", error.message);
    assert_eq!(std::fs::read_to_string(world.path().join("a.txt")).unwrap(), "one\ntwo\nthree\n");

    for args in [
        json!({ "path": "a.txt" }),
        json!({ "path": "a.txt", "find": "one" }),
        json!({ "path": "a.txt", "find": "one", "replace": "1", "edits": [{ "find": "two", "replace": "2" }] }),
        json!({ "path": "a.txt", "all": true, "edits": [{ "find": "two", "replace": "2" }] }),
    ] {
        let error = world.perform("edit", args.clone()).await.error.unwrap();
        assert_eq!(error.code.as_str(), "invalid_args", "{args}");
    }
}
