//! What is out of bounds is found again whatever happened meanwhile, though directories that haven't changed aren't looked into.
#![allow(clippy::disallowed_methods, reason = "tests arrange files by themselves")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use proptest::collection::vec;
use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;
use toolgate_contract::{Access, HiddenPaths, WorkspacePath};
use toolgate_runtime::HiddenPathScanner;
use toolgate_sandbox::Roots;

/// Hides `.env`, everything in `private` and `.toolgate`, and guards `.git/config`. Counts how often it is asked.
#[derive(Default)]
struct Names {
    asked: Mutex<usize>,
}

impl HiddenPaths for Names {
    fn hides(&self, access: Access, place: &WorkspacePath) -> bool {
        *self.asked.lock().unwrap() += 1;
        let mut names = place.path.rsplit('/');
        match access {
            Access::Read => names.any(|name| name.starts_with(".env") || ["private", ".toolgate"].contains(&name)),
            _ => place.path.ends_with(".git/config"),
        }
    }
}

struct World {
    directory: TempDir,
    roots: Roots,
    scanner: HiddenPathScanner,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let roots = Roots::open(directory.path()).unwrap();
        let world = Self { directory, roots, scanner: HiddenPathScanner::default() };
        for file in ["a/b/c/one.txt", "a/b/two.txt", "a/three.txt", ".git/config", ".git/HEAD", "d/e/four.txt"] {
            world.put(file);
        }
        world
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn put(&self, name: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), "").unwrap();
    }

    /// What is hidden, by the look that remembers; a look that remembers nothing has to find the same.
    fn hidden(&self) -> Vec<String> {
        let hidden_paths = Names::default();
        let found = self.scanner.restricted_paths(&self.roots, &hidden_paths).unwrap();
        assert_eq!(found, HiddenPathScanner::default().restricted_paths(&self.roots, &hidden_paths).unwrap());
        assert_eq!(found.protected, [WorkspacePath::in_workspace(".git/config")]);
        found.hidden.into_iter().map(|place| place.path).collect()
    }

    /// How often policy is asked.
    fn asked(&self) -> usize {
        let hidden_paths = Names::default();
        self.scanner.restricted_paths(&self.roots, &hidden_paths).unwrap();
        hidden_paths.asked.into_inner().unwrap()
    }

    /// Waits until every directory was left alone for so long that it has a mark. Never so on file systems that don't keep time.
    fn settle(&self) -> bool {
        let pause = || std::thread::sleep(std::time::Duration::from_millis(50));
        (0..400).any(|_| {
            self.asked() == 0 || {
                pause();
                false
            }
        })
    }
}

#[test]
fn a_secret_is_found_whenever_and_however_it_comes() {
    let world = World::new();
    assert_eq!(world.hidden(), [] as [&str; 0]);
    world.settle();
    world.put("a/b/c/.env");
    assert_eq!(world.hidden(), ["a/b/c/.env"]);
    world.put("a/.env");
    assert_eq!(world.hidden(), ["a/.env", "a/b/c/.env"]);
    fs::rename(world.path("a/b"), world.path("d/b")).unwrap();
    assert_eq!(world.hidden(), ["a/.env", "d/b/c/.env"]);
    world.settle();
    fs::rename(world.path("d/b/c/.env"), world.path("d/b/c/plain")).unwrap();
    fs::rename(world.path("d/e/four.txt"), world.path("d/e/.env.local")).unwrap();
    assert_eq!(world.hidden(), ["a/.env", "d/e/.env.local"]);
    fs::create_dir(world.path("d/private")).unwrap();
    fs::hard_link(world.path("a/.env"), world.path("d/b/.envy")).unwrap();
    std::os::unix::fs::symlink("plain", world.path("d/b/c/.env")).unwrap();
    assert_eq!(world.hidden(), ["a/.env", "d/b/.envy", "d/b/c/.env", "d/e/.env.local", "d/private"]);
}

