//! Snapshots: complete whatever changes between two of them, and trusted only with a valid signature.
#![allow(clippy::disallowed_methods, reason = "tests prepare, damage and inspect files by themselves")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use toolgate_contract::{Change, Clock, DIRECTORY_MODE, Durability, FileState, SystemClock, WorkspacePath, sha256};
use toolgate_journal::{BlobStore, ChangeNotice, NoticeKind, RunOptions, SigningKey, SnapshotStore, StateDirectory};
use toolgate_sandbox::Roots;
use toolgate_testkit::wait_until;

use super::{Snapshot, SnapshotScope};
use crate::change_log::ChangeLog;

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

    fn set_mode(&self, path: &str, mode: u32) {
        std::fs::set_permissions(self.at(path), PermissionsExt::from_mode(mode)).unwrap();
    }

    fn make_directory(&self, path: &str) {
        std::fs::create_dir(self.at(path)).unwrap();
        self.set_mode(path, 0o755);
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
        self.copies_of(".last")
    }

    /// The copies of a snapshot.
    fn copies_of(&self, name: &str) -> BTreeMap<String, u64> {
        let entries = std::fs::read_dir(self.at(".toolgate/snapshots").join(name)).into_iter().flatten().flatten();
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
    snapshot.collect(&world.files, None, &world.contents()).unwrap();
    let link = changes.iter().find(|change| change.path == "link").unwrap().before.clone().unwrap();
    assert_eq!(world.contents().get(&link.sha256).unwrap(), Some(b"two".to_vec().into()));
    let kept = world.copies_of("call").iter().filter(|(name, inode)| copies.get(*name) == Some(inode)).count();
    assert_eq!(kept, 2, "what nobody touched was copied once: {copies:?} and then {:?}", world.copies_of("call"));
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
fn what_was_sealed_is_known_after_a_kill() {
    let world = World::new();
    world.put("a", "1");
    world.put("b", "1");
    let mut snapshot = world.take(Some(1));
    world.put("a", "2");
    snapshot.collect(&world.files, None, &world.contents()).unwrap();
    drop(snapshot);
    let mut abandoned = world.abandoned(1).0.remove(0);
    assert_eq!(abandoned.unrecorded(), None, "killed before it was sealed");
    abandoned.collect(&world.files, None, &world.contents()).unwrap();
    let (time, changes) = abandoned.seal(SystemClock.now(), false).unwrap().unwrap();
    assert_eq!((changes.len(), before_of(&changes, "a")), (1, Some(sha256("1"))));
    drop(abandoned);
    // A process was killed while writing; the rest is missing.
    let list = world.at(".toolgate/snapshots/call/list");
    std::fs::File::options().append(true).open(list).unwrap().write_all(&[0, 0, 0, 0, 0, 0, 1]).unwrap();
    world.put("b", "2");
    for _ in 0..2 {
        let mut abandoned = world.abandoned(1).0.remove(0);
        assert_eq!(abandoned.unrecorded(), Some((time, changes.clone())), "killed afterwards");
        let more = abandoned.changes(&world.files, None).unwrap();
        assert_eq!((more.len(), before_of(&more, "b")), (1, Some(sha256("1"))));
    }
    let mut abandoned = world.abandoned(1).0.remove(0);
    abandoned.collect(&world.files, None, &world.contents()).unwrap();
    assert_eq!(
        abandoned.seal(SystemClock.now(), true).unwrap().unwrap().1.len(),
        2,
        "what isn't on record is repeated"
    );
    drop(abandoned);
    world.put("b", "3");
    for _ in 0..2 {
        let mut settled = world.abandoned(1).0.remove(0);
        settled.collect(&world.files, None, &world.contents()).unwrap();
        assert!(settled.is_final() && settled.unrecorded().is_some_and(|(_, changes)| changes.len() == 2));
    }
    let before = changes[0].before.clone().unwrap();
    assert_eq!(world.contents().get(&before.sha256).unwrap(), Some(b"1".to_vec().into()));
}

#[test]
fn a_copy_that_a_kill_left_unlisted_is_no_obstacle_and_no_content_goes_with_it() {
    let world = World::new();
    world.put("a", "1");
    drop(world.take(Some(1)));
    world.put("a", "2");
    // The copy that comes next is there already: its maker was killed before it was listed.
    std::fs::write(world.at(".toolgate/snapshots/call/1"), "half").unwrap();
    for _ in 0..2 {
        let mut abandoned = world.abandoned(1).0.remove(0);
        abandoned.collect(&world.files, None, &world.contents()).unwrap();
    }
    assert_eq!(world.contents().get(&sha256("1")).unwrap(), Some(b"1".to_vec().into()));
}

/// Another process changes a file by a call, as the change log does it.
fn by_another_process(path: &str, before: Option<&str>, after: &str) -> Change {
    let state = |content: &str| FileState::new(sha256(content), content.len() as u64, 0o644);
    let place = WorkspacePath::in_workspace(path);
    let (before, after) = (before.map(state), Some(state(after)));
    Change { path: path.into(), place, before, after }
}

#[test]
fn what_calls_of_another_process_changed_is_theirs_and_the_commands_part_comes_in_turn() {
    let world = World::new();
    for (path, content) in [("turns", "first"), ("theirs", "old"), ("reverted", "old")] {
        world.put(path, content);
        std::fs::set_permissions(world.at(path), PermissionsExt::from_mode(0o644)).unwrap();
    }
    let snapshot = world.take(Some(1));
    let notices = world.snapshots(Some(1));
    let tell = |id: &str, changes: Vec<Change>, is_reverted: bool| {
        let kind = if is_reverted { NoticeKind::Reverted } else { NoticeKind::Made };
        let notice = ChangeNotice { id: id.into(), changes, kind };
        notices.notify(&notices.unsettled().unwrap(), &notice).unwrap();
    };
    // The command wrote "command 1"; another process replaced it by "theirs"; the command wrote "command 2".
    tell("1", vec![by_another_process("turns", Some("command 1"), "theirs")], false);
    tell("2", vec![by_another_process("theirs", Some("old"), "new")], false);
    tell("3", vec![by_another_process("reverted", Some("old"), "new")], false);
    tell("3", Vec::new(), true);
    tell("4", vec![directory("made", None, Some(0o755)), by_another_process("made/deep", None, "x")], false);
    world.put("turns", "command 2");
    world.put("theirs", "new");
    world.make_directory("made");
    world.put("made/deep", "x");
    // Whether its process goes on, or recovery does after a kill.
    drop(snapshot);
    let mut snapshot = world.abandoned(1).0.remove(0);
    snapshot.collect(&world.files, None, &world.contents()).unwrap();
    let (_, changes) = snapshot.seal(SystemClock.now(), true).unwrap().unwrap();
    let hash = |state: &Option<FileState>| state.as_ref().map(|state| state.sha256.clone());
    let found: Vec<_> = changes.iter().map(|one| (one.path.as_str(), hash(&one.before), hash(&one.after))).collect();
    assert_eq!(snapshot.current(changes.clone()), changes[1..], "the command wrote last");
    let part = |before: &str, after: &str| ("turns", Some(sha256(before)), Some(sha256(after)));
    assert_eq!(found, [part("first", "command 1"), part("theirs", "command 2")]);
    assert_eq!(world.contents().get(&sha256("first")).unwrap(), Some(b"first".to_vec().into()));
    snapshot.tidy(&world.contents()).unwrap();
    assert_eq!(std::fs::read_dir(world.at(".toolgate/snapshots/call/others")).unwrap().count(), 0);
}

/// Another process makes or removes a directory, or changes its mode.
fn directory(path: &str, before: Option<u32>, after: Option<u32>) -> Change {
    let state = |mode: u32| FileState::new(sha256(""), 0, DIRECTORY_MODE | mode);
    let place = WorkspacePath::in_workspace(path);
    Change { path: path.into(), place, before: before.map(state), after: after.map(state) }
}

#[test]
fn directories_that_calls_of_another_process_made_changed_or_removed_are_theirs() {
    let world = World::new();
    ["mode", "own"].into_iter().for_each(|path| world.make_directory(path));
    let mut snapshot = world.take(Some(1));
    let notices = world.snapshots(Some(1));
    let tell = |id: &str, changes: Vec<Change>| {
        let notice = ChangeNotice { id: id.into(), changes, kind: NoticeKind::Made };
        notices.notify(&notices.unsettled().unwrap(), &notice).unwrap();
    };
    // They made a directory with a file in it, and removed both again.
    let gone = |change: Change| Change { before: change.after, after: change.before, ..change };
    let made = [directory("made", None, Some(0o755)), by_another_process("made/x", None, "x")];
    tell("1", made.to_vec());
    tell("2", made.into_iter().map(gone).collect());
    // They wrote into a directory, and changed its mode afterwards.
    tell("3", vec![by_another_process("mode/x", None, "x")]);
    tell("4", vec![directory("mode", Some(0o755), Some(0o700))]);
    world.put("mode/x", "x");
    world.set_mode("mode", 0o700);
    // The command changed the mode of a directory, into which they wrote afterwards.
    world.set_mode("own", 0o750);
    tell("5", vec![by_another_process("own/x", None, "x")]);
    world.put("own/x", "x");
    ["mode/x", "own/x"].into_iter().for_each(|path| world.set_mode(path, 0o644));
    snapshot.collect(&world.files, None, &world.contents()).unwrap();
    let (_, changes) = snapshot.unrecorded().unwrap();
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["own"]);
}

