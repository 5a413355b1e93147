//! The state directory: what is created, with which access rights, and what is refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;
use toolgate_contract::{Artifacts, ErrorCode, ToolError};
use toolgate_journal::{JournalError, RunOptions, StateDirectory, list_runs, newest_runs, run_directories};

use crate::world::{RUN, World, facts, options};

/// Every path beneath a directory, with its mode.
fn modes(directory: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        found.push((path.display().to_string(), metadata.mode() & 0o777));
        if metadata.is_dir() {
            found.extend(modes(&path));
        }
    }
    found
}

#[test]
fn everything_belongs_to_its_owner_alone() {
    let world = World::new();
    let run = world.begin();
    run.artifacts.store(b"text", "text/plain").unwrap();
    run.save_pending("call-1", b"{}").unwrap();
    world.state.notebook("s", &world.options).unwrap();
    let _index = world.state.index().unwrap();
    assert_eq!(fs::metadata(world.state.path()).unwrap().mode() & 0o777, 0o700);
    let found = modes(world.state.path());
    for (path, mode) in &found {
        let expected = if Path::new(path).is_dir() { 0o700 } else { 0o600 };
        assert_eq!(*mode, expected, "{path}");
    }
    for name in ["events.jsonl", "events.head", "artifacts", "sandbox", "pending/call-1.json"] {
        assert!(world.file(name).exists(), "{name}");
    }
    assert!(found.iter().any(|(path, _)| path.ends_with("index.db-wal")), "{found:?}");
    assert_eq!(fs::read_to_string(world.state.path().join(".gitignore")).unwrap(), "*\n");
}

#[test]
fn a_directory_open_to_others_is_closed() {
    let workspace = TempDir::new().unwrap();
    let directory = workspace.path().join(".toolgate");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    StateDirectory::open(workspace.path()).unwrap();
    assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
}

/// A repository may contain any of these as a symbolic link to another place.
#[test]
fn nothing_is_written_through_a_link() {
    let elsewhere = TempDir::new().unwrap();
    for name in [".toolgate", ".toolgate/runs", ".toolgate/sessions", ".toolgate/runs/run-1"] {
        let workspace = TempDir::new().unwrap();
        let link = workspace.path().join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(elsewhere.path(), &link).unwrap();
        let refused =
            StateDirectory::open(workspace.path()).and_then(|state| state.open_run(RUN, &options()).map(drop));
        match refused {
            Err(JournalError::Link { path }) => assert!(path.ends_with(name), "{}", path.display()),
            other => panic!("{name}: {other:?}"),
        }
    }
    for name in ["events.jsonl", "events.head", "artifacts", "pending", "sandbox"] {
        let world = World::new();
        world.begin();
        let file = world.file(name);
        let target = elsewhere.path().join(name);
        fs::rename(&file, &target).unwrap();
        symlink(&target, &file).unwrap();
        let refused = world.state.open_run(RUN, &world.options).map(drop);
        assert!(matches!(refused, Err(JournalError::Link { .. })), "{name}: {refused:?}");
    }
    let world = World::new();
    symlink(elsewhere.path().join("db"), world.state.path().join("index.db")).unwrap();
    world.state.index().expect("the link is set aside");
    assert!(!elsewhere.path().join("db").exists());
}

#[test]
fn something_else_in_the_way_is_named() {
    let workspace = TempDir::new().unwrap();
    fs::write(workspace.path().join(".toolgate"), b"").unwrap();
    let error = StateDirectory::open(workspace.path()).map(drop).unwrap_err();
    assert!(
        error.to_string().ends_with(".toolgate` is not a directory. Move it out of the way and try again."),
        "{error}"
    );
}

#[test]
fn an_id_must_be_a_plain_name() {
    let world = World::new();
    for id in ["", ".", "..", "../x", "a/b", "a b", "a\0", "é", &"x".repeat(65)] {
        let refused = [
            world.state.begin_run(id, facts("s"), &world.options).map(drop),
            world.state.open_run(id, &world.options).map(drop),
            world.state.check_session(id),
            world.state.run_dir(id).map(drop),
        ];
        for refusal in refused {
            assert!(matches!(refusal, Err(JournalError::BadId { .. })), "{id:?}: {refusal:?}");
        }
    }
    world.state.begin_run(&"x".repeat(64), facts("s"), &world.options).unwrap();
}

