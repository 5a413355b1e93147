//! What undo restores beside content: directories, modes, times; and what it leaves alone and says so.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolgate_contract::Reply;
use toolgate_testkit::TestWorkspace;

fn world() -> TestWorkspace {
    TestWorkspace::new(toolgate_tools::all(), "")
}

async fn perform(world: &TestWorkspace, tool: &str, args: Value) -> (String, Value) {
    let Reply { tool_call_id, payload, error, .. } = world.perform_in(&world.approving_session(), tool, args).await;
    (tool_call_id, payload.unwrap_or_else(|| panic!("{error:?}")))
}

async fn undo(world: &TestWorkspace, call: String) -> Value {
    perform(world, "undo", json!({ "call": call })).await.1
}

/// Undoes everything of the only run.
async fn undo_run(world: &TestWorkspace) -> Value {
    let run = fs::read_dir(world.path().join(".toolgate/runs")).unwrap().next().unwrap().unwrap();
    perform(world, "undo", json!({ "run": run.file_name().into_string().unwrap() })).await.1
}

/// Everything beneath a directory, with mode, time and content.
fn tree(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(path) = pending.pop() {
        for entry in fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()) {
            let facts = fs::symlink_metadata(&entry).unwrap();
            let (mode, shown) = (facts.permissions().mode(), entry.strip_prefix(directory).unwrap().to_owned());
            match facts.is_dir() {
                true if shown.starts_with(".toolgate") => continue,
                true => pending.push(entry),
                false if facts.is_file() => found.push(format!("{shown:?} {:?}", facts.modified().unwrap())),
                false => {}
            }
            let content = if facts.is_file() { fs::read(directory.join(&shown)).unwrap() } else { Vec::new() };
            found.push(format!("{shown:?} {mode:o} {content:?}"));
        }
    }
    found.sort();
    found
}

fn set_time(path: &Path, seconds: u64) {
    File::options()
        .append(true)
        .open(path)
        .unwrap()
        .set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
        .unwrap();
}

#[tokio::test]
async fn a_deleted_directory_comes_back_whole() {
    let world = world();
    world.file("e/f", "1\n").file("e/sub/g", "2\n");
    fs::create_dir_all(world.path().join("e/empty/inner")).unwrap();
    fs::set_permissions(world.path().join("e/empty"), Permissions::from_mode(0o750)).unwrap();
    std::os::unix::fs::symlink("nowhere", world.path().join("e/link")).unwrap();
    set_time(&world.path().join("e/f"), 1_000_000);
    let before = tree(world.path());
    let (call, _) = perform(&world, "delete", json!({"path": "e", "recursive": true})).await;
    assert_eq!(tree(world.path()), Vec::<String>::new());
    let undone = undo(&world, call).await;
    assert_eq!(undone["refused"], json!([]), "{undone}");
    assert_eq!(tree(world.path()), before);
}

#[tokio::test]
async fn an_empty_directory_is_deleted_on_record() {
    let world = world();
    fs::create_dir(world.path().join("empty")).unwrap();
    let (call, _) = perform(&world, "delete", json!({"path": "empty", "recursive": true})).await;
    assert!(!world.path().join("empty").exists());
    undo(&world, call).await;
    assert!(world.path().join("empty").is_dir());
}

#[tokio::test]
async fn directories_that_somebody_removed_are_made_again() {
    let world = world();
    world.file("a/b/f", "1\n");
    let (call, _) = perform(&world, "delete", json!({"path": "a/b/f"})).await;
    fs::remove_dir(world.path().join("a/b")).unwrap();
    fs::remove_dir(world.path().join("a")).unwrap();
    undo(&world, call).await;
    assert_eq!(fs::read_to_string(world.path().join("a/b/f")).unwrap(), "1\n");
}

#[tokio::test]
async fn directories_that_a_write_or_a_move_made_go_with_it_if_they_are_empty() {
    let world = world();
    world.file("old.txt", "old\n");
    let (written, _) = perform(&world, "write", json!({"path": "new/deep/file.txt", "content": "x\n"})).await;
    let (moved, _) = perform(&world, "move", json!({"from": "old.txt", "to": "moved/there.txt"})).await;
    let undone = undo(&world, moved).await;
    assert!(undone["undone"].as_array().unwrap().contains(&json!("moved")), "{undone}");
    assert!(!world.path().join("moved").exists() && world.path().join("old.txt").exists());
    world.file("new/by hand.txt", "mine\n");
    let undone = undo(&world, written).await;
    assert!(undone["undone"].as_array().unwrap().contains(&json!("new/deep")), "{undone}");
    assert_eq!(undone["refused"][0]["path"], "new", "{undone}");
    assert!(!world.path().join("new/deep").exists());
    assert_eq!(fs::read_to_string(world.path().join("new/by hand.txt")).unwrap(), "mine\n");
}

