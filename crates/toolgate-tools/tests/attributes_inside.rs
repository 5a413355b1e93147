//! Attributes alone: a command that changes the time, the mode or the extended attributes of an existing file, and nothing else.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use serde_json::{Value, json};
use toolgate_contract::{Event, EventPayload};
use toolgate_testkit::{TestWorkspace, skip};

/// What `python3` says about a file, outside of the sandbox: its attributes, by name.
fn attributes(world: &TestWorkspace, path: &str) -> Option<String> {
    let script = "import os, sys; p = sys.argv[1]; os.setxattr(p, 'user.probe', b''); os.removexattr(p, 'user.probe'); \
                  print({n: os.getxattr(p, n) for n in sorted(os.listxattr(p))})";
    let found = Command::new("python3").args(["-c", script]).arg(world.path().join(path)).output().ok()?;
    found.status.success().then(|| String::from_utf8(found.stdout).unwrap().trim().to_owned())
}

async fn shell(world: &TestWorkspace, command: &str) -> Value {
    world.run_script(command, json!({})).await
}

async fn undo_last(world: &TestWorkspace) {
    let changing = |event: &Event| matches!(event.payload, EventPayload::FilesChanging { .. });
    let last = world.events().into_iter().rfind(changing).unwrap().tool_call_id.unwrap();
    let undone = world.perform("undo", json!({ "call": last })).await;
    assert!(undone.ok, "{:?}", undone.error);
    assert_eq!(undone.payload.as_ref().unwrap()["refused"], json!([]), "{:?}", undone.payload);
}

#[tokio::test(flavor = "multi_thread")]
async fn extended_attributes_alone_are_applied_and_undone() {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined();
    world.file("x", "x\n");
    if attributes(&world, "x").is_none() {
        return skip("no-attributes", "there is no python3, or the file system has no extended attributes");
    }
    let node = std::fs::metadata(world.path().join("x")).unwrap().ino();
    let set = |values: &str| format!("python3 -c 'import os; {values}'");
    let payload = shell(&world, &set("os.setxattr(\"x\", \"user.note\", b\"one\")")).await;
    assert_eq!(payload["changes"]["paths"], json!(["~x"]), "{payload}");
    assert_eq!(attributes(&world, "x").unwrap(), "{'user.note': b'one'}");
    let payload =
        shell(&world, &set("os.setxattr(\"x\", \"user.note\", b\"two\"); os.setxattr(\"x\", \"user.b\", b\"\")")).await;
    assert_eq!(payload["changes"]["changed"], 1, "{payload}");
    assert_eq!(attributes(&world, "x").unwrap(), "{'user.b': b'', 'user.note': b'two'}");
    assert_eq!(std::fs::metadata(world.path().join("x")).unwrap().ino(), node, "the file stays where it is");
    undo_last(&world).await;
    assert_eq!(attributes(&world, "x").unwrap(), "{'user.note': b'one'}");
    let payload = shell(&world, &set("os.removexattr(\"x\", \"user.note\")")).await;
    assert_eq!(attributes(&world, "x").unwrap(), "{}", "{payload}");
    undo_last(&world).await;
    assert_eq!(attributes(&world, "x").unwrap(), "{'user.note': b'one'}");
    let payload = shell(&world, "cat x > /dev/null; touch -r x x").await;
    assert_eq!(payload["changes"], Value::Null, "{payload}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_renamed_keeps_its_attributes() {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined();
    world.file("old/deep/x", "x\n");
    if attributes(&world, "old").is_none() {
        return skip("no-attributes", "there is no python3, or the file system has no extended attributes");
    }
    let set = "import os, sys; [os.setxattr(p, 'user.note', b'mine') for p in sys.argv[1:]]";
    let paths = ["old", "old/deep", "old/deep/x"].map(|path| world.path().join(path));
    assert!(Command::new("python3").args(["-c", set]).args(paths).status().unwrap().success());
    let look = "print([os.getxattr(p, \"user.note\") for p in (\"new\", \"new/deep\", \"new/deep/x\")])";
    let payload = shell(&world, &format!("python3 -c 'import os; os.rename(\"old\", \"new\"); {look}'")).await;
    assert_eq!(payload["stdout"], json!("[b'mine', b'mine', b'mine']\n"), "{payload}");
    assert_eq!(attributes(&world, "new/deep/x").unwrap(), "{'user.note': b'mine'}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_or_a_mode_alone_is_applied_and_undone() {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined();
    world.file("x", "x\n");
    let facts = || {
        let found = std::fs::metadata(world.path().join("x")).unwrap();
        (found.mtime(), found.permissions().mode() & 0o7777)
    };
    let before = facts();
    let payload = shell(&world, "touch -d 2001-02-03T04:05:06Z x").await;
    assert_eq!((facts().0, &payload["changes"]["paths"]), (981_173_106, &json!(["~x"])), "{payload}");
    let payload = shell(&world, "chmod 700 x").await;
    assert_eq!(facts(), (981_173_106, 0o700), "{payload}");
    undo_last(&world).await;
    assert_eq!(facts(), (981_173_106, before.1));
}