#[test]
fn a_notice_of_another_process_counts_also_where_a_call_of_this_one_comes_first() {
    let world = World::new();
    let mut snapshot = world.take(Some(1));
    let notices = world.snapshots(Some(1));
    let changes = vec![by_another_process("theirs", None, "x")];
    notices
        .notify(&notices.unsettled().unwrap(), &ChangeNotice { id: "1".into(), changes, kind: NoticeKind::Made })
        .unwrap();
    ["theirs", "ours"].into_iter().for_each(|path| world.put(path, "x"));
    world.set_mode("theirs", 0o644);
    let ours = [WorkspacePath::in_workspace("ours")];
    snapshot.changed_by_others(ours.iter(), &world.files, &world.contents(), SystemClock.now()).unwrap();
    snapshot.collect(&world.files, None, &world.contents()).unwrap();
    assert!(snapshot.unrecorded().is_none(), "{:?}", snapshot.unrecorded());
}

#[test]
fn a_notice_that_nobody_signed_says_nothing() {
    let world = World::new();
    world.put("a", "1");
    let mut snapshot = world.take(Some(1));
    let notices = world.snapshots(Some(2));
    let changes = vec![by_another_process("a", Some("1"), "2")];
    let notice = ChangeNotice { id: "1".into(), changes, kind: NoticeKind::Made };
    notices.notify(&notices.unsettled().unwrap(), &notice).unwrap();
    world.put("a", "2");
    snapshot.collect(&world.files, None, &world.contents()).unwrap();
    assert_eq!(snapshot.unrecorded().unwrap().1.len(), 1, "it is the command's change");
}