#[tokio::test]
async fn a_mode_that_somebody_set_since_is_kept() {
    let world = world().confined();
    world.file("a.sh", "old\n").file("b.sh", "b\n");
    let path = world.path().join("a.sh");
    let (call, _) = perform(&world, "write", json!({"path": "a.sh", "content": "new\n"})).await;
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    undo(&world, call).await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);

    let (call, payload) = perform(&world, "shell", json!({"command": "chmod 700 b.sh"})).await;
    assert_eq!(payload["changes"]["paths"], json!(["~b.sh"]), "{payload}");
    fs::set_permissions(world.path().join("b.sh"), Permissions::from_mode(0o711)).unwrap();
    let refused = world.perform_in(&world.approving_session(), "undo", json!({"call": call})).await.error.unwrap();
    assert!(refused.details.unwrap().to_string().contains("The mode of `b.sh`"));
    fs::set_permissions(world.path().join("b.sh"), Permissions::from_mode(0o700)).unwrap();
    undo(&world, call).await;
    assert_eq!(fs::metadata(world.path().join("b.sh")).unwrap().permissions().mode() & 0o777, 0o644);
}

#[tokio::test]
async fn a_directory_that_was_made_read_only_is_writable_again() {
    let world = world().confined();
    world.file("dir/a", "a\n");
    for more in [json!({}), json!({"stdin": true})] {
        let mut args = json!({"command": "chmod a-w dir; chmod 000 dir/a"});
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (call, payload) = perform(&world, "shell", args).await;
        assert_eq!(payload["changes"]["paths"], json!(["~dir", "~dir/a"]), "{payload}");
        undo(&world, call).await;
        assert_eq!(tree(world.path())[0], "\"dir\" 40755 []");
        assert_eq!(fs::metadata(world.path().join("dir/a")).unwrap().permissions().mode() & 0o777, 0o644);
    }
}

#[tokio::test]
async fn a_touch_alone_is_named_and_undone() {
    let world = world().confined();
    world.file("a.txt", "a\n").file("b.txt", "b\n");
    set_time(&world.path().join("a.txt"), 1_000_000);
    let before = tree(world.path());
    for options in [json!({"command": "touch a.txt"}), json!({"command": "touch a.txt", "stdin": true})] {
        let (call, payload) = perform(&world, "shell", options).await;
        assert_eq!(payload["changes"]["paths"], json!(["~a.txt"]), "{payload}");
        assert_ne!(tree(world.path()), before);
        undo(&world, call).await;
        assert_eq!(tree(world.path()), before);
    }
}

#[tokio::test]
async fn a_long_list_of_changed_files_says_how_much_is_missing() {
    let world = world().confined();
    let args = json!({"command": "for i in $(seq 230); do echo $i > f$i; done"});
    let reply = world.perform_in(&world.approving_session(), "shell", args).await;
    assert_eq!(reply.artifacts.files_changed.len() + reply.artifacts.more_files_changed, 230, "{reply:?}");
    assert!(reply.artifacts.more_files_changed > 0);
}

#[tokio::test]
async fn a_deletion_that_undo_could_not_keep_says_so_beforehand() {
    let world = TestWorkspace::new(toolgate_tools::all(), "[undo]\nquota_bytes = 1000\n");
    world.file("large/a", vec![1; 600]).file("large/b", vec![2; 600]);
    let refused =
        world.perform_in(&world.approving_session(), "delete", json!({"path": "large", "recursive": true})).await;
    let error = refused.error.unwrap();
    assert!(error.message.contains("can't be undone") && error.hint.unwrap().contains("permanently"));
    assert!(world.path().join("large/a").exists());
    perform(&world, "delete", json!({"path": "large", "recursive": true, "permanently": true})).await;
    assert!(!world.path().join("large").exists());
}

