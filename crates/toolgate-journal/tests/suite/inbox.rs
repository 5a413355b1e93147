//! The embedded inbox: the suite that every inbox passes, a file of an older program, and one that can't be read.

use std::time::Duration;

use toolgate_journal::{Inbox, Lease, TaskState};

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

/// A file as the program before the present schema left it: a task that waits, one that is held, and one that is done.
const OLDER_FILE: &str = "
    CREATE TABLE inbox (
        id TEXT PRIMARY KEY, task TEXT NOT NULL, reply_to TEXT NOT NULL, created INTEGER NOT NULL,
        state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, runs TEXT NOT NULL,
        unwanted INTEGER NOT NULL DEFAULT 0,
        outcome TEXT, answer TEXT, finished INTEGER, lease TEXT, lease_until INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX inbox_by_time ON inbox (created, id);
    CREATE INDEX inbox_by_lease ON inbox (lease);
    ALTER TABLE inbox ADD COLUMN queue TEXT NOT NULL DEFAULT '';
    PRAGMA user_version = 2;
    INSERT INTO inbox (id, task, reply_to, created, state, attempts, runs, lease, lease_until) VALUES
        ('waits', 'do it', 'terminal', 3, 'waiting', 0, '[]', NULL, NULL),
        ('held', 'do it', 'terminal', 2, 'working', 1, '[\"run_1\"]', 'old', 1),
        ('done', 'do it', 'terminal', 1, 'done', 1, '[]', 'older', 1);
";

#[test]
fn a_file_of_an_older_program_keeps_its_tasks() {
    let world = World::new();
    let file = world.state.path().join("inbox.db");
    rusqlite::Connection::open(&file).unwrap().execute_batch(OLDER_FILE).unwrap();
    let inbox = world.state.inbox().unwrap();
    let take = |token: &str| inbox.take(&Lease { token: token.into(), lasts: Duration::from_secs(3600) }).unwrap();
    let held = take("a").unwrap();
    assert_eq!((held.id.as_str(), held.attempts, held.runs), ("held", 2, vec!["run_1".to_owned()]));
    assert_eq!(take("b").unwrap().id, "waits");
    assert_eq!((take("c"), inbox.task("done").unwrap().unwrap().state), (None, TaskState::Done));
}
