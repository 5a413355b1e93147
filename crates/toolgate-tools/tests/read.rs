//! `read` and `image` through the gate: what a caller gets for every kind of file.
#![allow(clippy::disallowed_methods, missing_docs, reason = "tests make files of their own")]

use std::fs::Permissions;
use std::io::Cursor;
use std::os::unix::fs::PermissionsExt;

use image::{DynamicImage, ImageFormat, RgbImage};
use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, Reply, sha256};
use toolgate_testkit::TestWorkspace;

fn world() -> TestWorkspace {
    TestWorkspace::new(toolgate_tools::all(), "")
}

async fn read(world: &TestWorkspace, args: Value) -> Value {
    let reply = world.perform("read", args).await;
    assert!(reply.ok, "{:?}", reply.error);
    assert_eq!(reply.truncated, None, "a page needs no further cutting");
    reply.payload.unwrap()
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    DynamicImage::from(RgbImage::new(width, height)).write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).unwrap();
    bytes
}

#[tokio::test]
async fn a_plain_file() {
    let world = world();
    world.file("a.txt", "one\ntwo\nthree\n");
    let whole = read(&world, json!({"path": "a.txt"})).await;
    let expected = json!({
        "content": "one\ntwo\nthree\n",
        "start_line": 1,
        "end_line": 3,
        "total_lines": 3,
        "has_more": false,
        "bytes": 14,
        "sha256": sha256("one\ntwo\nthree\n"),
    });
    assert_eq!(whole, expected, "nothing is said of what is as usual");
}

#[tokio::test]
async fn pages_with_and_without_numbers() {
    let world = world();
    world.file("a.txt", "one\ntwo\nthree\nfour");
    for (args, content, start, end, has_more) in [
        (json!({"offset": 2, "limit": 2}), "two\nthree\n", 2, 3, true),
        (json!({"offset": -1}), "four", 4, 4, false),
        (json!({"offset": 9}), "", 0, 0, false),
        (json!({"offset": 3, "line_numbers": true}), "    3\tthree\n    4\tfour", 3, 4, false),
        (json!({"offset": 9, "line_numbers": true}), "", 0, 0, false),
    ] {
        let mut with_path = args.clone();
        with_path["path"] = json!("a.txt");
        let page = read(&world, with_path).await;
        let found = (&page["content"], &page["start_line"], &page["end_line"], &page["has_more"]);
        assert_eq!(found, (&json!(content), &json!(start), &json!(end), &json!(has_more)), "{args}");
    }
}

#[tokio::test]
async fn going_on_at_the_next_line_shows_everything() {
    let world = world();
    let text: String = (1..=5_000).map(|number| format!("line {number} {}\n", "x".repeat(number % 90))).collect();
    world.file("long.txt", &text);
    for line_numbers in [false, true] {
        let (mut offset, mut shown) = (1, String::new());
        loop {
            let page = read(&world, json!({"path": "long.txt", "offset": offset, "line_numbers": line_numbers})).await;
            let content = page["content"].as_str().unwrap();
            let lines = content.split_inclusive('\n');
            shown.extend(lines.map(|line| if line_numbers { line.split_once('\t').unwrap().1 } else { line }));
            offset = page["end_line"].as_i64().unwrap() + 1;
            if page["has_more"] == json!(false) {
                break;
            }
        }
        assert!(shown == text, "{line_numbers}");
    }
}

#[tokio::test]
async fn encodings_are_told() {
    let world = world();
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for (bytes, content, encoding, replaced) in [
        ("é\n".as_bytes().to_vec(), "é\n", json!(null), json!(null)),
        ("\u{FEFF}é\n".as_bytes().to_vec(), "é\n", json!("utf-8-bom"), json!(null)),
        (utf16("\u{FEFF}é\n"), "é\n", json!("utf-16le"), json!(null)),
        (b"caf\xE9\n".to_vec(), "café\n", json!("windows-1252"), json!(null)),
        (b"\xC3\xA9\xC3\xA9\xFF\n".to_vec(), "éé\u{FFFD}\n", json!(null), json!(1)),
    ] {
        world.file("a.txt", &bytes);
        let page = read(&world, json!({"path": "a.txt"})).await;
        assert_eq!((&page["content"], &page["encoding"], &page["replaced"]), (&json!(content), &encoding, &replaced));
        assert_eq!(page["sha256"], json!(sha256(&bytes)), "the hash is of the file, not of what is shown");
    }
}

