//! The embedded store: the suite that every store passes, and damage to its file.

use std::fs;
use std::os::unix::fs::FileExt;

use toolgate_journal::{EventStore, reindex};

use crate::store_suite::{SUITE, rows};
use crate::world::{RUN, World, some_calls, started};

#[test]
fn it_does_what_every_store_must() {
    for (name, test) in SUITE {
        println!("{name}");
        test(&World::new().state.index().unwrap());
    }
}

#[test]
fn a_new_store_is_filled_from_the_files_and_keeps_what_it_has() {
    let world = World::new();
    let run = world.begin();
    run.journal.append(&some_calls()).unwrap();
    let store = world.state.index().unwrap();
    let filled = rows(&store, RUN);
    assert_eq!(filled.2.len(), 6);
    drop(store);
    run.journal.append(&[started(9, "later")]).unwrap();
    let store = world.state.index().unwrap();
    assert_eq!(rows(&store, RUN), filled, "an existing store isn't filled again");
    assert_eq!(reindex(world.state.path(), &store).unwrap(), 7);
    assert_eq!(store.indexed_up_to(RUN).unwrap().seq, 7);
}

#[test]
fn a_file_that_is_no_database_is_replaced_and_rebuilt() {
    let world = World::new();
    world.begin().journal.append(&some_calls()).unwrap();
    let sound = rows(&world.state.index().unwrap(), RUN);
    let path = world.state.path().join("index.db");
    for number in 1..=2 {
        fs::write(&path, "not a database, ".repeat(1000)).unwrap();
        let store = world.state.index().unwrap();
        assert_eq!(rows(&store, RUN), sound);
        let aside = fs::read_to_string(path.with_file_name(format!("index.db.bad-{number}"))).unwrap();
        assert!(aside.starts_with("not a database"));
    }
}

#[test]
fn a_directory_in_its_place_is_replaced_too() {
    let world = World::new();
    world.begin();
    fs::create_dir(world.state.path().join("index.db")).unwrap();
    assert_eq!(world.state.index().unwrap().indexed_up_to(RUN).unwrap().seq, 1);
    assert!(world.state.path().join("index.db.bad-1").is_dir());
}

#[test]
fn a_database_of_a_newer_program_is_replaced() {
    let world = World::new();
    world.begin();
    drop(world.state.index().unwrap());
    let path = world.state.path().join("index.db");
    // SQLite keeps `user_version` at byte 60 of the file, big-endian.
    fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&999_u32.to_be_bytes(), 60).unwrap();
    assert_eq!(world.state.index().unwrap().indexed_up_to(RUN).unwrap().seq, 1);
    assert!(world.state.path().join("index.db.bad-1").exists());
}

#[test]
fn damage_that_shows_only_in_use_is_survived() {
    let world = World::new();
    world.begin().journal.append(&some_calls()).unwrap();
    let sound = rows(&world.state.index().unwrap(), RUN);
    let path = world.state.path().join("index.db");
    let size = fs::metadata(&path).unwrap().len();
    let garbage = vec![0xa5; usize::try_from(size - 4096).unwrap()];
    fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&garbage, 4096).unwrap();

    let store = world.state.index().unwrap();
    assert_eq!(store.calls(RUN).unwrap(), [], "it is empty, but it works");
    assert!(world.state.path().join("index.db.bad-1").exists());
    store.apply(RUN, &sound.2[..1]).unwrap();
    drop(store);
    assert_eq!(rows(&world.state.index().unwrap(), RUN), sound, "the next process that opens it fills it");
}
