//! Snapshots: complete whatever changes between two of them, and trusted only with a valid signature.
#![allow(clippy::disallowed_methods, reason = "tests prepare, damage and inspect files by themselves")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toolgate_contract::{Change, Durability, WorkspacePath, sha256};
use toolgate_journal::{BlobStore, SigningKey, SnapshotStore, StateDirectory};
use toolgate_sandbox::Roots;
use toolgate_testkit::wait_until;

use super::{Snapshot, SnapshotScope};

const QUOTA: u64 = 1 << 20;

/// A workspace.
struct World {
    directory: tempfile::TempDir,
    state: StateDirectory,
    files: Roots,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("workspace")).unwrap();
        let workspace = directory.path().join("workspace");
        Self { state: StateDirectory::open(&workspace).unwrap(), files: Roots::open(&workspace).unwrap(), directory }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join("workspace").join(path)
    }

    fn put(&self, path: &str, content: &str) {
        std::fs::write(self.at(path), content).unwrap();
    }

    fn snapshots(&self, key: Option<u8>) -> SnapshotStore {
        self.state.snapshots(key.map(|byte| SigningKey::from([byte; 32]))).unwrap()
    }

    fn contents(&self) -> BlobStore {
        self.state.contents(Durability::Os).unwrap()
    }

    fn take(&self, key: Option<u8>) -> Snapshot {
        self.take_up_to(key, QUOTA)
    }

    fn take_up_to(&self, key: Option<u8>, quota: u64) -> Snapshot {
        let except = [WorkspacePath::in_workspace(".toolgate")].into();
        let scope = SnapshotScope { run: "run".into(), call: "call".into(), roots: vec![0], except, quota };
        Snapshot::take(scope, &self.snapshots(key), &self.files).unwrap()
    }

    /// The snapshots that were left behind, and warnings about those that aren't trusted.
    fn abandoned(&self, key: u8) -> (Vec<Snapshot>, Vec<String>) {
        self.snapshots(Some(key)).abandoned(Snapshot::read).unwrap()
    }

    /// The names in the snapshot directory.
    fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.at(".toolgate/snapshots")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The copies that the next snapshot starts from: their names and inodes.
    fn copies(&self) -> BTreeMap<String, u64> {
        let entries = std::fs::read_dir(self.at(".toolgate/snapshots/.last")).into_iter().flatten().flatten();
        let name = |entry: &std::fs::DirEntry| entry.file_name().into_string().unwrap();
        let is_copy = |entry: &std::fs::DirEntry| name(entry).parse::<u64>().is_ok();
        entries.filter(is_copy).map(|entry| (name(&entry), entry.metadata().unwrap().ino())).collect()
    }

    /// Takes snapshots until the copies of one serve the next as well: then no file is too recently changed any more.
    fn settle(&self) {
        wait_until("no file is too recently changed", || {
            self.take(Some(1)).rest();
            let copies = self.copies();
            self.take(Some(1)).rest();
            !copies.is_empty() && self.copies() == copies
        });
    }
}

fn before_of(changes: &[Change], path: &str) -> Option<String> {
    let change = changes.iter().find(|change| change.path == path).unwrap_or_else(|| panic!("{path} didn't change"));
    change.before.as_ref().map(|before| before.sha256.clone())
}