#[tokio::test]
async fn what_can_and_what_cannot_be_read() {
    let world = world();
    world.file("empty", "").file("directory/a.txt", "").file("locked", "open\n").file("program", b"\x7FELF\x02\0\0\0");
    world.file("picture.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>\n").file("broken.png", &png(64, 64)[..60]);
    std::fs::set_permissions(world.path().join("locked"), Permissions::from_mode(0o444)).unwrap();
    for (path, expected, hint) in [
        ("empty", None, ""),
        ("locked", None, ""),
        ("picture.svg", None, ""),
        ("directory", Some(ErrorCode::NotAFile), "list"),
        ("missing", Some(ErrorCode::NotFound), "list"),
        ("program", Some(ErrorCode::IsBinary), "format"),
        ("broken.png", Some(ErrorCode::IsBinary), "damaged"),
    ] {
        let error = world.perform("read", json!({"path": path})).await.error;
        assert_eq!(error.as_ref().map(|error| error.code), expected, "{path}: {error:?}");
        assert!(error.is_none_or(|error| error.hint.unwrap().contains(hint)), "{path}");
    }
}

/// The one artifact of a reply.
fn only_artifact(reply: &Reply) -> (String, String) {
    let [artifact] = &reply.artifacts.refs[..] else { panic!("{:?}", reply.artifacts.refs) };
    (artifact.id.clone(), artifact.mime.clone())
}

#[tokio::test]
async fn images_come_back_as_images() {
    let world = world();
    world.file("wide.png", png(2_000, 10));
    let reply = world.perform("read", json!({"path": "wide.png"})).await;
    let (id, mime) = only_artifact(&reply);
    let payload = reply.payload.unwrap();
    let image = &payload["image"];
    assert_eq!((image["artifact"].as_str(), image["mime"].as_str()), (Some(id.as_str()), Some(mime.as_str())));
    assert_eq!((&payload["content"], &payload["sha256"]), (&json!(""), &json!(sha256(png(2_000, 10)))));

    let reply = world.perform("image", json!({"path": "wide.png"})).await;
    assert_eq!(reply.payload.as_ref(), Some(image), "`image` shows the same");

    let reply = world.perform("image", json!({"path": "wide.png", "max_edge": 100})).await;
    let (id, mime) = only_artifact(&reply);
    let mut shown = reply.payload.unwrap();
    assert!(shown["bytes"].take().as_u64().is_some_and(|bytes| bytes > 0));
    let expected = json!({
        "width": 100,
        "height": 1,
        "original_width": 2_000,
        "original_height": 10,
        "mime": mime,
        "bytes": null,
        "artifact": id,
    });
    assert_eq!((shown, mime.as_str()), (expected, "image/png"));
}

#[tokio::test]
async fn what_is_no_image_is_refused_by_image() {
    let world = world();
    world.file("a.txt", "text").file("broken.png", &png(64, 64)[..60]);
    for (args, expected) in [
        (json!({"path": "a.txt"}), ErrorCode::InvalidArgs),
        (json!({"path": "broken.png"}), ErrorCode::IsBinary),
        (json!({"path": "missing.png"}), ErrorCode::NotFound),
        (json!({"path": "broken.png", "max_edge": 9_000}), ErrorCode::InvalidArgs),
    ] {
        let reply = world.perform("image", args.clone()).await;
        assert_eq!(reply.error.map(|error| error.code), Some(expected), "{args}");
    }
}

#[tokio::test]
async fn a_hidden_file_is_hidden_under_its_other_names_too() {
    let world = world();
    world.file(".env", "the word is tangerine\n");
    world.file("other.txt", "no link to a hidden file\n");
    let path = |name: &str| world.path().join(name);
    std::fs::hard_link(path(".env"), path("notes.txt")).unwrap();
    world.file(".ssh/keys/own", "the fruit is a tangerine\n");
    std::fs::hard_link(path(".ssh/keys/own"), path("keys.txt")).unwrap();
    std::fs::hard_link(path("other.txt"), path("another.txt")).unwrap();
    let edit = json!({"path": "notes.txt", "find": "tangerine", "replace": "plum"});
    for (tool, args) in [("read", json!({"path": "notes.txt"})), ("edit", edit)] {
        let error = world.perform(tool, args).await.error.unwrap();
        assert_eq!(error.code, ErrorCode::SensitivePath, "{tool}: {error:?}");
        assert!(error.message.contains("`notes.txt` is a hard link to `.env`"), "{tool}: {error:?}");
    }
    let error = world.perform("read", json!({"path": "keys.txt"})).await.error.unwrap();
    assert!(error.message.contains("`keys.txt` is a hard link to `.ssh/keys/own`"), "{error:?}");
    assert_eq!(read(&world, json!({"path": "another.txt"})).await["content"], json!("no link to a hidden file\n"));
    let found = serde_json::to_string(&world.perform("grep", json!({"pattern": "."})).await).unwrap();
    assert!(found.contains("no link") && !found.contains("tangerine"), "{found}");
}

