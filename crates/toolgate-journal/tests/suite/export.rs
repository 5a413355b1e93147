//! A run exported as one value.

use toolgate_contract::{
    Artifacts, Blob, CallEnding, Change, Durability, EventPayload, FileState, WorkspacePath, sha256,
};
use toolgate_journal::export;

use crate::world::{RUN, World, event, key, some_calls};

#[test]
fn an_export_needs_nothing_else() {
    let world = World::new();
    let run = world.begin();
    run.journal.append(&some_calls()).unwrap();
    let stored = run.artifacts.store(b"\xff\xfe binary", "application/octet-stream").unwrap();
    let ending = CallEnding { refs: vec![stored.clone(), stored], ..CallEnding::default() };
    let text = Blob::from(b"before".to_vec());
    world.state.contents(Durability::Os).unwrap().put(&text).unwrap();
    let state = |hash: &str| Some(FileState::new(hash, 6, 0o644));
    let change = Change {
        path: "a.txt".into(),
        place: WorkspacePath::in_workspace("a.txt"),
        before: state(text.sha256()),
        after: state(&sha256("evicted")),
    };
    let changing = event(8, "call-1", EventPayload::FilesChanging { changes: vec![change], made: true });
    run.journal.append(&[changing, event(9, "call-1", EventPayload::CallCompleted(ending))]).unwrap();
    run.end().unwrap();

    let value = export(&world.state, RUN, Some(&key()), true).unwrap();
    let lines: Vec<String> =
        std::fs::read_to_string(world.file("events.jsonl")).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(value["events"].as_array().unwrap().len(), lines.len());
    assert_eq!(value["chain"]["verification"]["ok"], true);
    assert_eq!(value["chain"]["last"]["sha256"], sha256(lines.last().unwrap()));
    assert_eq!(value["chain"]["head"]["hash"], value["chain"]["last"]["sha256"]);
    assert_eq!(value["artifacts"].as_array().unwrap().len(), 1);
    assert_eq!(value["artifacts"][0]["content"]["base64"], "//4gYmluYXJ5");
    assert_eq!(value["changes"][0]["tool_call_id"], "call-1");
    assert_eq!(value["contents"][text.sha256()]["text"], "before");
    assert!(value["contents"][sha256("evicted")].is_null());
    let lean = export(&world.state, RUN, Some(&key()), false).unwrap();
    assert_eq!(lean["contents"].as_object().unwrap().len(), 0);
}