/// A process that has mapped a file, and writes to it through memory, one letter for each line that it is sent.
struct Mapped {
    process: std::process::Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Mapped {
    fn new(path: &Path) -> Self {
        let program = "import mmap, sys\nf = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0); f.close()\n\
                       for line in sys.stdin:\n    m[0:1] = line[0:1].encode(); print(flush=True)";
        let mut command = Command::new("python3");
        let command = command.args(["-c", program]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, answers }
    }

    fn write(&mut self, letter: char) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{letter}").unwrap();
        self.answers.read_line(&mut String::new()).unwrap();
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}

#[test]
fn one_that_begins_from_the_last_has_what_is_there_by_then() {
    let world = World::new();
    let same = |name: &str| format!("{name}: content of the same length");
    let names = ["untouched", "rewritten", "linked", "replaced", "swapped-1", "swapped-2", "anew", "mapped", "mode"];
    for name in names {
        world.put(name, &same(name));
    }
    std::fs::hard_link(world.at("linked"), world.directory.path().join("elsewhere")).unwrap();
    symlink("one", world.at("link")).unwrap();
    let mut mapped = Mapped::new(&world.at("mapped"));
    mapped.write('1');
    let modified = std::fs::metadata(world.at("rewritten")).unwrap().modified().unwrap();
    // The mapped file is copied each time; all the others are reused.
    drop(std::fs::rename(world.at("mapped"), world.directory.path().join("mapped")));
    world.settle();
    drop(std::fs::rename(world.directory.path().join("mapped"), world.at("mapped")));
    world.take(Some(1)).rest();
    let copies = world.copies();

    let other = |name: &str| same(name).to_uppercase();
    world.put("rewritten", &other("rewritten"));
    std::fs::File::options().write(true).open(world.at("rewritten")).unwrap().set_modified(modified).unwrap();
    std::fs::write(world.directory.path().join("elsewhere"), other("linked")).unwrap();
    world.put("new", &other("replaced"));
    std::fs::rename(world.at("new"), world.at("replaced")).unwrap();
    for (from, to) in [("swapped-1", "swapped"), ("swapped-2", "swapped-1"), ("swapped", "swapped-2")] {
        std::fs::rename(world.at(from), world.at(to)).unwrap();
    }
    std::fs::remove_file(world.at("anew")).unwrap();
    world.put("anew", &other("anew"));
    std::fs::remove_file(world.at("link")).unwrap();
    symlink("two", world.at("link")).unwrap();
    mapped.write('2');

    let mut snapshot = world.take(Some(1));
    let there = names.map(|name| (name, sha256(std::fs::read(world.at(name)).unwrap())));
    for name in names {
        world.put(name, "something else");
    }
    std::fs::remove_file(world.at("link")).unwrap();
    let changes = snapshot.changes(&world.files, None).unwrap();
    for (name, content) in there {
        assert_eq!(before_of(&changes, name), Some(content), "{name}");
    }
    assert_eq!(before_of(&changes, "link"), Some(sha256("two")));
    snapshot.store_previous_contents(&changes, &world.contents()).unwrap();
    let link = changes.iter().find(|change| change.path == "link").unwrap().before.clone().unwrap();
    assert_eq!(world.contents().get(&link.sha256).unwrap(), Some(b"two".to_vec().into()));
    snapshot.rest();
    let kept = world.copies().iter().filter(|(name, inode)| copies.get(*name) == Some(inode)).count();
    assert_eq!(kept, 2, "what nobody touched was copied once: {copies:?} and then {:?}", world.copies());
}

#[test]
fn it_stays_within_its_quota_and_one_is_kept() {
    let world = World::new();
    world.put("small", "1");
    world.put("large", &"x".repeat(1000));
    world.settle();
    assert_eq!(world.copies().len(), 2);
    for (quota, copies) in [(500, 1), (0, 0), (QUOTA, 2)] {
        let (one, other) = (world.take_up_to(Some(1), quota), world.take_up_to(Some(1), quota));
        assert_eq!(world.left(), ["call", "call-2"]);
        one.rest();
        other.rest();
        assert_eq!((world.left(), world.copies().len()), (vec![".last".to_owned()], copies), "{quota}");
    }
    std::fs::remove_file(world.at("large")).unwrap();
    world.take(Some(1)).rest();
    assert_eq!(world.copies().len(), 1, "copies go with what they are copies of");
    world.take(None).rest();
    assert_eq!(world.left(), [] as [&str; 0], "without a key nobody could tell whose it is");
}

#[test]
fn what_is_half_made_or_half_removed_goes_with_the_next_start() {
    let world = World::new();
    world.put("a", "1");
    world.take(Some(1)).rest();
    let directory = world.at(".toolgate/snapshots");
    std::fs::create_dir_all(directory.join(".draft-call/directory")).unwrap();
    std::fs::write(directory.join(".draft-call/0"), "copy").unwrap();
    std::fs::write(directory.join(".draft-file"), "").unwrap();
    let snapshots = world.snapshots(Some(1));
    assert!(snapshots.abandoned(Snapshot::read).unwrap().0.is_empty());
    snapshots.clear().unwrap();
    assert_eq!(world.left(), [".last"]);
}

#[test]
fn an_abandoned_snapshot_is_trusted_where_it_was_taken_and_nowhere_else() {
    // A trusted snapshot is recorded: if it were forged, undo would write whatever it claims.
    let world = World::new();
    world.put("a", "theirs");
    drop(world.take(Some(1)));
    world.put("a", "ours");
    let (mut abandoned, _) = world.abandoned(1);
    let changes = abandoned[0].changes(&world.files, None).unwrap();
    assert_eq!(before_of(&changes, "a"), Some(sha256("theirs")));
    drop(abandoned);

    let call = world.at(".toolgate/snapshots/call");
    let copy =
        |from: &Path, to: &Path| assert!(Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
    let keep = world.directory.path().join("kept");
    copy(&call, &keep);
    let foreign: [(&str, u8, &dyn Fn()); 4] = [
        ("another's key", 2, &|| ()),
        ("brought from elsewhere", 1, &|| copy(&keep, &call)),
        ("no list at all", 1, &|| std::fs::create_dir(&call).unwrap()),
        ("a lock that leads elsewhere", 1, &|| {
            std::fs::create_dir(&call).unwrap();
            symlink("/nowhere", call.join("lock")).unwrap();
        }),
    ];
    for (number, (name, key, make)) in foreign.into_iter().enumerate() {
        make();
        let (found, warnings) = world.abandoned(key);
        assert!(found.is_empty() && warnings[0].contains(".foreign-call"), "{name}: {:?}", warnings);
        assert_eq!(world.left().len(), number + 1, "{name}: {:?}", world.left());
    }
    world.snapshots(Some(1)).clear().unwrap();
    assert_eq!(world.left().len(), 4, "they are kept for a day");
}

#[test]
fn a_replaced_copy_is_not_used() {
    for exchange in [true, false] {
        let world = World::new();
        world.put("a", "ours 1");
        drop(world.take(Some(1)));
        let copy = world.at(".toolgate/snapshots/call/0");
        if exchange {
            std::fs::remove_file(&copy).unwrap();
            std::fs::write(&copy, "theirs").unwrap();
        }
        world.put("a", "ours 2");
        let (mut abandoned, _) = world.abandoned(1);
        let changes = abandoned[0].changes(&world.files, None).unwrap();
        let expected = if exchange { "0".repeat(64) } else { sha256("ours 1") };
        assert_eq!(before_of(&changes, "a"), Some(expected));
    }
}

#[test]
fn what_was_refreshed_is_known_after_a_kill() {
    let world = World::new();
    world.put("a", "1");
    world.put("b", "1");
    let mut snapshot = world.take(Some(1));
    world.put("a", "2");
    let changes = snapshot.changes(&world.files, None).unwrap();
    snapshot.store_previous_contents(&changes, &world.contents()).unwrap();
    drop(snapshot);
    let mut abandoned = world.abandoned(1).0.remove(0);
    assert_eq!(abandoned.changes(&world.files, None).unwrap(), changes, "killed before it was on record");
    abandoned.go_on(&changes, &world.contents(), &world.files).unwrap();
    drop(abandoned);
    // A process was killed while writing; the rest is missing.
    let list = world.at(".toolgate/snapshots/call/list");
    std::fs::File::options().append(true).open(list).unwrap().write_all(&[0, 0, 0, 0, 0, 0, 1]).unwrap();
    world.put("b", "2");
    for _ in 0..2 {
        let mut abandoned = world.abandoned(1).0.remove(0);
        let changes = abandoned.changes(&world.files, None).unwrap();
        assert_eq!((changes.len(), before_of(&changes, "b")), (1, Some(sha256("1"))), "killed afterwards");
        abandoned.refresh([WorkspacePath::in_workspace("a")].iter(), &world.files).unwrap();
    }
    let before = changes[0].before.clone().unwrap();
    assert_eq!(world.contents().get(&before.sha256).unwrap(), Some(b"1".to_vec().into()));
}