#[tokio::test]
async fn owners_are_restored_where_we_may() {
    if !is_root() {
        return toolgate_testkit::skip("not-root", "only root can give files to others");
    }
    let world = world();
    world.file("theirs", "x\n");
    std::os::unix::fs::chown(world.path().join("theirs"), Some(12_345), Some(12_346)).unwrap();
    let (call, _) = perform(&world, "delete", json!({"path": "theirs"})).await;
    undo(&world, call).await;
    assert_eq!(owner(&world.path().join("theirs")), (12_345, 12_346));
}

fn owner(path: &Path) -> (u32, u32) {
    let found = fs::metadata(path).unwrap();
    (std::os::unix::fs::MetadataExt::uid(&found), std::os::unix::fs::MetadataExt::gid(&found))
}

#[tokio::test]
async fn what_a_command_removed_in_place_belongs_to_its_owner_again() {
    if !is_root() {
        return toolgate_testkit::skip("not-root", "only root can give files to others");
    }
    let world = world().confined();
    world.file("theirs/f", "x\n");
    let (directory, file) = (world.path().join("theirs"), world.path().join("theirs/f"));
    for path in [&directory, &file] {
        std::os::unix::fs::chown(path, Some(12_345), Some(12_346)).unwrap();
    }
    fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    let (call, payload) = perform(&world, "shell", json!({"command": "rm -r theirs", "stdin": true})).await;
    assert_eq!(payload["changes"]["paths"], json!(["-theirs", "-theirs/f"]), "{payload}");
    undo(&world, call).await;
    assert_eq!([owner(&directory), owner(&file)], [(12_345, 12_346); 2]);
}

#[tokio::test]
async fn a_mode_that_somebody_set_between_two_changes_is_kept() {
    let world = world();
    world.file("a.sh", "old\n");
    let path = world.path().join("a.sh");
    perform(&world, "write", json!({"path": "a.sh", "content": "new\n"})).await;
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    perform(&world, "delete", json!({"path": "a.sh"})).await;
    undo_run(&world).await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 0)
}

#[tokio::test]
async fn a_directory_that_a_command_closed_is_open_again() {
    let world = world().confined();
    world.file("e/f", "1\n");
    for mode in ["a-w", "000"] {
        let (call, _) = perform(&world, "shell", json!({ "command": format!("chmod {mode} e") })).await;
        let undone = undo(&world, call).await;
        assert_eq!(undone["undone"], json!(["e"]), "{undone}");
        assert_eq!(fs::metadata(world.path().join("e")).unwrap().permissions().mode() & 0o7777, 0o755, "{mode}");
    }
}

/// `e/f` was deleted, and somebody put something else in the place of `e`.
async fn deleted_below_a_replaced_directory(replace: impl Fn(&Path)) -> (TestWorkspace, Value) {
    let world = world();
    world.file("e/f", "1\n").file("other/g", "2\n").file("top", "3\n");
    let paths = ["e/f", "top"].map(|path| format!("*** Delete File: {path}\n")).concat();
    let patch = format!("*** Begin Patch\n{paths}*** End Patch\n");
    let (call, _) = perform(&world, "patch", json!({ "patch": patch })).await;
    let _ = fs::remove_dir(world.path().join("e"));
    replace(world.path());
    let undone = undo(&world, call).await;
    (world, undone)
}

#[tokio::test]
async fn nothing_goes_back_into_a_directory_that_is_a_file_by_now() {
    let (world, undone) = deleted_below_a_replaced_directory(|path| fs::write(path.join("e"), "mine").unwrap()).await;
    assert_eq!(undone["undone"], json!(["top"]), "{undone}");
    assert_eq!(undone["refused"][0]["path"], "e/f");
    assert_eq!(fs::read_to_string(world.path().join("e")).unwrap(), "mine");
}

#[tokio::test]
async fn nothing_goes_back_through_a_link_that_replaced_a_directory() {
    let link = |path: &Path| std::os::unix::fs::symlink("other", path.join("e")).unwrap();
    let (world, undone) = deleted_below_a_replaced_directory(link).await;
    assert_eq!(undone["undone"], json!(["top"]), "{undone}");
    assert_eq!(undone["refused"][0]["path"], "e/f");
    assert!(!world.path().join("other/f").exists());
}

#[tokio::test]
async fn a_directory_that_a_command_replaced_by_a_link_comes_back_with_its_content() {
    let world = world().confined();
    world.file("e/f", "1\n").file("other/g", "2\n");
    let before = tree(world.path());
    let (call, _) = perform(&world, "shell", json!({ "command": "rm -r e && ln -s other e" })).await;
    assert!(fs::symlink_metadata(world.path().join("e")).unwrap().is_symlink());
    let undone = undo(&world, call).await;
    assert_eq!(undone["refused"], json!([]), "{undone}");
    assert_eq!(tree(world.path()), before);
}

