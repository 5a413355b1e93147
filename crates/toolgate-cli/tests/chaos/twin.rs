//! A twin of the workspace: the same files in another directory, where a script runs without Toolgate. What the script
//! leaves there is what it means, so commands need no model of what bash, coreutils and git do.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};

use crate::tree::{self, Kind, Node, Tree, TreeDiff, WriteTime};
use crate::tree_path::TreePath;

/// Nanoseconds.
const SECOND: i128 = 1_000_000_000;

/// A directory that is made to hold what the workspace holds.
pub(crate) struct Twin {
    pub(crate) root: PathBuf,
    /// The user that everything in it belongs to, if we have to say so.
    pub(crate) owner: Option<u32>,
}

impl Twin {
    /// Makes the twin hold what the workspace holds.
    pub(crate) fn follow(&self, workspace: &Path, wanted: &Tree) {
        let there = tree::scan(&self.root);
        if there != *wanted {
            self.make_equal(workspace, &there, wanted);
        }
        // A tree doesn't tell the times of its links.
        for path in wanted.iter().filter(|(_, node)| matches!(node.kind, Kind::Link(_))).map(|(path, _)| path) {
            if let Some((directory, name)) = tree::open_parent(&self.root, path) {
                copy_time(workspace, path, directory.as_fd(), name);
            }
        }
    }

    fn make_equal(&self, workspace: &Path, there: &Tree, wanted: &Tree) {
        self.unlock(there);
        for (path, node) in there.iter().rev().filter(|(path, node)| wanted.get(*path) != Some(*node)) {
            if !(node.is_directory() && wanted.get(path).is_some_and(Node::is_directory)) {
                let (directory, name) = tree::open_parent(&self.root, path).unwrap();
                let flags = if node.is_directory() { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                rustix::fs::unlinkat(directory, name, flags).unwrap();
            }
        }
        let mut missing: Vec<_> = wanted.iter().filter(|(path, node)| there.get(*path) != Some(*node)).collect();
        // A second name comes after the first, whatever the names are.
        missing.sort_by_key(|(_, node)| node.hard_link_to.is_some());
        missing.into_iter().for_each(|(path, node)| self.make(workspace, path, node));
        // Last and from below, since a directory may be closed for writing.
        for (path, node) in wanted.iter().rev().filter(|(_, node)| node.is_directory()) {
            let (directory, name) = tree::open_parent(&self.root, path).unwrap();
            rustix::fs::chmodat(&directory, name, Mode::from_raw_mode(node.mode), AtFlags::empty()).unwrap();
        }
    }

    /// What a script changes, run where it changes nothing of the workspace.
    pub(crate) fn try_out(
        &self,
        workspace: &Path,
        now: &Tree,
        run: impl FnOnce(&Path) -> std::process::Output,
    ) -> (TreeDiff, std::process::Output) {
        self.follow(workspace, now);
        let start = self.moment();
        let output = run(&self.root);
        let mut changed = tree::diff(now, &tree::scan(&self.root));
        for node in changed.values_mut().filter_map(|(_, after)| after.as_mut()) {
            if let WriteTime::At(time) = node.written
                && time >= start
            {
                node.written = WriteTime::Since(start);
            }
        }
        (changed, output)
    }

    /// The time that a file gets which is written now.
    pub(crate) fn moment(&self) -> i128 {
        let file = tempfile::tempfile_in(self.root.parent().unwrap()).unwrap();
        std::io::Write::write_all(&mut &file, b"now").unwrap();
        tree::time_of(&rustix::fs::fstat(&file).unwrap())
    }

    /// Lets the owner into every directory.
    fn unlock(&self, there: &Tree) {
        for (path, node) in there.iter().filter(|(_, node)| node.is_directory() && node.mode & 0o700 != 0o700) {
            let (directory, name) = tree::open_parent(&self.root, path).unwrap();
            let mode = Mode::from_raw_mode(node.mode | 0o700);
            rustix::fs::chmodat(&directory, name, mode, AtFlags::empty()).unwrap();
        }
    }

    fn make(&self, workspace: &Path, path: &TreePath, node: &Node) {
        let (directory, name) = tree::open_parent(&self.root, path).unwrap();
        let at = directory.as_fd();
        match (&node.kind, &node.hard_link_to) {
            (Kind::File(_), Some(first)) => {
                let (from, other) = tree::open_parent(&self.root, first).unwrap();
                rustix::fs::linkat(from, other, at, name, AtFlags::empty()).unwrap();
            }
            (Kind::File(_), None) => copy_file(workspace, path, at, name, node),
            (Kind::Directory, _) => {
                let _ = rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o700));
            }
            (Kind::Link(target), _) => {
                rustix::fs::symlinkat(target.as_slice(), at, name).unwrap();
            }
            (Kind::Pipe, _) => {
                rustix::fs::mknodat(at, name, FileType::Fifo, Mode::from_raw_mode(node.mode), 0).unwrap();
                rustix::fs::chmodat(at, name, Mode::from_raw_mode(node.mode), AtFlags::empty()).unwrap();
            }
            (Kind::Other, _) => {}
        }
        if let Some(owner) = self.owner {
            let (user, group) = (Uid::from_raw(owner), Gid::from_raw(owner));
            rustix::fs::chownat(at, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW).unwrap();
            // A new owner takes setuid and setgid away.
            if let Kind::File(_) | Kind::Pipe = node.kind {
                rustix::fs::chmodat(at, name, Mode::from_raw_mode(node.mode), AtFlags::empty()).unwrap();
            }
        }
    }
}

/// Gives a symlink the time of the workspace's, if it can be looked at: git compares it with its index, and would store the link
/// anew.
fn copy_time(workspace: &Path, path: &TreePath, at: BorrowedFd<'_>, name: &[u8]) {
    let Some((from, source)) = tree::open_parent(workspace, path) else { return };
    let Ok(found) = rustix::fs::statat(&from, source, AtFlags::SYMLINK_NOFOLLOW) else { return };
    let modified = Timespec { tv_sec: found.st_mtime, tv_nsec: found.st_mtime_nsec as _ };
    let times = Timestamps { last_access: modified, last_modification: modified };
    let _ = rustix::fs::utimensat(at, name, &times, AtFlags::SYMLINK_NOFOLLOW);
}

fn copy_file(workspace: &Path, path: &TreePath, at: BorrowedFd<'_>, name: &[u8], node: &Node) {
    let (from, source) = tree::open_parent(workspace, path).unwrap();
    let mut source = std::fs::File::from(tree::open(from.as_fd(), source, OFlags::RDONLY).unwrap());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut copy = std::fs::File::from(rustix::fs::openat(at, name, flags, Mode::from_raw_mode(0o600)).unwrap());
    std::io::copy(&mut source, &mut copy).unwrap();
    rustix::fs::fchmod(&copy, Mode::from_raw_mode(node.mode)).unwrap();
    if let WriteTime::At(time) = node.written {
        let (seconds, nanoseconds) = (time.div_euclid(SECOND), time.rem_euclid(SECOND));
        let modified = Timespec { tv_sec: seconds as i64, tv_nsec: nanoseconds as _ };
        let times = Timestamps { last_access: modified, last_modification: modified };
        rustix::fs::futimens(&copy, &times).unwrap();
    }
}
