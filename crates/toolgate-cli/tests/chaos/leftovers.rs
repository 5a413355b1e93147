//! What must hold when everything has ended: the record and every repository are intact, and nothing is left behind.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};

use crate::attention::wait_until;
use crate::hold;
use crate::tree::Tree;
use crate::tree_path::TreePath;
use crate::violation::Violation;
use crate::world::{World, said};

/// A process, told from a later one of the same number by when it started.
pub(crate) type ProcessIdentity = (i32, String);

/// The processes that a process has started, directly or not.
pub(crate) fn descendants(of: Pid) -> BTreeSet<ProcessIdentity> {
    let all: Vec<(i32, i32, String)> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| stat(pid).map(|(parent, started)| (pid, parent, started)))
        .collect();
    let (mut found, mut left) = (BTreeSet::new(), vec![of.as_raw_nonzero().get()]);
    while let Some(parent) = left.pop() {
        for (pid, _, started) in all.iter().filter(|(_, above, _)| *above == parent) {
            found.insert((*pid, started.clone()));
            left.push(*pid);
        }
    }
    found
}

/// Stops a process, and gives the processes that it has started: what it was starting is among them, since they are listed until
/// there are no new ones.
pub(crate) fn descendants_of_stopped(process: Pid) -> BTreeSet<ProcessIdentity> {
    rustix::process::kill_process(process, Signal::STOP).unwrap();
    let mut found = descendants(process);
    loop {
        let again = descendants(process);
        if again.is_subset(&found) {
            return found;
        }
        found.extend(again);
    }
}

/// The parent of a process and the moment of its start; none if it is gone or only waits to be reaped.
fn stat(pid: i32) -> Option<(i32, String)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    (fields[0] != "Z").then(|| Some((fields[1].parse().ok()?, fields[19].to_owned())))?
}

/// Waits until these processes are gone.
pub(crate) fn wait_for_end(processes: &BTreeSet<ProcessIdentity>) {
    let is_there = |(pid, started): &ProcessIdentity| stat(*pid).is_some_and(|(_, now)| now == *started);
    wait_until("everything that a server started has ended", || !processes.iter().any(is_there));
}

/// The record is intact and signed.
pub(crate) fn check_audit(world: &World) -> Result<(), Violation> {
    if !world.state("runs").exists() {
        return Ok(());
    }
    let output = world.run(&["audit", "verify"]);
    hold!(output.status.success(), AuditHolds, "The record is damaged: {}", said(&output));
    Ok(())
}

/// What `git fsck` says after `git reset` in a repository without commits, also without Toolgate: the index names the
/// empty tree, which git knows without an object.
const EMPTY_TREE: &str = "missing tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Every repository is intact.
pub(crate) fn check_repositories(world: &World, tree: &Tree) -> Result<(), Violation> {
    let has_head = |path: &&TreePath| path.name() == b".git" && tree.contains_key(&path.join(b"HEAD"));
    for path in tree.keys().filter(has_head) {
        let script =
            format!("git -c safe.directory='*' --git-dir={} fsck --strict --no-dangling --no-progress", path.quoted());
        let output = world.bash(&world.workspace, &script);
        let text = String::from_utf8_lossy(&output.stdout);
        let is_intact = output.status.success() || text.lines().all(|line| line == EMPTY_TREE);
        hold!(is_intact, GitIsIntact, "A repository is damaged: {path:?}, {}", said(&output));
    }
    Ok(())
}

/// Nothing is left; `rehearsals` may wait for their commit.
pub(crate) fn check(world: &World, tree: &Tree, rehearsals: &BTreeSet<String>) -> Result<(), Violation> {
    let temporary = tree.keys().find(|path| path.name().starts_with(b".toolgate-"));
    hold!(temporary.is_none(), NothingIsLeft, "A temporary file is left: {temporary:?}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let here = world.path().display().to_string();
    let mount = mounts.lines().find(|line| line.contains(&here));
    hold!(mount.is_none(), NothingIsLeft, "A mount is left: {mount:?}");
    let layers = names(&world.state("layers")).into_iter().filter(|name| !rehearsals.contains(name));
    let layers: Vec<String> = layers.collect();
    hold!(layers.is_empty(), NothingIsLeft, "Layers are left: {layers:?}");
    let snapshots: Vec<String> = names(&world.state("snapshots")).into_iter().filter(|name| name != ".last").collect();
    hold!(snapshots.is_empty(), NothingIsLeft, "Snapshots are left: {snapshots:?}");
    let shared = shared_file(&world.state("content")).or_else(|| {
        let calls = names(&world.state("quarantine"));
        calls.iter().find_map(|call| shared_file(&world.state("quarantine").join(call)))
    });
    hold!(
        shared.is_none(),
        NothingIsLost,
        "What is kept for undo or in quarantine is in the workspace too: {shared:?}"
    );
    let note = std::fs::metadata(world.state("changing")).map_or(0, |note| note.len());
    hold!(note == 0, NothingIsLeft, "The note of a change is left: {note} bytes");
    Ok(())
}

/// A file in a directory that has other names, so that whoever writes to it changes what is kept.
fn shared_file(directory: &Path) -> Option<PathBuf> {
    let mut files = names(directory).into_iter().map(|name| directory.join(name));
    let is_shared =
        |file: &PathBuf| std::fs::symlink_metadata(file).is_ok_and(|found| found.is_file() && found.nlink() > 1);
    files.find(is_shared)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
