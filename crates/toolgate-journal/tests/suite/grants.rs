//! Remembered approvals.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use tempfile::TempDir;
use toolgate_contract::{ApprovalScope, Durability, Effect};
use toolgate_journal::{Grant, GrantStore, Revocation, SigningKey, StateDirectory, WorkspaceIdentity};

use crate::world::{RUN, World};

/// When the grants of these tests are given; they end an hour later.
fn given() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

fn grant(tool: &str) -> Grant {
    Grant {
        id: format!("grant-{tool}"),
        tool: tool.into(),
        effects: vec![Effect::write("a"), Effect::Run { command: "make".into(), workdir: ".".into() }],
        scope: ApprovalScope::Session,
        workspace: WorkspaceIdentity { path: "/w".into(), directory: "1".into() },
        by: "ada".into(),
        at: given(),
        expires: Some(Timestamp::from_second(1_700_003_600).unwrap()),
        run: RUN.into(),
        session: "s".into(),
        session_continues: false,
        tool_call_id: "call-1".into(),
        revoked: None,
    }
}

/// The user's store, as seen from a workspace.
fn store(user: &Path, workspace: &Path) -> GrantStore {
    let state = StateDirectory::open(workspace).unwrap();
    state.grants(user, SigningKey::from([7; 32]), Durability::Os).unwrap()
}

/// A grant that was given in the workspace of this store.
fn granted_in(store: &GrantStore, tool: &str) -> Grant {
    Grant { workspace: store.workspace().clone(), scope: ApprovalScope::Always, ..grant(tool) }
}

fn tools(store: &GrantStore, now: Timestamp) -> Vec<String> {
    store.grants(now).unwrap().grants.into_iter().map(|grant| grant.tool).collect()
}

#[test]
fn grants_of_a_run_are_recorded_in_order() {
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
}

#[test]
fn a_torn_line_affects_no_other() {
    let world = World::new();
    let run = world.begin();
    run.approvals.append(&grant("one")).unwrap();
    let mut text = fs::read(world.file("approvals.jsonl")).unwrap();
    text.extend_from_slice(b"\xff\n{\"tool\":\"half");
    fs::write(world.file("approvals.jsonl"), text).unwrap();
    run.approvals.append(&grant("two")).unwrap();
    let loaded = run.approvals.load().unwrap();
    assert_eq!(loaded.grants, [grant("one"), grant("two")]);
    assert_eq!(loaded.warnings.len(), 2);
    assert!(loaded.warnings[1].starts_with("Line 3 of `"), "{:?}", loaded.warnings);
    assert!(loaded.warnings[1].ends_with("approvals.jsonl` has no signature, so it grants nothing."));
}

/// The same path in another workspace is another file.
#[test]
fn a_grant_reaches_its_own_workspace_alone() {
    let (user, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let at = |name: &str| place.path().join(name);
    for name in ["one", "two", "one/nested"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    let one = store(user.path(), &at("one"));
    one.add(&granted_in(&one, "delete"), given()).unwrap();
    let reaches = |name: &str| !tools(&store(user.path(), &at(name)), given()).is_empty();
    assert!(reaches("one"));
    assert!(!reaches("two") && !reaches("one/nested"));
    assert_eq!(store(user.path(), &at("two")).everywhere(given()).unwrap().grants.len(), 1);

    fs::rename(at("one"), at("moved")).unwrap();
    assert!(!reaches("moved"), "the person was shown another path");
    fs::create_dir(at("one")).unwrap();
    assert!(!reaches("one"), "another directory took its place");
    fs::remove_dir_all(at("one")).unwrap();
    fs::rename(at("moved"), at("one")).unwrap();
    assert!(reaches("one"), "it is back where it was");
}

#[test]
fn a_grant_ends_when_it_expires_or_is_removed() {
    let (user, workspace) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = store(user.path(), workspace.path());
    let unlimited = Grant { expires: None, ..granted_in(&store, "unlimited") };
    for grant in [granted_in(&store, "one"), granted_in(&store, "two"), unlimited] {
        store.add(&grant, given()).unwrap();
    }
    let expired = Timestamp::from_second(1_700_003_600).unwrap();
    assert_eq!(tools(&store, given()), ["one", "two", "unlimited"]);
    assert_eq!(tools(&store, expired), ["unlimited"]);

    let removed = store.remove(|grant| grant.id == "grant-two").unwrap();
    assert_eq!(removed.iter().map(|grant| grant.tool.as_str()).collect::<Vec<_>>(), ["two"]);
    assert_eq!(store.remove(|grant| grant.id == "grant-two").unwrap(), []);
    assert_eq!(tools(&store, given()), ["one", "unlimited"]);

    let revocation = Revocation { by: "bob".into(), at: given() };
    assert_eq!(store.revoke(&revocation, |grant| grant.tool == "one").unwrap().len(), 1);
    assert_eq!(store.revoke(&revocation, |grant| grant.tool == "one").unwrap(), [], "once");
    assert_eq!(tools(&store, given()), ["unlimited"]);
    let revoked = store.revoked(given()).unwrap();
    assert_eq!((revoked.len(), &revoked[0].revoked), (1, &Some(revocation)), "and it is known who did it");

    store.add(&granted_in(&store, "three"), expired).unwrap();
    let lines = fs::read_to_string(user.path().join("grants.jsonl")).unwrap();
    assert!(!lines.contains("grant-one") && lines.contains("grant-three"), "what has expired is not kept: {lines}");
}

#[test]
fn only_what_was_signed_with_this_key_for_this_file_counts() {
    let (user, workspace) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = store(user.path(), workspace.path());
    store.add(&granted_in(&store, "shell"), given()).unwrap();
    let file = user.path().join("grants.jsonl");
    let signed = fs::read_to_string(&file).unwrap();
    let unsigned = serde_json::to_string(&granted_in(&store, "shell")).unwrap() + "\n";
    let widened = signed.replace("\"path\":\"a\"", "\"path\":\".\"");
    let prolonged = signed.replace("2023-11-14T23:13:20Z", "2033-11-14T23:13:20Z");
    assert!(widened != signed && prolonged != signed);
    let world = World::new();
    world.begin().approvals.append(&granted_in(&store, "shell")).unwrap();
    let from_a_run = fs::read_to_string(world.file("approvals.jsonl")).unwrap();
    for (forged, why) in [
        (unsigned, "has no signature"),
        (widened, "wasn't signed with this key"),
        (prolonged, "wasn't signed with this key"),
        (from_a_run, "wasn't signed with this key"),
    ] {
        fs::write(&file, forged).unwrap();
        let loaded = store.grants(given()).unwrap();
        assert_eq!(loaded.grants, [], "{why}");
        assert!(loaded.warnings[0].contains(why), "{:?}", loaded.warnings);
    }
    fs::write(&file, &signed).unwrap();
    assert_eq!(tools(&store, given()), ["shell"]);
}

#[test]
fn many_programs_may_add_and_remove_at_once() {
    let (user, workspace) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (user, workspace) = (user.path(), workspace.path());
            scope.spawn(move || {
                let store = store(user, workspace);
                for number in 0..10 {
                    store.add(&granted_in(&store, &format!("{thread}-{number}")), given()).unwrap();
                    store.remove(|grant| number % 2 == 1 && grant.tool == format!("{thread}-{number}")).unwrap();
                }
            });
        }
    });
    let loaded = store(user.path(), workspace.path()).grants(given()).unwrap();
    assert_eq!((loaded.grants.len(), loaded.warnings.len()), (20, 0));
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
