//! Commands beside people who work in the same files: what is theirs stays theirs, and nobody's content is lost.
#![allow(clippy::disallowed_methods, reason = "tests change files as a person would")]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use toolgate_testkit::{TestWorkspace, wait_until_async};

fn world() -> TestWorkspace {
    TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined()
}

fn read(world: &TestWorkspace, path: &str) -> Option<String> {
    std::fs::read_to_string(world.path().join(path)).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_somebody_holds_open_is_copied_and_comes_back_as_it_was() {
    for command in ["echo two > new; mv new log.txt", "rm log.txt"] {
        let world = world();
        world.file("log.txt", "one\n");
        let mut theirs = std::fs::File::options().append(true).open(world.path().join("log.txt")).unwrap();
        let session = world.session();
        let reply = world.perform_in(&session, "shell", json!({ "command": command })).await;
        assert!(reply.ok, "{reply:?}");
        theirs.write_all(b"late\n").unwrap();
        let undone = world.perform_in(&session, "undo", json!({ "call": reply.tool_call_id })).await;
        assert!(undone.ok, "{command}: {:?}", undone.error);
        assert_eq!(read(&world, "log.txt").as_deref(), Some("one\n"), "{command}");
    }
}

/// The contents of everything in quarantine.
fn quarantined(world: &TestWorkspace) -> Vec<String> {
    let calls = std::fs::read_dir(world.path().join(".toolgate/quarantine")).unwrap();
    let kept = calls.flat_map(|call| std::fs::read_dir(call.unwrap().path()).unwrap());
    kept.filter_map(|one| std::fs::read_to_string(one.unwrap().path()).ok()).collect()
}

/// Runs a command on its layer while somebody works in the workspace.
async fn while_it_runs(world: &TestWorkspace, command: &str, meanwhile: impl AsyncFnOnce()) -> Value {
    let session = world.session();
    // The command sees new files of others below its layer.
    let script = format!("{command}; echo ready; until ls | grep -q ^seen; do sleep 0.05; done");
    let args = json!({ "command": script, "yield_ms": 600_000 });
    let call = world.perform_in(&session, "shell", args);
    let beside = async {
        let is_ready = || {
            let running = world.gate.registries().running();
            running
                .iter()
                .any(|process| toolgate_contract::ProcessHandle::progress(process.as_ref()).borrow().stdout > 0)
        };
        wait_until_async("the command is ready", is_ready).await;
        meanwhile().await;
        world.file("seen", "");
    };
    let (reply, ()) = tokio::join!(call, beside);
    assert!(reply.ok, "{:?}", reply.error);
    reply.payload.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_a_command_replaces_keeps_what_a_person_adds_and_the_commands_content_is_kept_too() {
    let world = world();
    world.file("d/old.txt", "old\n").file("e/old.txt", "old\n");
    let command = "rm -rf d e; mkdir d; echo new > d/new.txt; echo file > e; echo result > result.txt";
    let reply = while_it_runs(&world, command, async || {
        world.file("d/mine.txt", "mine\n").file("e/mine.txt", "mine\n");
    })
    .await;
    assert_eq!(read(&world, "d/mine.txt").as_deref(), Some("mine\n"), "{reply}");
    assert_eq!(read(&world, "e/mine.txt").as_deref(), Some("mine\n"), "{reply}");
    assert_eq!(read(&world, "d/new.txt").as_deref(), Some("new\n"), "{reply}");
    assert_eq!(read(&world, "result.txt").as_deref(), Some("result\n"), "{reply}");
    let aside = reply["changes"]["kept_aside"].as_array().unwrap();
    assert!(aside.iter().any(|one| one["path"] == json!("e")), "{reply}");
    let kept = quarantined(&world);
    assert!(kept.iter().any(|content| content == "file\n"), "{kept:?}");
}

/// A directory that is moved keeps the times of what is in it, so that it looks as old as what the command removes.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_a_person_moves_to_where_a_command_removes_one_stays_whole() {
    for command in ["rm -r d", "rm -r d; echo file > d", "rm -r d; mkdir d; echo new > d/new.txt"] {
        let world = world();
        world.file("d/old.txt", "old\n").file("mine/deep/file.txt", "mine\n").file("mine/other.txt", "mine\n");
        let reply = while_it_runs(&world, command, async || {
            std::fs::remove_dir_all(world.path().join("d")).unwrap();
            std::fs::rename(world.path().join("mine"), world.path().join("d")).unwrap();
        })
        .await;
        for path in ["d/deep/file.txt", "d/other.txt"] {
            assert_eq!(read(&world, path).as_deref(), Some("mine\n"), "{command}: {path}: {reply}");
        }
        assert!(reply["changes"]["kept_aside"].to_string().contains("d/other.txt"), "{command}: {reply}");
    }
}

/// A command that only touches a file doesn't bring it back when somebody removes it; one that writes to it, or renames it, does.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_person_removes_stays_removed_unless_the_command_wrote_to_it() {
    for (command, path, expected) in [
        ("chmod 644 a.txt d/b.txt", "a.txt", None),
        ("chmod 644 a.txt d/b.txt", "d/b.txt", None),
        ("chmod 600 a.txt", "a.txt", None),
        ("echo two >> a.txt", "a.txt", Some("one\ntwo\n")),
        ("mv a.txt renamed.txt", "renamed.txt", Some("one\n")),
        ("sed -i.bak s/kept/changed/ kept.txt", "kept.txt.bak", Some("kept\n")),
        ("ln a.txt linked.txt", "linked.txt", Some("one\n")),
    ] {
        let world = world();
        world.file("a.txt", "one\n").file("d/b.txt", "one\n").file("kept.txt", "kept\n");
        for path in ["a.txt", "d/b.txt"] {
            std::fs::set_permissions(world.path().join(path), std::fs::Permissions::from_mode(0o644)).unwrap();
        }
        let reply = while_it_runs(&world, command, async || {
            std::fs::remove_file(world.path().join("a.txt")).unwrap();
            std::fs::remove_dir_all(world.path().join("d")).unwrap();
        })
        .await;
        assert_eq!(read(&world, path).as_deref(), expected, "{command}: {reply}");
        if expected.is_none() {
            let aside = reply["changes"]["kept_aside"].as_array().unwrap();
            assert!(aside.iter().any(|one| one["path"] == json!(path)), "{command}: {reply}");
            assert!(!world.path().join("d").exists(), "{command}: {reply}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_a_command_writes_to_keeps_the_mode_that_a_person_gives_it_meanwhile() {
    let world = world();
    world.file("d/old.txt", "old\n");
    let directory = world.path().join("d");
    let reply = while_it_runs(&world, "echo new > d/new.txt", async || {
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700)).unwrap();
    })
    .await;
    assert_eq!(std::fs::metadata(&directory).unwrap().permissions().mode() & 0o7777, 0o700, "{reply}");
    assert_eq!(read(&world, "d/new.txt").as_deref(), Some("new\n"), "{reply}");
}

/// Lets a directory get new files and keep those that it has, for everybody, or ends that; false where that can't be done.
fn set_append_only(directory: &std::path::Path, is_on: bool) -> bool {
    let chattr = std::process::Command::new("chattr").arg(if is_on { "+a" } else { "-a" }).arg(directory).output();
    chattr.is_ok_and(|done| done.status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cant_be_written_half_way_is_kept_whole() {
    let world = world();
    world.file("a.txt", "before\n").file("z/old.txt", "old\n");
    let directory = world.path().join("z");
    if !set_append_only(&directory, true) {
        toolgate_testkit::skip("no-append-only-directories", "nobody can make a directory append-only here");
        return;
    }
    set_append_only(&directory, false);
    let command = "echo after > a.txt; ln -s a.txt b; echo new > z/old.txt";
    // From then on nothing in `z` can be replaced: what comes before it has been moved out of the layer by then.
    let reply = while_it_runs(&world, command, async || assert!(set_append_only(&directory, true))).await;
    set_append_only(&directory, false);
    let rehearsal = reply["changes"]["rehearsal"].as_str().unwrap_or_else(|| panic!("{reply}"));
    assert_eq!((read(&world, "a.txt").as_deref(), read(&world, "b")), (Some("before\n"), None), "{reply}");
    let layer = world.path().join(".toolgate/layers").join(rehearsal).join("changes-0");
    let kept = ["a.txt", "z/old.txt"].map(|path| std::fs::read_to_string(layer.join(path)).ok());
    assert_eq!(kept, ["after\n", "new\n"].map(|text| Some(text.to_owned())), "{reply}");
    assert!(std::fs::read_link(layer.join("b")).is_ok(), "{reply}");
    let reply = world.perform("commit", json!({ "rehearsal": rehearsal })).await;
    assert!(reply.ok, "{reply:?}");
    assert_eq!(
        (read(&world, "a.txt").as_deref(), read(&world, "z/old.txt").as_deref()),
        (Some("after\n"), Some("new\n"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_running_command_of_another_session_and_both_their_changes_are_kept() {
    let world = world();
    world.file("a.txt", "one\n").file("mine.txt", "before\n").file("both.txt", "before\n");
    let other = world.session_in(std::sync::Arc::clone(&world.run), "another").unwrap().session;
    let command = "echo command > new.txt; echo command > both.txt";
    let reply = while_it_runs(&world, command, async || {
        for _ in 0..100 {
            assert!(world.perform_in(&other, "read", json!({ "path": "a.txt" })).await.ok);
        }
        for (tool, args) in [
            ("list", json!({ "path": "." })),
            ("write", json!({ "path": "mine.txt", "content": "mine\n" })),
            ("write", json!({ "path": "both.txt", "content": "theirs\n" })),
            ("shell", json!({ "command": "cat mine.txt > copy.txt" })),
        ] {
            let reply = world.perform_in(&other, tool, args.clone()).await;
            assert!(reply.ok, "{tool} {args}: {:?}", reply.error);
        }
        assert_eq!(read(&world, "new.txt"), None, "the command still runs");
    })
    .await;
    let now = ["new.txt", "mine.txt", "copy.txt", "both.txt"].map(|path| read(&world, path));
    assert_eq!(now, ["command\n", "mine\n", "mine\n", "theirs\n"].map(|text| Some(text.to_owned())), "{reply}");
    assert_eq!(reply["changes"]["kept_aside"][0]["path"], json!("both.txt"), "{reply}");
    assert!(quarantined(&world).iter().any(|content| content == "command\n"), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sessions_own_reads_do_not_wait_for_its_command_and_its_changes_keep_their_order() {
    let world = world();
    world.file("a.txt", "one\n");
    let session = world.session();
    let command = "cat a.txt > seen.txt; echo ready; until ls | grep -q ^go; do sleep 0.05; done; echo command > a.txt";
    let running = world.perform_in(&session, "shell", json!({ "command": command, "yield_ms": 600_000 }));
    let beside = async {
        let processes = world.gate.registries();
        wait_until_async("the command runs", || !processes.running().is_empty()).await;
        assert!(world.perform_in(&session, "read", json!({ "path": "a.txt" })).await.ok);
        let write = world.perform_in(&session, "write", json!({ "path": "b.txt", "content": "after\n" }));
        let (reply, ()) = tokio::join!(write, async { _ = world.file("go", "") });
        assert!(reply.ok, "{:?}", reply.error);
        assert_eq!(read(&world, "a.txt").as_deref(), Some("command\n"), "the command came first");
    };
    let (reply, ()) = tokio::join!(running, beside);
    assert!(reply.ok, "{:?}", reply.error);
    assert_eq!(read(&world, "seen.txt").as_deref(), Some("one\n"));
}