#[test]
fn a_directory_in_the_place_of_another_is_looked_into() {
    let world = World::new();
    world.put("other/b/c/.env");
    world.put("other/b/two.txt");
    assert_eq!(world.hidden(), ["other/b/c/.env"]);
    world.settle();
    // All of these keep the times of what is in them.
    fs::rename(world.path("a"), world.path("old")).unwrap();
    fs::rename(world.path("other"), world.path("a")).unwrap();
    assert_eq!(world.hidden(), ["a/b/c/.env"]);
    world.settle();
    fs::rename(world.path("a/b"), world.path("a/x")).unwrap();
    fs::rename(world.path("old/b"), world.path("a/b")).unwrap();
    assert_eq!(world.hidden(), ["a/x/c/.env"]);
    fs::remove_dir_all(world.path("a")).unwrap();
    std::os::unix::fs::symlink("old", world.path("a")).unwrap();
    assert_eq!(world.hidden(), [] as [&str; 0]);
}

#[test]
fn setting_the_times_of_a_directory_back_hides_nothing() {
    let world = World::new();
    world.settle();
    let directory = fs::File::open(world.path("a/b")).unwrap();
    let before = directory.metadata().unwrap();
    world.put("a/b/.env");
    let times = fs::FileTimes::new().set_modified(before.modified().unwrap()).set_accessed(before.accessed().unwrap());
    directory.set_times(times).unwrap();
    assert_eq!(world.hidden(), ["a/b/.env"]);
}

#[test]
fn changes_in_quick_succession_are_never_missed() {
    let world = World::new();
    for number in 0..200 {
        let name = format!("a/b/.env{number}");
        world.put(&name);
        assert_eq!(world.hidden(), [name.as_str()]);
        fs::remove_file(world.path(&name)).unwrap();
        assert_eq!(world.hidden(), [] as [&str; 0]);
    }
}

#[test]
fn what_has_not_changed_is_not_looked_into() {
    let world = World::new();
    if world.settle() {
        world.put("a/b/c/new.txt");
        // Two names of one directory, each for reading and for writing.
        assert_eq!(world.asked(), 4);
    }
}

#[test]
fn names_that_are_not_text_are_found_like_others() {
    for (name, shown) in [(&b"caf\xe9/.env"[..], r"caf\xe9/.env"), (b"a/.env\xff", r"a/.env\xff")] {
        let world = World::new();
        let path = world.directory.path().join(Path::new(OsStr::from_bytes(name)));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        for _ in 0..2 {
            assert_eq!(world.hidden(), [shown]);
        }
        fs::remove_file(path).unwrap();
        assert_eq!(world.hidden(), [] as [&str; 0]);
    }
}

#[test]
fn a_hidden_file_is_hidden_under_each_of_its_names() {
    let world = World::new();
    world.put("a/.env");
    fs::hard_link(world.path("a/.env"), world.path("d/e/notes.txt")).unwrap();
    fs::hard_link(world.path("a/three.txt"), world.path("d/four.txt")).unwrap();
    assert_eq!(world.hidden(), ["a/.env", "d/e/notes.txt"]);
    world.settle();
    assert_eq!(world.hidden(), ["a/.env", "d/e/notes.txt"], "also if no directory has changed");
    // Now the hidden name is the new one, and the directory of the other name stays as it was.
    fs::hard_link(world.path("d/four.txt"), world.path("a/b/.env.local")).unwrap();
    assert_eq!(world.hidden(), ["a/.env", "a/b/.env.local", "a/three.txt", "d/e/notes.txt", "d/four.txt"]);
    fs::remove_file(world.path("a/.env")).unwrap();
    fs::remove_file(world.path("a/b/.env.local")).unwrap();
    assert_eq!(world.hidden(), [] as [&str; 0], "no hidden name is left");
}

#[test]
fn a_file_in_a_hidden_directory_is_hidden_under_each_of_its_names() {
    let world = World::new();
    world.put("private/deep/key");
    world.put("private/other");
    fs::hard_link(world.path("private/deep/key"), world.path("d/e/notes.txt")).unwrap();
    fs::hard_link(world.path("private/deep/key"), world.path("private/key")).unwrap();
    assert_eq!(world.hidden(), ["d/e/notes.txt", "private"]);
    world.settle();
    fs::hard_link(world.path("private/other"), world.path("a/notes.txt")).unwrap();
    assert_eq!(world.hidden(), ["a/notes.txt", "d/e/notes.txt", "private"]);
    fs::remove_dir_all(world.path("private")).unwrap();
    assert_eq!(world.hidden(), [] as [&str; 0], "no hidden name is left");
    // Toolgate's own state holds links to ordinary files, which stay visible.
    world.put(".toolgate/snapshots/s/one");
    fs::hard_link(world.path("a/three.txt"), world.path(".toolgate/snapshots/s/two")).unwrap();
    assert_eq!(world.hidden(), [".toolgate"]);
}