#[tokio::test]
async fn a_directory_that_replaced_a_file_stays_with_what_somebody_put_into_it() {
    // Policy hides the last two.
    for name in ["mine", ".env", "d/.env"] {
        let world = world().confined();
        world.file("e", "1\n").file("top", "3\n");
        let command = "rm e top && mkdir -p e/d && echo 2 > e/f";
        let (call, _) = perform(&world, "shell", json!({ "command": command })).await;
        fs::write(world.path().join("e").join(name), "mine").unwrap();
        let undone = undo(&world, call).await;
        let undone_paths = if name == "d/.env" { json!(["e/f", "top"]) } else { json!(["e/d", "e/f", "top"]) };
        assert_eq!(undone["undone"], undone_paths, "{name}: {undone}");
        assert!(undone["refused"].to_string().contains(r#""path":"e""#), "{name}: {undone}");
        assert_eq!(fs::read_to_string(world.path().join("e").join(name)).unwrap(), "mine");
        assert_eq!(fs::read_to_string(world.path().join("top")).unwrap(), "3\n");
    }
}

#[tokio::test]
async fn a_directory_that_something_goes_back_into_is_there_again_as_it_was() {
    let world = world();
    world.file("e/f", "1\n");
    fs::set_permissions(world.path().join("e"), Permissions::from_mode(0o750)).unwrap();
    let before = tree(world.path());
    perform(&world, "delete", json!({"path": "e", "recursive": true})).await;
    perform(&world, "write", json!({"path": "e", "content": "a file by now"})).await;
    fs::remove_file(world.path().join("e")).unwrap();
    let undone = undo_run(&world).await;
    assert_eq!((&undone["undone"], &undone["refused"]), (&json!(["e", "e/f"]), &json!([])), "{undone}");
    assert_eq!(tree(world.path()), before);
}

#[tokio::test]
async fn a_command_on_an_overlay_changes_one_name_of_a_file_alone() {
    let world = world().confined();
    world.file("a", "1\n");
    let [a, b] = ["a", "b"].map(|name| world.path().join(name));
    fs::hard_link(&a, &b).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (call, payload) = perform(&world, "shell", json!({"command": "chmod 640 b"})).await;
    assert_eq!(payload["changes"]["paths"], json!(["~b"]), "{payload}");
    assert_eq!((mode(&a), mode(&b)), (0o644, 0o640), "the reply names one");
    undo(&world, call).await;
    assert_eq!((mode(&a), mode(&b), fs::read_to_string(&b).unwrap().as_str()), (0o644, 0o644, "1\n"));
}

#[tokio::test]
async fn a_directory_stays_into_which_something_of_others_goes_back() {
    let world = world().confined();
    // One run made the directory, somebody else put a file there, and the run removed that.
    perform(&world, "write", json!({"path": "made/own", "content": "x"})).await;
    world.file("made/theirs", "theirs\n");
    perform(&world, "delete", json!({"path": "made/theirs"})).await;
    let undone = undo_run(&world).await;
    assert_eq!(undone["undone"], json!(["made/own", "made/theirs"]), "{undone}");
    assert_eq!(undone["refused"][0]["path"], "made", "{undone}");
    assert_eq!(fs::read_to_string(world.path().join("made/theirs")).unwrap(), "theirs\n");
}

#[tokio::test]
async fn a_changed_notebook_is_as_before_byte_by_byte() {
    let world = world();
    let before =
        "{\n  \"nbformat\":4, \"nbformat_minor\": 4,\n  \"cells\": [ {\"cell_type\":\"code\",  \"source\":\"1\"} ]\n}";
    world.file("n.ipynb", before);
    let edit = json!({ "path": "n.ipynb", "action": "replace", "cell": "cell-0", "source": "2" });
    let (call, changed) = perform(&world, "notebook", edit).await;
    assert!(changed["diff"].as_str().unwrap().contains("\n+"), "{changed}");
    assert_ne!(fs::read_to_string(world.path().join("n.ipynb")).unwrap(), before);
    undo(&world, call).await;
    assert_eq!(fs::read_to_string(world.path().join("n.ipynb")).unwrap(), before);
}
