//! `list`, `find` and `grep` through the gate: what a caller gets, page by page, from friendly trees and from others.
#![allow(clippy::disallowed_methods, missing_docs, reason = "tests make files of their own")]

#[path = "search/tree.rs"]
mod tree;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, Reply};
use toolgate_testkit::TestWorkspace;

use tree::Tree;

fn world() -> TestWorkspace {
    TestWorkspace::new(toolgate_tools::all(), "")
}

async fn perform(world: &TestWorkspace, tool: &str, args: Value) -> Reply {
    let reply = world.perform(tool, args.clone()).await;
    assert!(reply.ok, "{tool} {args}: {:?}", reply.error);
    reply
}

async fn payload(world: &TestWorkspace, tool: &str, args: Value) -> Value {
    perform(world, tool, args).await.payload.unwrap()
}

/// All pages of an answer, joined.
async fn joined(world: &TestWorkspace, tool: &str, list: &str, mut args: Value) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let reply = perform(world, tool, args.clone()).await;
        let payload = reply.payload.unwrap();
        all.extend(payload[list].as_array().unwrap().clone());
        let Some(cursor) = reply.truncated.and_then(|truncated| truncated.next_cursor) else {
            assert_eq!(payload["has_more"], json!(false));
            return all;
        };
        assert_eq!(payload["has_more"], json!(true));
        args["cursor"] = json!(cursor);
    }
}

/// The paths of an answer to `list` or of matches.
fn paths(values: &Value) -> Vec<&str> {
    values.as_array().unwrap().iter().map(|value| value["path"].as_str().unwrap()).collect()
}

async fn error(world: &TestWorkspace, tool: &str, args: Value) -> (ErrorCode, String, String) {
    let error = world.perform(tool, args.clone()).await.error.unwrap_or_else(|| panic!("{tool} {args} is refused"));
    (error.code, error.message, error.hint.unwrap_or_default())
}

#[tokio::test]
async fn pages_joined_are_one_big_answer() {
    for seed in 10..12 {
        let world = world();
        Tree::new(seed).make(&world.path().join("t"));
        for order in ["path", "newest"] {
            for (tool, list, args) in [
                ("grep", "matches", json!({"pattern": "the|fox", "context": 1, "path": "t", "order": order})),
                ("grep", "files", json!({"pattern": "the|fox", "mode": "files", "path": "t", "order": order})),
                ("grep", "counts", json!({"pattern": "the|fox", "mode": "counts", "path": "t", "order": order})),
                ("find", "paths", json!({"pattern": "*", "hidden": true, "path": "t", "order": order})),
            ] {
                assert_pages(&world, tool, list, args).await;
            }
        }
        assert_pages(&world, "list", "entries", json!({"path": "t", "recursive": true})).await;
    }
}

async fn assert_pages(world: &TestWorkspace, tool: &str, list: &str, args: Value) {
    let with_limit = |limit: u32| {
        let mut args = args.clone();
        args["limit"] = json!(limit);
        args
    };
    let big = joined(world, tool, list, with_limit(1_000)).await;
    assert!(big.len() > 20, "{tool} {args}: there is something to cut into pages");
    for limit in [29, 200] {
        assert_eq!(joined(world, tool, list, with_limit(limit)).await, big, "{tool} {args} by {limit}");
    }
}