/// What somebody does to a tree between two scans. The numbers choose among a few names.
#[derive(Debug, Clone)]
enum Step {
    Put(usize, usize),
    MakeDirectory(usize, usize),
    Rename(usize, usize, usize),
    Exchange(usize, usize),
    Remove(usize),
    Link(usize, usize, usize),
}

const PLACES: [&str; 7] = ["a", "a/b", "a/b/c", "d", "d/e", "d/private", "new"];
const NAMES: [&str; 4] = ["plain", ".env", "private", "b"];

fn step() -> impl Strategy<Value = Step> {
    let (place, name) = (0..PLACES.len(), 0..NAMES.len());
    prop_oneof![
        (place.clone(), name.clone()).prop_map(|(place, name)| Step::Put(place, name)),
        (place.clone(), name.clone()).prop_map(|(place, name)| Step::MakeDirectory(place, name)),
        (place.clone(), place.clone(), name.clone()).prop_map(|(from, place, name)| Step::Rename(from, place, name)),
        (place.clone(), place.clone()).prop_map(|(one, other)| Step::Exchange(one, other)),
        place.clone().prop_map(Step::Remove),
        (place.clone(), place, name).prop_map(|(from, place, name)| Step::Link(from, place, name)),
    ]
}

impl World {
    /// Does a step. One that can't be done, such as moving a directory into itself, does nothing.
    fn take(&self, step: &Step) {
        let in_place = |place: &usize, name: &usize| self.path(PLACES[*place]).join(NAMES[*name]);
        let _ = match step {
            Step::Put(place, name) => fs::write(in_place(place, name), ""),
            Step::MakeDirectory(place, name) => fs::create_dir_all(in_place(place, name)),
            Step::Rename(from, place, name) => fs::rename(self.path(PLACES[*from]), in_place(place, name)),
            Step::Exchange(one, other) => {
                let [one, other] = [one, other].map(|place| self.path(PLACES[*place]));
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(Into::into)
            }
            Step::Remove(place) => fs::remove_dir_all(self.path(PLACES[*place])),
            Step::Link(from, place, name) => {
                fs::hard_link(self.path(PLACES[*from]).join(".env"), in_place(place, name))
            }
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_watched_tree_is_known_after_any_changes(story in vec(vec(step(), 1..4), 1..12)) {
        let world = World::new();
        // The directories are watched from the second scan on.
        (0..2).for_each(|_| drop(world.hidden()));
        for steps in story {
            steps.iter().for_each(|step| world.take(step));
            // It compares with a scan that remembers nothing.
            world.hidden();
        }
    }
}

#[test]
fn more_changes_than_the_kernel_queues_hide_nothing() {
    let queued: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    let world = World::new();
    (0..2).for_each(|_| drop(world.hidden()));
    for _ in 0..=queued / 2 {
        world.put("a/b/file");
        fs::remove_file(world.path("a/b/file")).unwrap();
    }
    world.put("d/e/.env");
    assert_eq!(world.hidden(), ["d/e/.env"]);
}

#[test]
fn what_is_mounted_over_a_watched_directory_is_found() {
    let world = World::new();
    (0..2).for_each(|_| drop(world.hidden()));
    let other = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::write(other.path().join(".env"), "").unwrap();
    let mounted = Command::new("mount").arg("--bind").arg(other.path()).arg(world.path("d/e")).status().unwrap();
    if !mounted.success() {
        return toolgate_testkit::skip("mounts", "only root mounts");
    }
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.hidden()));
    assert!(Command::new("umount").arg(world.path("d/e")).status().unwrap().success());
    assert_eq!(found.unwrap(), ["d/e/.env"]);
    assert_eq!(world.hidden(), [] as [&str; 0]);
}