#[test]
fn a_run_is_begun_once_and_opened_only_if_it_exists() {
    let world = World::new();
    world.begin();
    let again = world.state.begin_run(RUN, facts("s"), &world.options).map(drop);
    assert!(matches!(again, Err(JournalError::RunExists { .. })), "{again:?}");
    let missing = world.state.open_run("nobody", &RunOptions::default()).map(drop).unwrap_err();
    assert_eq!(missing.to_string(), "There is no run `nobody` here. `toolgate runs list` shows those that exist.");
    assert_eq!(ToolError::from(missing).code, ErrorCode::NotFound);
}

#[test]
fn runs_are_listed_by_name_and_nothing_else_is() {
    let world = World::new();
    for id in ["b", "a", "c"] {
        world.state.begin_run(id, facts("s"), &world.options).unwrap();
    }
    fs::write(world.state.path().join("runs/file"), b"").unwrap();
    fs::create_dir(world.state.path().join("runs/not an id")).unwrap();
    symlink(world.workspace.path(), world.state.path().join("runs/link")).unwrap();
    assert_eq!(list_runs(world.state.path()).unwrap(), ["a", "b", "c"]);
    assert!(list_runs(world.workspace.path()).unwrap().is_empty());
}

#[test]
fn the_newest_runs_are_found_by_their_ids() {
    let world = World::new();
    let id = |number: u8| format!("run_019a0000000070008000000000000{number:03}");
    for run in [id(1), id(2), id(3), "a".into()] {
        world.state.begin_run(&run, facts("s"), &world.options).unwrap();
    }
    fs::create_dir(world.state.path().join("runs").join(id(4))).unwrap();
    let newest = |limit| newest_runs(world.state.path(), limit).unwrap();
    assert_eq!(newest(2), [id(3), id(2), "a".into()], "the fourth hasn't begun, and `a` may be of any time");
    assert_eq!(newest(9), [id(3), id(2), id(1), "a".into()]);
    assert_eq!(run_directories(world.state.path()).unwrap(), ["a".into(), id(1), id(2), id(3), id(4)]);
}

#[test]
fn a_run_whose_maker_was_killed_before_its_first_event_is_none() {
    let world = World::new();
    world.begin();
    let runs = world.state.path().join("runs");
    let head = fs::read(runs.join(RUN).join("events.head")).unwrap();
    let half = |name: &str, files: &[(&str, &[u8])]| {
        fs::create_dir(runs.join(name)).unwrap();
        for (file, bytes) in files {
            fs::write(runs.join(name).join(file), bytes).unwrap();
        }
    };
    world.state.begin_run("started", facts("s"), &world.options).unwrap();
    half("folder", &[]);
    half("empty-head", &[("events.head", b"")]);
    assert_eq!(list_runs(world.state.path()).unwrap(), [RUN, "started"]);
    // A run whose journal is gone is still a run, so that `verify` can report it.
    half("head-of-more", &[("events.head", &head)]);
    half("no-head", &[("events.jsonl", b"")]);
    assert_eq!(list_runs(world.state.path()).unwrap(), ["head-of-more", "no-head", RUN, "started"]);
}

#[test]
fn a_pending_call_is_kept_whatever_its_id_looks_like() {
    let world = World::new();
    let run = world.begin();
    let directory = world.file("pending");
    for id in ["call_1", "../../escape", "with space", "", &"long".repeat(100)] {
        let path = run.save_pending(id, id.as_bytes()).unwrap();
        assert_eq!(path.parent(), Some(directory.as_path()), "{id}");
        assert_eq!(fs::read(&path).unwrap(), id.as_bytes());
        assert_eq!(run.load_pending(id).unwrap().as_deref(), Some(id.as_bytes()));
    }
    run.save_pending("call_1", b"newer").unwrap();
    assert_eq!(run.load_pending("call_1").unwrap().as_deref(), Some(b"newer".as_slice()));
    assert_eq!(run.load_pending("never").unwrap(), None);
}

#[test]
fn a_run_is_open_as_long_as_somebody_records_in_it() {
    let world = World::new();
    let run = world.begin();
    assert!(world.state.is_run_open(RUN) && world.state.is_run_open(RUN), "looking changes nothing");
    let other = world.reopen();
    drop(run);
    assert!(world.state.is_run_open(RUN), "another program has it");
    drop(other);
    assert!(!world.state.is_run_open(RUN));
}
