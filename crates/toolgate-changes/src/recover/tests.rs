//! A command that worked in place is settled once, whatever moment a kill comes at: while it is settled, and again while the
//! next start recovers. So is a change of files: it is made, or reverted, and on record as it ended. `strace` kills after one system call, then after the next, until none is left.
#![allow(clippy::disallowed_methods, reason = "tests prepare and inspect files by themselves, and start processes")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use toolgate_contract::{
    Access, ApplyMode, Change, Changes, Durability, EventOrigin, EventPayload, FileContent, FileEdit, FileState, Files,
    HiddenPaths, LaunchSpec, RunFacts, SystemClock, WorkspacePath, sha256,
};
use toolgate_journal::{RunOptions, RunRecorder, SigningKey, StateDirectory, Verification, read_events, verify};
use toolgate_sandbox::Roots;

use crate::{ChangeLog, ChangeOptions, ChangeSettler, WorkspaceChanges};

/// System calls that change something which outlives a process.
const CALLS: &str = "openat,write,pwrite64,renameat,renameat2,unlinkat,linkat,mkdirat,rmdir,ftruncate,copy_file_range,\
                     sendfile,fchmod,fchmodat,flock";

/// More system calls of any kind than the test harness makes by itself.
const HARNESS_CALLS: usize = 32;

/// What the child process does, and where.
const ROLE: &str = "TOOLGATE_TEST_ROLE";
const WORKSPACE: &str = "TOOLGATE_TEST_WORKSPACE";

struct NothingHidden;

impl HiddenPaths for NothingHidden {
    fn hides(&self, _: Access, _: &WorkspacePath) -> bool {
        false
    }
}

fn options() -> RunOptions {
    RunOptions { key: Some(SigningKey::from([7; 32])), ..RunOptions::default() }
}

fn changes(workspace: &Path, quota: u64) -> Arc<WorkspaceChanges> {
    let state = StateDirectory::open(workspace).unwrap();
    let contents = Arc::new(state.contents(Durability::Os).unwrap().with_quota(quota));
    let log = ChangeLog::new(state, contents, options());
    let directories = vec![workspace.to_owned()];
    let options = ChangeOptions { roots: vec![0], directories, ..ChangeOptions::default() };
    let files = Arc::new(Roots::open(workspace).unwrap());
    Arc::new(WorkspaceChanges::new(files, Arc::new(NothingHidden), Arc::new(SystemClock), Some(log), options))
}

/// More than any of these tests stores.
const LARGE_QUOTA: u64 = 1 << 20;