#[test]
fn a_change_that_another_call_replaced_is_current_no_more_and_can_be_told_all_the_same() {
    let world = World::new();
    let mut snapshot = world.take(Some(1));
    let workspace = StateDirectory::open(&world.at("")).unwrap();
    let options = RunOptions { key: Some(SigningKey::from([1; 32])), ..RunOptions::default() };
    let log = ChangeLog::new(workspace, Arc::new(world.contents()), options);
    let gone = Change { after: None, ..by_another_process("a", Some("command"), "") };
    // The command wrote `a`, and a call of another process removed it.
    log.tell_commands("1", &[gone], &world.files).unwrap();
    snapshot.collect(&world.files, None, &world.contents()).unwrap();
    let (_, changes) = snapshot.unrecorded().unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!(snapshot.current(changes.clone()), []);
    log.tell_commands("2", &changes, &world.files).unwrap();
}

#[test]
fn what_another_command_is_found_to_have_changed_before_is_part_of_the_snapshot() {
    let world = World::new();
    world.make_directory("made");
    world.put("changed", "2");
    world.set_mode("changed", 0o644);
    let mut snapshot = world.take(Some(1));
    let notices = world.snapshots(Some(1));
    // Another command made these changes before the snapshot, and it is known only now.
    let changes = vec![directory("made", None, Some(0o755)), by_another_process("changed", Some("1"), "2")];
    let notice = ChangeNotice { id: "1".into(), changes, kind: NoticeKind::Found };
    notices.notify(&notices.unsettled().unwrap(), &notice).unwrap();
    snapshot.collect(&world.files, None, &world.contents()).unwrap();
    assert!(snapshot.unrecorded().is_none(), "{:?}", snapshot.unrecorded());
}
