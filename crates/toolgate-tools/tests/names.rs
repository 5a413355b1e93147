//! Names that aren't UTF-8, in every tool: each shows them escaped and takes that back.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_contract::escape_path;
use toolgate_testkit::TestWorkspace;

fn world() -> TestWorkspace {
    TestWorkspace::new(toolgate_tools::all(), "preset = 'full'")
}

fn path(world: &TestWorkspace, name: &[u8]) -> PathBuf {
    world.path().join(OsStr::from_bytes(name))
}

/// Makes a call that has to work; its id and its payload.
async fn call(world: &TestWorkspace, tool: &str, args: Value) -> (String, Value) {
    let reply = world.perform(tool, args.clone()).await;
    assert!(reply.ok, "{tool} {args}: {:?}", reply.error);
    (reply.tool_call_id, reply.payload.unwrap())
}

#[tokio::test]
async fn every_tool_shows_them_escaped_and_takes_that_back() {
    let world = world();
    fs::create_dir(path(&world, b"d\xfe")).unwrap();
    fs::write(path(&world, b"d\xfe/a\xff.txt"), "one hit\n").unwrap();
    fs::write(path(&world, br"d\xff.txt"), "literal hit\n").unwrap();
    let odd = r"d\xfe/a\xff.txt";
    let (_, listed) = call(&world, "list", json!({"path": r"d\xfe"})).await;
    assert_eq!((&listed["entries"][0]["path"], &listed["entries"][0]["name"]), (&json!(odd), &json!(r"a\xff.txt")));
    for pattern in ["a?.txt", r"a\xff.txt", r"*\xff.txt", "d?/*.txt", r"d\xfe/*"] {
        let (_, found) = call(&world, "find", json!({"pattern": pattern})).await;
        assert_eq!(found["paths"], json!([odd]), "{pattern}");
    }
    let (_, literal) = call(&world, "find", json!({"pattern": r"d\x5cxff.txt"})).await;
    assert_eq!(literal["paths"], json!([r"d\x5cxff.txt"]));
    let (_, found) = call(&world, "grep", json!({"pattern": "hit", "path": r"d\xfe", "mode": "files"})).await;
    assert_eq!(found["files"], json!([odd]));
    let (_, found) = call(&world, "grep", json!({"pattern": "hit", "glob": [r"a\xff*"], "mode": "files"})).await;
    assert_eq!(found["files"], json!([odd]));
    let (_, read) = call(&world, "read", json!({"path": odd})).await;
    assert_eq!(read["content"], json!("one hit\n"));
    let (_, read) = call(&world, "read", json!({"path": r"d\x5cxff.txt"})).await;
    assert_eq!(read["content"], json!("literal hit\n"), "told apart from the byte");
    assert!(!world.perform("read", json!({"path": r"d\xff.txt"})).await.ok, "there is no such file");
}

