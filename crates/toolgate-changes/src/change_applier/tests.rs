//! Changes that fail half-way, and what is left on disk then.

#![allow(clippy::disallowed_methods, reason = "tests prepare and inspect files by themselves")]

use std::os::fd::BorrowedFd;

use toolgate_contract::{Change, ChangeSource, Changes, FileState, Files, WorkspacePath, sha256};
use toolgate_sandbox::Roots;

use crate::recover::tests::{World, settler_with_quota};

/// Has nothing to write.
struct Nothing;

impl ChangeSource for Nothing {
    fn put(&self, _: &Change, _: BorrowedFd<'_>, _: &[u8], _: &str) -> std::io::Result<()> {
        Err(std::io::ErrorKind::StorageFull.into())
    }
}

#[test]
fn a_change_that_fails_half_way_is_reverted_also_beyond_the_quota() {
    let world = World::new();
    let names: Vec<String> = (0..20).map(|number| format!("file-{number}")).collect();
    names.iter().for_each(|name| world.put(name, &name.repeat(100)));
    let files = Roots::open(&world.at("")).unwrap();
    let change = |name: &str, after: Option<FileState>| {
        let place = WorkspacePath::in_workspace(name);
        let before = files.node(&place, true).unwrap().map(|node| node.state);
        Change { path: name.into(), place, before, after }
    };
    let new = FileState::new(sha256("new"), 3, 0o644);
    let mut changes: Vec<Change> = names.iter().map(|name| change(name, None)).collect();
    changes.push(change("new", Some(new)));
    let changer = settler_with_quota(&world.at(""), 5_000).changer;
    let failed = changer.write_changes(changes, &Nothing).unwrap_err();
    assert_eq!(failed.hint.as_deref(), Some("Everything is as it was before."), "{failed:?}");
    for name in &names {
        let content = std::fs::read_to_string(world.at(name)).unwrap_or_default();
        assert_eq!(content, name.repeat(100), "{name} is as it was before");
    }
}