#[tokio::test]
async fn answers_come_in_the_order_of_paths_and_lines() {
    let world = world();
    for path in ["b.txt", "a/z.txt", "a/b/c.txt", "a.txt", "a-b/c.txt"] {
        world.file(path, "hit\nmiss\nhit\n");
    }
    let found = payload(&world, "grep", json!({"pattern": "hit", "context": 0})).await;
    let spots: Vec<(&str, u64)> = found["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| (found["path"].as_str().unwrap(), found["line"].as_u64().unwrap()))
        .collect();
    let files = ["a/b/c.txt", "a/z.txt", "a-b/c.txt", "a.txt", "b.txt"];
    let expected: Vec<(&str, u64)> = files.iter().flat_map(|path| [(*path, 1), (*path, 3)]).collect();
    assert_eq!(spots, expected);
    assert_eq!(found["totals"], json!({"matches": 10, "files": 5, "searched": 5, "binary": 0}));
    let first = payload(&world, "grep", json!({"pattern": "hit", "limit": 1, "context": 0})).await;
    assert_eq!(first["matches"], json!([{"path": "a/b/c.txt", "line": 1, "column": 1, "text": "hit"}]));
    assert_eq!(first.get("totals"), None, "what wasn't searched isn't counted");
}

#[tokio::test]
async fn the_newest_come_first() {
    let world = world();
    for (days, path) in [(3, "old.txt"), (1, "new.txt"), (2, "middle/between.txt")] {
        world.file(path, "hit\n");
        let then = SystemTime::now() - Duration::from_secs(days * 86_400);
        fs::File::options().append(true).open(world.path().join(path)).unwrap().set_modified(then).unwrap();
    }
    let found = payload(&world, "grep", json!({"pattern": "hit", "mode": "files", "order": "newest"})).await;
    assert_eq!(found["files"], json!(["new.txt", "middle/between.txt", "old.txt"]));
    let found = payload(&world, "find", json!({"pattern": "*.txt", "order": "newest", "limit": 2})).await;
    assert_eq!(found["paths"], json!(["new.txt", "middle/between.txt"]));
}

#[tokio::test]
async fn a_few_matches_come_with_the_lines_around_them() {
    let world = world();
    world.file("a.txt", "1\n2\n3 hit\n4\n5\n6\n7\n8 hit\n9\n");
    let found = payload(&world, "grep", json!({"pattern": "hit"})).await;
    let expected = json!([
        {"path": "a.txt", "line": 3, "column": 3, "text": "3 hit", "before": ["1", "2"], "after": ["4", "5"]},
        {"path": "a.txt", "line": 8, "column": 3, "text": "8 hit", "before": ["6", "7"], "after": ["9"]},
    ]);
    assert_eq!(found["matches"], expected);
    world.file("b.txt", "hit\nhit\n");
    let found = payload(&world, "grep", json!({"pattern": "hit"})).await;
    assert_eq!(found["matches"][0], json!({"path": "a.txt", "line": 3, "column": 3, "text": "3 hit"}), "four are many");
    let found = payload(&world, "grep", json!({"pattern": "8 hit", "before": 1})).await;
    assert_eq!(found["matches"][0]["before"], json!(["7"]));
    assert_eq!(found["matches"][0].get("after"), None);
}

#[tokio::test]
async fn lines_between_two_matches_are_told_once() {
    let world = world();
    world.file("a.txt", "hit\n2\nhit\nhit\n5\n");
    let found = payload(&world, "grep", json!({"pattern": "hit", "context": 2})).await;
    let around: Vec<(&Value, &Value)> =
        found["matches"].as_array().unwrap().iter().map(|hit| (&hit["before"], &hit["after"])).collect();
    assert_eq!(around, [(&json!(null), &json!(["2"])), (&json!(null), &json!(null)), (&json!(null), &json!(["5"]))]);
}

#[tokio::test]
async fn long_lines_are_cut_and_binary_files_counted() {
    let world = world();
    world.file("long.txt", format!("{}hit{}\n", "x".repeat(100_000), "y".repeat(100_000)));
    world.file("binary", b"hit\0hit\n");
    world.file("endless.txt", "z".repeat(20 * 1024 * 1024));
    let found = payload(&world, "grep", json!({"pattern": "hit"})).await;
    let only = &found["matches"][0];
    assert_eq!((&only["path"], &only["column"], &only["cut"]), (&json!("long.txt"), &json!(100_001), &json!(true)));
    let text = only["text"].as_str().unwrap();
    assert!(text.contains("xhity") && text.chars().count() <= 502, "{text}");
    assert_eq!(found["totals"], json!({"matches": 1, "files": 1, "searched": 3, "binary": 1, "too_long": 1}));
}

#[tokio::test]
async fn an_answer_is_never_too_large_to_show() {
    let world = world();
    world.file("wide.txt", format!("hit {}\n", "w".repeat(480)).repeat(500));
    let args = json!({"pattern": "hit", "limit": 1000, "context": 0});
    let first = perform(&world, "grep", args.clone()).await;
    assert!(first.payload.unwrap().to_string().len() < 50 * 1024);
    assert_eq!(joined(&world, "grep", "matches", args).await.len(), 500);
}

#[tokio::test]
async fn other_endings_encodings_and_lines() {
    let world = world();
    world.file("crlf.txt", "one hit\r\ntwo\r\n");
    world.file(
        "utf16.txt",
        "hit ä\n".encode_utf16().fold(vec![0xff, 0xfe], |mut bytes, unit| {
            bytes.extend(unit.to_le_bytes());
            bytes
        }),
    );
    world.file("lines.txt", "begin\n  middle\nend\n");
    let found = payload(&world, "grep", json!({"pattern": "hit$", "context": 0})).await;
    assert_eq!(found["matches"], json!([{"path": "crlf.txt", "line": 1, "column": 5, "text": "one hit"}]));
    let found = payload(&world, "grep", json!({"pattern": "hit ä", "context": 0})).await;
    assert_eq!(found["matches"], json!([{"path": "utf16.txt", "line": 1, "column": 1, "text": "hit ä"}]));
    let found = payload(&world, "grep", json!({"pattern": r"begin\s+mid", "multiline": true, "context": 0})).await;
    let expected = json!([{"path": "lines.txt", "line": 1, "column": 1, "text": "begin\n  middle"}]);
    assert_eq!(found["matches"], expected);
}

#[tokio::test]
async fn an_empty_answer_says_what_was_left_out() {
    let world = world();
    world.file(".gitignore", "target/\n*.log\n").file("src/main.rs", "fn main() {}\n");
    world.file("target/out.txt", "needle\n").file("a.log", "needle\n").file(".secret/x.txt", "needle\n");
    let note = "Nothing matched, but 2 ignored ones do and 1 hidden one does: set `gitignore` to false or `hidden` to true \
                to see them.";
    assert_eq!(payload(&world, "grep", json!({"pattern": "needle"})).await["note"], json!(note));
    let found = payload(&world, "find", json!({"pattern": "*.log"})).await;
    let note = "Nothing matched, but 1 ignored one does: set `gitignore` to false to see them.";
    assert_eq!(found, json!({"paths": [], "has_more": false, "note": note}));
    assert_eq!(payload(&world, "grep", json!({"pattern": "main"})).await.get("note"), None);
    assert_eq!(payload(&world, "grep", json!({"pattern": "nowhere"})).await.get("note"), None);
    let all = payload(&world, "grep", json!({"pattern": "needle", "gitignore": false, "hidden": true})).await;
    assert_eq!(paths(&all["matches"]), [".secret/x.txt", "a.log", "target/out.txt"]);
}

#[tokio::test]
async fn ignore_files_above_the_start_count_but_an_ignored_start_is_searched() {
    let world = world();
    world.file(".gitignore", "*.log\ntarget/\n").file("src/.gitignore", "!keep.log\n");
    world.file("src/deep/a.log", "hit\n").file("src/deep/keep.log", "hit\n").file("target/b.txt", "hit\n");
    let files = |path: &str| json!({"pattern": "hit", "mode": "files", "path": path});
    assert_eq!(payload(&world, "grep", files("src/deep")).await["files"], json!(["src/deep/keep.log"]));
    assert_eq!(payload(&world, "grep", files("target")).await["files"], json!(["target/b.txt"]));
    assert_eq!(payload(&world, "grep", files("src/deep/a.log")).await["files"], json!(["src/deep/a.log"]));
}

#[tokio::test]
async fn list_shows_all_but_what_is_asked_away() {
    let world = world();
    world.file(".gitignore", "target/\n").file("target/out.txt", "x").file("src/a.rs", "abc").file("src/b.lock", "");
    let listed = payload(&world, "list", json!({})).await;
    assert_eq!(paths(&listed["entries"]), [".gitignore", "src", "target"]);
    let listed = payload(&world, "list", json!({"recursive": true, "ignore": ["*.lock"]})).await;
    let expected = json!([
        {"name": ".gitignore", "path": ".gitignore", "kind": "file", "size": 8},
        {"name": "src", "path": "src", "kind": "folder"},
        {"name": "a.rs", "path": "src/a.rs", "kind": "file", "size": 3},
    ]);
    assert_eq!(listed["entries"], expected);
    let listed = payload(&world, "list", json!({"recursive": true, "gitignore": false, "path": "target"})).await;
    assert_eq!(paths(&listed["entries"]), ["target/out.txt"]);
}

#[tokio::test]
async fn find_by_name_path_kind_and_depth() {
    let world = world();
    world.file("a.rs", "").file("src/b.rs", "").file("src/deep/c.rs", "").file("src/deep/note.md", "");
    std::os::unix::fs::symlink("a.rs", world.path().join("link.rs")).unwrap();
    for (args, expected) in [
        (json!({"pattern": "*.rs"}), json!(["a.rs", "link.rs", "src/b.rs", "src/deep/c.rs"])),
        (json!({"pattern": "*.rs", "kind": "link"}), json!(["link.rs"])),
        (json!({"pattern": "*.rs", "max_depth": 2, "kind": "file"}), json!(["a.rs", "src/b.rs"])),
        (json!({"pattern": "src/*"}), json!(["src/b.rs", "src/deep/"])),
        (json!({"pattern": "**/deep/*.rs"}), json!(["src/deep/c.rs"])),
        (json!({"pattern": "./*.rs"}), json!(["a.rs", "link.rs"])),
        (json!({"pattern": "de*/"}), json!(["src/deep/"])),
        (json!({"pattern": "**/NOTE.*"}), json!([])),
        (json!({"pattern": "**/NOTE.*", "ignore_case": true}), json!(["src/deep/note.md"])),
        (json!({"pattern": "deep/*.md", "path": "src"}), json!(["src/deep/note.md"])),
    ] {
        assert_eq!(payload(&world, "find", args.clone()).await["paths"], expected, "{args}");
    }
}

#[tokio::test]
async fn what_policy_hides_is_not_there() {
    let world = TestWorkspace::new(toolgate_tools::all(), "[[rules]]\ndecision = \"deny\"\npath = \"private/**\"\n");
    world.file(".env", "needle=1\n").file("private/a.txt", "needle\n").file("open.txt", "needle\n");
    let all = |tool: &str| match tool {
        "grep" => json!({"pattern": "needle", "hidden": true, "gitignore": false, "mode": "files"}),
        "find" => json!({"pattern": "*", "hidden": true, "gitignore": false, "kind": "file"}),
        _ => json!({"recursive": true, "gitignore": false}),
    };
    assert_eq!(payload(&world, "grep", all("grep")).await["files"], json!(["open.txt"]));
    assert_eq!(payload(&world, "find", all("find")).await["paths"], json!(["open.txt"]));
    assert_eq!(paths(&payload(&world, "list", all("list")).await["entries"]), ["open.txt"]);
    let hinted = payload(&world, "find", json!({"pattern": ".env*"})).await;
    assert_eq!(hinted, json!({"paths": [], "has_more": false}), "no hint gives away what is hidden");
    let (code, ..) = error(&world, "grep", json!({"pattern": "x", "path": ".env"})).await;
    assert_eq!(code, ErrorCode::SensitivePath);
}

#[tokio::test]
async fn names_that_are_not_text() {
    let world = world();
    let strange = [OsStr::from_bytes(b"new\nline.txt"), OsStr::from_bytes(b"inva\xfflid.txt")];
    for name in strange {
        fs::write(world.path().join(name), "hit\n").unwrap();
    }
    let directory = world.path().join(OsStr::from_bytes(b"f\xfe"));
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("inner.txt"), "hit\n").unwrap();
    let expected = json!([r"f\xfe/inner.txt", r"inva\xfflid.txt", "new\nline.txt"]);
    assert_eq!(payload(&world, "find", json!({"pattern": "*.txt"})).await["paths"], expected);
    let found = payload(&world, "grep", json!({"pattern": "hit", "mode": "files"})).await;
    assert_eq!(found["files"], expected, "searched like others");
    assert_eq!(
        joined(&world, "find", "paths", json!({"pattern": "*.txt", "limit": 1})).await,
        *expected.as_array().unwrap()
    );
}