/// A workspace with a run that has begun.
pub(crate) struct World {
    directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(world.at("")).unwrap();
        world.put("a.txt", "one");
        world.put("b.txt", "gone");
        let state = StateDirectory::open(&world.at("")).unwrap();
        let word = || "test".to_owned();
        let facts = RunFacts { workspace: word(), session: word(), preset: word(), front_end: word(), version: word() };
        state.begin_run("run", facts, &options()).unwrap();
        // The next snapshot starts from this one, so that the settled one takes the place of another.
        let settler = settler(&world.at(""));
        settler.begin_in_place(&LaunchSpec::shell("true"), true).unwrap().release_snapshot();
        world
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join("workspace").join(path)
    }

    pub(crate) fn put(&self, path: &str, content: &str) {
        std::fs::write(self.at(path), content).unwrap();
    }

    /// Runs this program again in a role, killed after so many of these system calls.
    fn child(&self, role: &str, killed: Option<&(String, usize)>) -> ExitStatus {
        let (mut command, program) = (Command::new("strace"), std::env::current_exe().unwrap());
        command.args(["-f", "-qq", "-o"]).arg(self.directory.path().join(format!("{role}.trace")));
        match killed {
            None => command.args(["-e", &format!("trace={CALLS}")]),
            Some((call, count)) => {
                let inject = format!("inject={call}:signal=SIGKILL:when={count}");
                command.args(["-e", &format!("trace={call}"), "-e", &inject])
            }
        };
        let test = ["--exact", "recover::tests::child", "--ignored", "--test-threads=1", "--nocapture"];
        command.arg(program).args(test).env(ROLE, role).env(WORKSPACE, self.at(""));
        // Each directory in it would make the loader try to open files that aren't there.
        command.env_remove("LD_LIBRARY_PATH");
        command.stdout(std::process::Stdio::null()).status().unwrap()
    }

    /// The system calls that a role makes from its beginning on, each with its number, as its trace shows them.
    fn moments(&self, role: &str) -> Vec<(String, usize)> {
        let trace = std::fs::read_to_string(self.directory.path().join(format!("{role}.trace"))).unwrap();
        let lines: Vec<(&str, &str)> = trace.lines().filter_map(|line| line.split_once(' ')).collect();
        let (thread, _) = lines.iter().find(|(_, call)| call.contains("/begins")).expect("it begins");
        let (mut counts, mut moments, mut has_begun) = (BTreeMap::new(), Vec::new(), false);
        for (_, call) in lines.iter().filter(|(one, _)| one == thread) {
            let Some((name, _)) = call.trim_start().split_once('(') else { continue };
            let count = counts.entry(name.to_owned()).or_insert(0);
            *count += 1;
            has_begun |= call.contains("/begins");
            if has_begun {
                moments.push((name.to_owned(), *count));
            }
        }
        moments
    }

    /// What the journal says that the call changed, in order.
    fn recorded(&self) -> Vec<Change> {
        let events = read_events(&self.at(".toolgate/runs/run")).unwrap().map(|event| event.unwrap().event);
        let changes = events.filter_map(|event| match event.payload {
            EventPayload::FilesChanging { changes, .. } if event.tool_call_id.as_deref() == Some("call") => {
                Some(changes)
            }
            _ => None,
        });
        changes.flatten().collect()
    }

    /// A person works here: what they do is never the command's, once the command's own changes are known.
    fn person(&self, name: &str) {
        if !self.recorded().is_empty() {
            self.put(name, "mine");
        }
    }

    /// The command's changes are on record once, nobody else's are, and everything can be undone.
    fn check(&self, moment: &str) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for change in self.recorded() {
            *counts.entry(change.path).or_default() += 1;
        }
        let expected = [(".envrc", 2), ("a.txt", 1), ("b.txt", 1), ("new", 1), ("new/c.txt", 1)];
        let counts: Vec<(&str, usize)> = counts.iter().map(|(path, count)| (path.as_str(), *count)).collect();
        assert_eq!(counts, expected, "{moment}");
        let contents = StateDirectory::open(&self.at("")).unwrap().contents(Durability::Os).unwrap();
        for content in ["one", "gone"] {
            assert!(contents.get(&sha256(content)).unwrap().is_some(), "{moment}: `{content}` can't be restored");
        }
        let quarantine = StateDirectory::open(&self.at("")).unwrap().quarantine().unwrap();
        assert_eq!(quarantine.changes("call").unwrap().len(), 1, "{moment}: what was reverted is in quarantine");
        assert!(!self.at(".envrc").exists(), "{moment}");
        assert_eq!(std::fs::read_to_string(self.at("a.txt")).unwrap(), "two", "{moment}");
        let snapshots = std::fs::read_dir(self.at(".toolgate/snapshots")).unwrap();
        let left: Vec<_> = snapshots.map(|entry| entry.unwrap().file_name()).filter(|name| name != ".last").collect();
        assert_eq!(left, [] as [&str; 0], "{moment}");
        let verified = verify(&self.at(".toolgate/runs/run"), options().key.as_ref());
        assert!(matches!(verified, Ok(Verification::Ok { signed: true, .. })), "{moment}: {verified:?}");
    }
}

/// The journal ends with what is on the disk: undo finds what the change left, or nothing of it.
fn check_change(world: &World, moment: &str) {
    let files = Roots::open(&world.at("")).unwrap();
    let mut places: BTreeMap<WorkspacePath, Change> = BTreeMap::new();
    for change in world.recorded() {
        match places.get_mut(&change.place) {
            Some(known) => known.followed_by(&change),
            None => drop(places.insert(change.place.clone(), change)),
        }
    }
    for (place, change) in &places {
        let now = files.node(place, true).unwrap().map(|node| node.state);
        assert!(FileState::same(now.as_ref(), change.after.as_ref()), "{moment}: {change:?}, is {now:?}");
    }
    let is_made = !world.at("b.txt").exists();
    let on_record = places.values().filter(|change| !change.is_nothing()).count();
    assert_eq!(on_record, if is_made { 3 } else { 0 }, "{moment}: {places:?}");
    let content = |path: &str| std::fs::read_to_string(world.at(path)).unwrap();
    assert_eq!(content("a.txt"), if is_made { "gone" } else { "one" }, "{moment}");
    assert_eq!(world.at("deep.txt").exists(), is_made, "{moment}");
    let verified = verify(&world.at(".toolgate/runs/run"), options().key.as_ref());
    assert!(matches!(verified, Ok(Verification::Ok { signed: true, .. })), "{moment}: {verified:?}");
}

/// Moves one file over another, and makes a third.
fn edits(workspace: &Path) -> Vec<FileEdit> {
    let files = Roots::open(workspace).unwrap();
    let place = |path: &str| WorkspacePath::in_workspace(path);
    let content = |path: &str| files.content(&place(path), u64::MAX).unwrap();
    let new = FileContent { bytes: b"new".to_vec().into(), mode: None };
    vec![
        FileEdit {
            place: place("a.txt"),
            before: content("a.txt"),
            after: content("b.txt"),
            moved_from: Some(place("b.txt")),
        },
        FileEdit { place: place("b.txt"), before: content("b.txt"), after: None, moved_from: None },
        FileEdit { place: place("deep.txt"), before: None, after: Some(new), moved_from: None },
    ]
}

