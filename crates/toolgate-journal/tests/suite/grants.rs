//! Remembered approvals.

use std::fs;
use std::path::PathBuf;

use jiff::Timestamp;
use toolgate_contract::{ApprovalScope, Effect};
use toolgate_journal::{Grant, GrantFile, RunOptions};

use crate::world::{RUN, World};

fn grant(tool: &str) -> Grant {
    Grant {
        tool: tool.into(),
        effects: vec![Effect::write("a"), Effect::Run { command: "make".into(), workdir: ".".into() }],
        scope: ApprovalScope::Session,
        by: "ada".into(),
        at: Timestamp::from_second(1_700_000_000).unwrap(),
        expires: Some(Timestamp::from_second(1_700_003_600).unwrap()),
        run: RUN.into(),
        session: "s".into(),
        tool_call_id: "call-1".into(),
    }
}

/// The grants of a session called `s`, and their file.
fn session(world: &World, options: &RunOptions) -> (GrantFile, PathBuf) {
    let grants = world.state.session_grants("s", options).unwrap();
    (grants, world.state.path().join("sessions/s/grants.jsonl"))
}

#[test]
fn grants_are_read_back_in_order() {
    let world = World::new();
    let run = world.begin();
    assert_eq!(run.approvals.load().unwrap().grants, []);
    let never_ends = Grant { expires: None, scope: ApprovalScope::Run, ..grant("two") };
    run.approvals.append(&grant("one")).unwrap();
    run.approvals.append(&never_ends).unwrap();
    let loaded = world.reopen().approvals.load().unwrap();
    assert_eq!(loaded.grants, [grant("one"), never_ends]);
    assert_eq!(loaded.warnings, [] as [String; 0]);
    assert_eq!(fs::read_to_string(world.file("approvals.jsonl")).unwrap().lines().count(), 2);

    let (grants, _) = session(&world, &world.options);
    grants.append(&grant("three")).unwrap();
    assert_eq!(session(&world, &world.options).0.load().unwrap().grants, [grant("three")]);
}

#[test]
fn a_bad_line_is_skipped_with_a_warning_and_affects_no_other() {
    let world = World::new();
    let unsigned = RunOptions { key: None, ..world.options.clone() };
    let (grants, file) = session(&world, &unsigned);
    grants.append(&grant("one")).unwrap();
    let mut text = fs::read(&file).unwrap();
    text.extend_from_slice(b"\xff\n{\"tool\":\"half");
    fs::write(&file, text).unwrap();
    grants.append(&grant("two")).unwrap();
    let loaded = grants.load().unwrap();
    assert_eq!(loaded.grants, [grant("one"), grant("two")]);
    assert_eq!(loaded.warnings.len(), 2);
    assert!(loaded.warnings[1].starts_with("Line 3 of `"), "{:?}", loaded.warnings);
    assert!(loaded.warnings[1].ends_with("grants.jsonl` is not a grant, so it grants nothing."));
}

/// The files are in the workspace, so the author of a repository could add some.
#[test]
fn with_a_key_only_grants_signed_for_this_file_count() {
    let world = World::new();
    let (grants, file) = session(&world, &world.options);
    grants.append(&grant("shell")).unwrap();
    let signed = fs::read_to_string(&file).unwrap();
    let unsigned = serde_json::to_string(&grant("shell")).unwrap() + "\n";
    let widened = signed.replace("\"path\":\"a\"", "\"path\":\".\"");
    assert_ne!(widened, signed);
    for (forged, why) in [(unsigned, "has no signature"), (widened, "wasn't signed with this key")] {
        fs::write(&file, forged).unwrap();
        let loaded = grants.load().unwrap();
        assert_eq!(loaded.grants, []);
        assert!(loaded.warnings[0].contains(why), "{:?}", loaded.warnings);
    }
    let other = world.state.session_grants("other", &world.options).unwrap();
    fs::write(world.state.path().join("sessions/other/grants.jsonl"), &signed).unwrap();
    assert_eq!(other.load().unwrap().grants, [], "a line can't be carried to another session");
    fs::write(&file, &signed).unwrap();
    assert_eq!(grants.load().unwrap().grants, [grant("shell")]);
}

#[test]
fn many_handles_may_append_at_once() {
    let world = World::new();
    world.begin();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let world = &world;
            scope.spawn(move || {
                let run = world.reopen();
                for number in 0..25 {
                    run.approvals.append(&grant(&format!("{thread}-{number}"))).unwrap();
                }
            });
        }
    });
    let loaded = world.reopen().approvals.load().unwrap();
    assert_eq!((loaded.grants.len(), loaded.warnings.len()), (100, 0));
}