#[tokio::test]
async fn a_hundred_thousand_files_in_one_directory() {
    let world = world();
    fs::create_dir(world.path().join("many")).unwrap();
    for number in 0..100_000 {
        fs::File::create(world.path().join(format!("many/{number:06}"))).unwrap();
    }
    world.file("many/077777", "hit\n");
    let page = payload(&world, "list", json!({"path": "many", "limit": 3})).await;
    assert_eq!(paths(&page["entries"]), ["many/000000", "many/000001", "many/000002"]);
    let page = payload(&world, "list", json!({"path": "many", "cursor": "0:0:many/099998"})).await;
    assert_eq!((paths(&page["entries"]), &page["has_more"]), (vec!["many/099999"], &json!(false)));
    let found = payload(&world, "find", json!({"pattern": "*99999"})).await;
    assert_eq!(found["paths"], json!(["many/099999"]));
    let found = payload(&world, "grep", json!({"pattern": "hit", "mode": "counts"})).await;
    assert_eq!(found["counts"], json!([{"path": "many/077777", "count": 1}]));
    assert_eq!(found["totals"]["searched"], json!(100_000));
}

#[tokio::test]
async fn pipes_are_never_waited_for() {
    let world = world();
    world.file("sub/a.txt", "hit\n");
    for pipe in [".gitignore", "sub/.ignore", "sub/pipe.txt"] {
        let path = world.path().join(pipe);
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }
    let found = payload(&world, "grep", json!({"pattern": "hit", "mode": "files"})).await;
    assert_eq!(found["files"], json!(["sub/a.txt"]));
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let world = world();
    world.file("a.txt", "hit\n");
    for (tool, args, message, hint) in [
        ("grep", json!({"pattern": "(open"}), "unclosed group", "`literal`"),
        ("grep", json!({"pattern": "a(?=b)"}), "look-around", "broader pattern"),
        ("grep", json!({"pattern": r"a\nb"}), r"\n", "`multiline`"),
        ("grep", json!({"pattern": "a", "glob": ["a[z"]}), "`a[z`", "`*`"),
        ("grep", json!({"pattern": "a", "type": ["rusty"]}), "no file type `rusty`", "rust"),
        ("grep", json!({"pattern": "a", "cursor": "a.txt"}), "cursor", "start over"),
        ("find", json!({"pattern": "/etc/*"}), "absolute", "`path`"),
        ("find", json!({"pattern": "a/../../b"}), "`..`", "`path`"),
        ("find", json!({"pattern": "a{b"}), "`a{b`", "`{a,b}`"),
        ("list", json!({"cursor": "1"}), "cursor", "start over"),
    ] {
        let (code, said, hinted) = error(&world, tool, args.clone()).await;
        assert_eq!(code, ErrorCode::InvalidArgs, "{args}");
        assert!(said.contains(message) && hinted.contains(hint), "{args}: {said} | {hinted}");
    }
    for (tool, args) in [
        ("grep", json!({"pattern": "a", "path": "nowhere"})),
        ("find", json!({"pattern": "a", "path": "nowhere"})),
        ("list", json!({"path": "nowhere"})),
    ] {
        assert_eq!(error(&world, tool, args).await.0, ErrorCode::NotFound);
    }
}