fn settler(workspace: &Path) -> ChangeSettler {
    settler_with_quota(workspace, LARGE_QUOTA)
}

/// The settler of the run's call, with so many bytes for undo.
pub(crate) fn settler_with_quota(workspace: &Path, quota: u64) -> ChangeSettler {
    let state = StateDirectory::open(workspace).unwrap();
    let run = Arc::new(state.open_run("run", &options()).unwrap());
    let recorder = RunRecorder::new(run, None);
    let (run, tool_call_id, trace_id) = ("run".to_owned(), "call".to_owned(), "trace".to_owned());
    let origin = EventOrigin { run, turn: None, trace_id, tool_call_id };
    let changer = changes(workspace, quota).for_call(Arc::new(recorder), Arc::new(origin), "test".into());
    ChangeSettler { changer: Arc::new(changer), approved: Default::default() }
}

#[test]
#[ignore = "the test below runs it in a process that it kills"]
fn child() {
    let (Ok(role), Ok(workspace)) = (std::env::var(ROLE), std::env::var(WORKSPACE)) else { return };
    let workspace = PathBuf::from(workspace);
    let begins = || {
        // System calls count by thread: from here on, the number of each is greater than any of the test harness's own.
        for _ in 0..HARNESS_CALLS {
            std::fs::write("/dev/null", "x").unwrap();
        }
        drop(std::fs::File::open(workspace.join("begins")));
    };
    match role.as_str() {
        "settle" => {
            let settler = settler(&workspace);
            let in_place = settler.begin_in_place(&LaunchSpec::shell("true"), true).unwrap();
            std::fs::write(workspace.join("a.txt"), "two").unwrap();
            std::fs::remove_file(workspace.join("b.txt")).unwrap();
            std::fs::create_dir(workspace.join("new")).unwrap();
            std::fs::write(workspace.join("new/c.txt"), "new").unwrap();
            std::fs::write(workspace.join(".envrc"), "evil").unwrap();
            begins();
            let settled = settler.settle(None, Some(in_place), ApplyMode::InPlace).unwrap();
            assert_eq!((settled.created, settled.changed, settled.deleted), (2, 1, 1), "{settled:?}");
        }
        "change" => {
            let (settler, edits) = (settler(&workspace), edits(&workspace));
            begins();
            settler.changer.make(edits).unwrap();
        }
        _ => {
            let changes = changes(&workspace, LARGE_QUOTA);
            begins();
            let warnings = changes.recover(&options()).unwrap();
            assert!(!warnings.iter().any(|warning| warning.contains("aren't recorded")), "{warnings:?}");
        }
    }
}

#[test]
fn a_change_is_on_record_as_it_ended_whenever_a_kill_comes_and_comes_again() {
    if Command::new("strace").arg("-V").output().is_err() {
        toolgate_testkit::skip("no-strace", "strace isn't installed, so nothing is killed at an exact moment");
        return;
    }
    let world = World::new();
    assert!(world.child("change", None).success());
    check_change(&world, "not killed at all");
    let moments = world.moments("change");
    let world = World::new();
    world.child("change", moments.get(moments.len() / 2));
    assert!(world.child("recover", None).success());
    check_change(&world, "killed half way");
    let mut again = world.moments("recover").into_iter().cycle();
    assert!(moments.len() > 10, "there is something to kill: {moments:?}");
    for moment in &moments {
        let (world, next) = (World::new(), again.next().unwrap());
        world.child("change", Some(moment));
        world.child("recover", Some(&next));
        let said = format!("killed after {moment:?}, then after {next:?}");
        assert!(world.child("recover", None).success(), "{said}");
        check_change(&world, &said);
        let recorded = world.recorded();
        assert!(world.child("recover", None).success(), "{said}");
        assert_eq!(world.recorded(), recorded, "{said}: nothing is recorded twice");
    }
}

#[test]
fn a_command_is_settled_once_whenever_a_kill_comes_and_comes_again() {
    if Command::new("strace").arg("-V").output().is_err() {
        toolgate_testkit::skip("no-strace", "strace isn't installed, so nothing is killed at an exact moment");
        return;
    }
    let world = World::new();
    assert!(world.child("settle", None).success());
    world.check("not killed at all");
    let moments = world.moments("settle");
    let world = World::new();
    world.child("settle", moments.first());
    assert!(world.child("recover", None).success());
    world.check("killed as soon as it began");
    let mut again = world.moments("recover").into_iter().cycle();
    assert!(moments.len() > 50, "there is something to kill: {moments:?}");
    for moment in &moments {
        let (world, next) = (World::new(), again.next().unwrap());
        world.child("settle", Some(moment));
        world.person("person.txt");
        world.child("recover", Some(&next));
        world.person("person-again.txt");
        let said = format!("killed after {moment:?}, then after {next:?}");
        assert!(world.child("recover", None).success(), "{said}");
        world.person("person-at-last.txt");
        assert!(world.child("recover", None).success(), "{said}");
        world.check(&said);
    }
}
