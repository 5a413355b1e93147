//! The embedded inbox: the suite that every inbox passes, several processes, and a file that can't be read.

use toolgate_journal::Inbox;

use crate::inbox_suite::SUITE;
use crate::world::World;

#[test]
fn it_does_what_every_inbox_must() {
    for (name, test) in SUITE {
        println!("{name}");
        test(&World::new().state.inbox().unwrap());
    }
}

#[test]
fn waiting_tasks_are_never_discarded() {
    let world = World::new();
    world.state.inbox().unwrap();
    let file = world.state.path().join("inbox.db");
    std::fs::write(&file, "not a database, but somebody's tasks all the same").unwrap();
    let failed = world.state.inbox().and_then(|inbox| inbox.tasks(true, 1).map(drop));
    assert!(failed.is_err());
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("not a database"), "it is left as it was");
}

#[test]
fn the_file_belongs_to_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.state.inbox().unwrap();
    let mode = std::fs::metadata(world.state.path().join("inbox.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