#[tokio::test]
async fn every_tool_that_changes_files_changes_the_one_with_these_bytes() {
    let world = world();
    fs::create_dir(path(&world, b"d\xfe")).unwrap();
    fs::write(path(&world, b"d\xfe/a\xff"), "one\n").unwrap();
    let (edited, _) = call(&world, "edit", json!({"path": r"d\xfe/a\xff", "find": "one", "replace": "two"})).await;
    assert_eq!(fs::read(path(&world, b"d\xfe/a\xff")).unwrap(), b"two\n");
    let patch = "--- a/d\\xfe/a\\xff\n+++ b/d\\xfe/a\\xff\n@@ -1 +1 @@\n-two\n+three\n";
    let (patched, _) = call(&world, "patch", json!({"patch": patch})).await;
    let quoted = "--- \"a/d\\376/a\\377\"\n+++ \"b/d\\376/a\\377\"\n@@ -1 +1 @@\n-three\n+four\n";
    let (quoted, _) = call(&world, "patch", json!({"patch": quoted})).await;
    assert_eq!(fs::read(path(&world, b"d\xfe/a\xff")).unwrap(), b"four\n");
    let (written, _) = call(&world, "write", json!({"path": r"new\xfd/b\x80", "content": "new\n"})).await;
    assert_eq!(fs::read(path(&world, b"new\xfd/b\x80")).unwrap(), b"new\n");
    let (moved, _) = call(&world, "move", json!({"from": r"d\xfe/a\xff", "to": r"d\xfe/c\xfc"})).await;
    assert_eq!(fs::read(path(&world, b"d\xfe/c\xfc")).unwrap(), b"four\n");
    let (deleted, _) = call(&world, "delete", json!({"path": r"d\xfe/c\xfc"})).await;
    assert!(!path(&world, b"d\xfe/c\xfc").exists());
    for (id, name, content) in [
        (deleted, &b"d\xfe/c\xfc"[..], Some("four\n")),
        (moved, b"d\xfe/a\xff", Some("four\n")),
        (written, b"new\xfd/b\x80", None),
        (quoted, b"d\xfe/a\xff", Some("three\n")),
        (patched, b"d\xfe/a\xff", Some("two\n")),
        (edited, b"d\xfe/a\xff", Some("one\n")),
    ] {
        call(&world, "undo", json!({"call": id})).await;
        assert_eq!(fs::read(path(&world, name)).ok().as_deref(), content.map(str::as_bytes), "{name:?}");
    }
    let (deleted, gone) = call(&world, "delete", json!({"path": r"d\xfe", "recursive": true})).await;
    assert_eq!((gone["files"].as_u64(), path(&world, b"d\xfe").exists()), (Some(1), false));
    call(&world, "undo", json!({"call": deleted})).await;
    assert_eq!(fs::read(path(&world, b"d\xfe/a\xff")).unwrap(), b"one\n");
}

#[tokio::test]
async fn a_link_leads_through_them() {
    let world = world();
    fs::create_dir(path(&world, b"d\xfe")).unwrap();
    fs::write(path(&world, b"d\xfe/a\xff"), "one\n").unwrap();
    std::os::unix::fs::symlink(OsStr::from_bytes(b"d\xfe"), path(&world, b"l")).unwrap();
    let (_, read) = call(&world, "read", json!({"path": r"l/a\xff"})).await;
    assert_eq!(read["content"], json!("one\n"));
}

/// A name that a directory can have, often with half of an escape in it.
fn names() -> impl Strategy<Value = Vec<u8>> {
    let hard = proptest::collection::vec(proptest::sample::select(&b"\\\\xx5cCfF8e\xc3\xa9\xff\x80 *?"[..]), 1..20);
    let any = proptest::collection::vec(any::<u8>(), 1..40);
    let is_name = |name: &Vec<u8>| !name.contains(&b'/') && !name.contains(&0) && !name.starts_with(b".");
    prop_oneof![hard, any].prop_filter("a name", is_name)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_name_is_written_listed_read_deleted_and_undone(directory in names(), name in names()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = world();
            let bytes = [&b"top/"[..], &directory, b"/", &name].concat();
            let shown = escape_path(&bytes);
            let written = world.perform("write", json!({"path": shown, "content": "one\n"})).await;
            // What policy guards by its name is refused, and nothing else.
            if let Some(error) = written.error {
                return assert_eq!(error.code.as_str(), "sensitive_path", "{error:?}");
            }
            assert_eq!(fs::read(path(&world, &bytes)).unwrap(), b"one\n");
            let (_, listed) = call(&world, "list", json!({"path": "top", "recursive": true, "gitignore": false})).await;
            assert_eq!(listed["entries"][1]["path"], json!(shown));
            let (_, read) = call(&world, "read", json!({"path": listed["entries"][1]["path"]})).await;
            assert_eq!(read["content"], json!("one\n"));
            let (deleted, _) = call(&world, "delete", json!({"path": shown})).await;
            assert!(!path(&world, &bytes).exists());
            call(&world, "undo", json!({"call": deleted})).await;
            assert_eq!(fs::read(path(&world, &bytes)).unwrap(), b"one\n");
            call(&world, "undo", json!({"call": written.tool_call_id})).await;
            assert!(!path(&world, &bytes).exists());
        });
    }
}
