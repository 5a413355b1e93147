//! Files that are far larger than memory should ever know. They are mostly holes, so they take no room on the disk.
#![allow(clippy::disallowed_methods, missing_docs, reason = "tests make files of their own")]

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde_json::{Value, json};
use toolgate_testkit::TestWorkspace;

/// Memory that a call may take for itself, in KiB: a few buffers and a page.
const MOST_GROWTH: u64 = 32 * 1024;

/// Lines at the start, a hole that is one endless line, and lines at the end.
fn world_with_a_hole(size: u64) -> TestWorkspace {
    let world = TestWorkspace::new(toolgate_tools::all(), "");
    let file = File::create(world.path().join("huge.log")).unwrap();
    file.write_all_at("a line of the start\n".repeat(5_000).as_bytes(), 0).unwrap();
    file.write_all_at(b"\nlast but one\nthe last\n", size - 23).unwrap();
    world
}

async fn read(world: &TestWorkspace, args: Value) -> Value {
    let reply = world.perform("read", args).await;
    assert!(reply.ok, "{:?}", reply.error);
    reply.payload.unwrap()
}

/// The most memory that this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn ten_gigabytes_from_both_ends() {
    let world = world_with_a_hole(10 << 30);
    let first = read(&world, json!({"path": "huge.log", "limit": 2})).await;
    let before = peak();
    let page = read(&world, json!({"path": "huge.log", "offset": 4_999, "limit": 1})).await;
    assert_eq!((&page["content"], &page["has_more"]), (&json!("a line of the start\n"), &json!(true)));
    assert_eq!(
        (&page["total_lines"], &page["sha256"], &page["bytes"]),
        (&json!(null), &json!(null), &json!(10_u64 << 30))
    );
    let page = read(&world, json!({"path": "huge.log", "offset": -2, "limit": 1})).await;
    assert_eq!((&page["content"], &page["has_more"]), (&json!("last but one\n"), &json!(true)));
    assert_eq!((&page["start_line"], &page["end_line"]), (&json!(-2), &json!(-2)));
    let page = read(&world, json!({"path": "huge.log", "offset": -1, "line_numbers": true})).await;
    assert_eq!((&page["content"], &page["has_more"]), (&json!("   -1\tthe last\n"), &json!(false)));
    assert_eq!(first["content"], json!("a line of the start\n".repeat(2)));
    assert!(peak() - before < MOST_GROWTH, "{} KiB", peak() - before);
}

#[tokio::test]
async fn passing_over_half_a_gigabyte_costs_no_memory() {
    let world = world_with_a_hole(1 << 29);
    read(&world, json!({"path": "huge.log", "limit": 2})).await;
    let before = peak();
    let page = read(&world, json!({"path": "huge.log", "offset": 5_002})).await;
    assert_eq!((&page["content"], &page["start_line"]), (&json!("last but one\nthe last\n"), &json!(5_002)));
    let page = read(&world, json!({"path": "huge.log", "offset": 5_004})).await;
    assert_eq!((&page["content"], &page["has_more"]), (&json!(""), &json!(false)));
    let page = read(&world, json!({"path": "huge.log", "offset": -5_002, "limit": 1})).await;
    assert_eq!((&page["content"], &page["start_line"]), (&json!("a line of the start\n"), &json!(-5_002)));
    assert!(peak() - before < MOST_GROWTH, "{} KiB", peak() - before);
}

#[tokio::test]
async fn a_single_line_of_a_gigabyte_is_cut() {
    let world = TestWorkspace::new(toolgate_tools::all(), "limits.line_chars = 100000");
    let file = File::create(world.path().join("line.json")).unwrap();
    file.write_all_at(&b"x".repeat(100_000), 0).unwrap();
    file.write_all_at(b"]\n", (1 << 30) - 2).unwrap();
    read(&world, json!({"path": "line.json", "offset": -1})).await;
    let before = peak();
    for offset in [1, -1] {
        let page = read(&world, json!({"path": "line.json", "offset": offset})).await;
        let shown = page["content"].as_str().unwrap().len() as u64;
        assert!((40 * 1024..=50 * 1024).contains(&shown), "{shown}");
        assert_eq!(page["cut_bytes"], json!((1 << 30) - shown));
        assert_eq!((&page["start_line"], &page["has_more"]), (&json!(1), &json!(false)));
    }
    assert!(peak() - before < MOST_GROWTH, "{} KiB", peak() - before);
}