#[tokio::test]
async fn several_files_share_a_reply_and_one_that_fails_costs_the_others_nothing() {
    let world = world();
    world.file("a.txt", "one\ntwo").file("b.txt", "three\n").file("dir/c.bin", b"\x7FELF\x02\0\0");
    let paths = json!(["b.txt", "missing.txt", "a.txt", "dir", "dir/c.bin"]);
    let reply = read(&world, json!({ "paths": paths })).await;
    assert!(
        reply["content"].as_str().unwrap().starts_with("==> b.txt <==\nthree\n==> missing.txt <==\nerror[not_found]")
    );
    assert!(reply["content"].as_str().unwrap().contains("==> a.txt <==\none\ntwo\n==> dir <==\n"), "{reply}");
    let told: Vec<_> =
        reply["files"].as_array().unwrap().iter().map(|file| (&file["path"], &file["error"]["code"])).collect();
    assert_eq!(
        json!(told),
        json!([
            ["b.txt", null],
            ["missing.txt", "not_found"],
            ["a.txt", null],
            ["dir", "not_a_file"],
            ["dir/c.bin", "is_binary"]
        ])
    );
    assert_eq!(reply["files"][2]["total_lines"], 2);
    assert_eq!(reply["files"][2]["sha256"], sha256("one\ntwo"));
    assert!(reply["files"][0].get("content").is_none(), "the text is there once");
}

#[tokio::test]
async fn what_short_files_leave_is_for_the_long_ones_and_the_reply_is_never_cut() {
    let world = world();
    let long: String = (0..9_000).map(|number| format!("{number:05} {}\n", "x".repeat(number % 60))).collect();
    world.file("long1.txt", &long).file("long2.txt", &long);
    let mut paths: Vec<String> = (0..30).map(|number| format!("short{number}.txt")).collect();
    for path in &paths {
        world.file(path, "short\n");
    }
    paths.insert(0, "long1.txt".into());
    paths.push("long2.txt".into());
    for line_numbers in [false, true] {
        let reply = read(&world, json!({ "paths": paths, "line_numbers": line_numbers })).await;
        let files = reply["files"].as_array().unwrap();
        let ends: Vec<i64> = files.iter().map(|file| file["end_line"].as_i64().unwrap()).collect();
        assert!(ends[1..31].iter().all(|end| *end == 1), "short files are whole: {ends:?}");
        assert!(ends[0] > 300 && ends[31] > 300, "{ends:?}");
        assert!(files[0]["has_more"] == true && files[31]["has_more"] == true);
    }
    let many: Vec<String> = (0..33).map(|number| format!("{number}")).collect();
    assert_eq!(world.perform("read", json!({ "paths": many })).await.error.unwrap().code, ErrorCode::InvalidArgs);
}

#[tokio::test]
async fn a_policy_that_denies_one_of_several_files_names_it() {
    let world = world();
    world.file("a.txt", "a\n").file(".env", "KEY=1\n");
    let error = world.perform("read", json!({ "paths": ["a.txt", ".env"] })).await.error.unwrap();
    assert_eq!(error.code, ErrorCode::SensitivePath);
    assert!(error.details.unwrap().to_string().contains(".env"));
}

#[tokio::test]
async fn a_file_with_one_long_line_is_read_by_bytes() {
    let world = world();
    let line = "0123456789é".repeat(20_000);
    world.file("min.js", &line);
    let (mut offset, mut shown) = (0, String::new());
    loop {
        let part = read(&world, json!({ "path": "min.js", "offset_bytes": offset, "limit_bytes": 1_999 })).await;
        shown += part["content"].as_str().unwrap();
        offset = part["end_byte"].as_u64().unwrap();
        assert_eq!(part["sha256"], sha256(&line));
        if part["has_more"] == false {
            break;
        }
    }
    assert!(shown == line);
    let edit = json!({ "path": "min.js", "find": line, "replace": "x" });
    assert!(world.perform("edit", edit).await.ok, "what was read by bytes was seen");
}

#[tokio::test]
async fn arguments_that_contradict_each_other_are_refused() {
    let world = world();
    world.file("a.txt", "a\n");
    for args in [
        json!({}),
        json!({ "path": "a.txt", "paths": ["a.txt"] }),
        json!({ "path": "a.txt", "offset": 2, "offset_bytes": 1 }),
        json!({ "path": "a.txt", "limit": 2, "limit_bytes": 1 }),
        json!({ "paths": ["a.txt"], "offset_bytes": 1 }),
    ] {
        let reply = world.perform("read", args.clone()).await;
        assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::InvalidArgs), "{args}");
    }
}
