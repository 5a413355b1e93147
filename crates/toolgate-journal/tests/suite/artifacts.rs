//! Stored output.

use std::fs;
use std::io::Read;

use toolgate_contract::{Artifacts, ErrorCode};

use crate::world::{World, facts};

fn names(world: &World) -> Vec<String> {
    let entries = fs::read_dir(world.file("artifacts")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_stored_is_read_back_under_the_name_of_its_content() {
    let world = World::new();
    let run = world.begin();
    let stored = run.artifacts.store(b"one\ntwo", "text/plain").unwrap();
    assert_eq!(stored.sha256, "21066d108d5319ecb5a1fc4454f42ef22fc5f1c7df49c31d90294950e0ea8b2c");
    assert_eq!(stored.id, format!("art_{}", &stored.sha256[..32]));
    assert_eq!((stored.bytes, stored.lines, stored.mime.as_str()), (7, Some(2), "text/plain"));
    let (found, mut file) = world.reopen().artifacts.open(&stored.id).unwrap();
    assert_eq!(found, stored);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"one\ntwo");
}

#[test]
fn the_same_bytes_are_stored_once() {
    let world = World::new();
    let run = world.begin();
    let first = run.artifacts.store(b"same", "text/plain").unwrap();
    let before = names(&world);
    assert_eq!(run.artifacts.store(b"same", "text/plain").unwrap(), first);
    assert_eq!(names(&world), before);
    assert_eq!(before, [first.id.clone(), format!("{}.json", first.id)]);
}

#[test]
fn lines_are_counted_for_text_only() {
    let world = World::new();
    let run = world.begin();
    for (bytes, mime, lines) in [
        (b"".as_slice(), "text/plain", Some(0)),
        (b"a", "text/plain", Some(1)),
        (b"a\n", "text/html; charset=utf-8", Some(1)),
        (b"a\nb", "application/json", Some(2)),
        (b"\n\n", "text/plain", Some(2)),
        (b"\n\n\n", "image/png", None),
    ] {
        assert_eq!(run.artifacts.store(bytes, mime).unwrap().lines, lines, "{mime} {bytes:?}");
    }
}

#[test]
fn bytes_may_come_bit_by_bit() {
    let world = World::new();
    let run = world.begin();
    let mut writer = run.artifacts.begin("text/plain").unwrap();
    let mut whole = Vec::new();
    for number in 0..100_000 {
        let part = format!("line {number}\n");
        writer.write(part.as_bytes()).unwrap();
        whole.extend_from_slice(part.as_bytes());
    }
    writer.write(b"").unwrap();
    let streamed = writer.finish().unwrap();
    assert_eq!(streamed, run.artifacts.store(&whole, "text/plain").unwrap());
    assert_eq!(streamed.lines, Some(100_000));
    assert_eq!(fs::read(world.file("artifacts").join(&streamed.id)).unwrap(), whole);
}

#[test]
fn what_is_not_finished_leaves_nothing_behind() {
    let world = World::new();
    let run = world.begin();
    let mut writer = run.artifacts.begin("text/plain").unwrap();
    writer.write(&[b'x'; 1_000_000]).unwrap();
    assert!(names(&world).is_empty(), "what is being written has no name yet");
    drop(writer);
    assert!(names(&world).is_empty());
}

#[test]
fn only_an_artifact_of_this_run_can_be_opened() {
    let world = World::new();
    let run = world.begin();
    let other = world.state.begin_run("other", facts("s"), &world.options).unwrap();
    let theirs = other.artifacts.store(b"theirs", "text/plain").unwrap().id;
    let ours = run.artifacts.store(b"ours", "text/plain").unwrap().id;
    let roundabout = format!("../../other/artifacts/{theirs}");
    let about = format!("{ours}.json");
    let shouted = ours.to_uppercase();
    for id in [theirs.as_str(), &roundabout, &about, &shouted, "", ".", "..", "art_", "../events.jsonl", "art_\0"] {
        let error = run.artifacts.open(id).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound, "{id}");
        assert!(error.hint.unwrap().contains("`refs`"), "{id}");
    }
    run.artifacts.open(&ours).unwrap();
}

#[test]
fn half_an_artifact_counts_as_none_and_storing_it_again_repairs_it() {
    let world = World::new();
    let run = world.begin();
    let stored = run.artifacts.store(b"text", "text/plain").unwrap();
    let about = world.file("artifacts").join(format!("{}.json", stored.id));
    for damage in [b"".as_slice(), b"{\"id\":\"art_x\"}"] {
        fs::write(&about, damage).unwrap();
        assert_eq!(run.artifacts.open(&stored.id).unwrap_err().code, ErrorCode::NotFound);
        assert_eq!(run.artifacts.store(b"text", "text/plain").unwrap(), stored);
        run.artifacts.open(&stored.id).unwrap();
    }
    fs::write(world.file("artifacts").join(&stored.id), b"longer text").unwrap();
    let error = run.artifacts.open(&stored.id).unwrap_err();
    assert!(error.message.contains("was changed on disk"), "{error}");
}
