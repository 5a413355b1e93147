//! What a workspace holds, as a map from path to node, read from the disk. Toolgate's own state is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};

use crate::tree_path::TreePath;

/// Where Toolgate keeps its state.
pub(crate) const STATE: &[u8] = b".toolgate";

/// Everything in a workspace, by path.
pub(crate) type Tree = BTreeMap<TreePath, Node>;

/// What differs between two trees, by path: before and after.
pub(crate) type TreeDiff = BTreeMap<TreePath, (Option<Node>, Option<Node>)>;

/// A file, a directory, a link or a pipe.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// Permission bits; 0 for a link, which has none of its own.
    pub(crate) mode: u32,
    pub(crate) written: WriteTime,
    /// The first path of the same inode, if that is another one.
    pub(crate) hard_link_to: Option<TreePath>,
    pub(crate) directory_time: DirectoryTime,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    File(Content),
    Directory,
    Link(Vec<u8>),
    Pipe,
    Other,
}

/// When a regular file was last written to (mtime).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteTime {
    /// Of a directory, a link or a pipe: nobody asks.
    Untold,
    /// Nanoseconds since 1970.
    At(i128),
    /// Some moment that isn't before this one: two runs of a script don't write at the same time.
    Since(i128),
}

/// When a directory was last written to, in nanoseconds since 1970. It is no part of what a directory is: each new entry sets
/// it. Only a time from the past was given to it by somebody.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DirectoryTime(Option<i128>);

impl PartialEq for DirectoryTime {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for DirectoryTime {}

impl WriteTime {
    fn matches(self, other: Self) -> bool {
        match (self, other) {
            (Self::Since(earliest), Self::At(time)) | (Self::At(time), Self::Since(earliest)) => time >= earliest,
            (Self::Since(_), Self::Since(_)) => true,
            (one, other) => one == other,
        }
    }
}

/// The bytes of a file: how many, their hash, and the first of them for reports.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Content {
    size: u64,
    hash: u64,
    start: Vec<u8>,
}

impl Content {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self::read(bytes).expect("bytes in memory can be read")
    }

    /// Whether it is what commands see instead of a hidden file.
    pub(crate) fn is_decoy(&self) -> bool {
        self.start.starts_with(b"# Toolgate keeps this fi")
    }

    fn read(mut from: impl Read) -> std::io::Result<Self> {
        let (mut hasher, mut size, mut start) = (DefaultHasher::new(), 0, Vec::new());
        let mut chunk = vec![0; 1 << 16];
        let mut filled = 0;
        loop {
            let read = from.read(&mut chunk[filled..])?;
            filled += read;
            // Whole chunks only, so that the hash doesn't depend on how the bytes arrived.
            if filled < chunk.len() && read > 0 {
                continue;
            }
            chunk[..filled].hash(&mut hasher);
            size += filled as u64;
            start.extend(&chunk[..filled.min(24usize.saturating_sub(start.len()))]);
            if read == 0 {
                return Ok(Self { size, hash: hasher.finish(), start });
            }
            filled = 0;
        }
    }
}

impl Node {
    /// A file that is written at this moment or later.
    pub(crate) fn file(bytes: &[u8], mode: u32, since: i128) -> Self {
        let written = WriteTime::Since(since);
        let directory_time = DirectoryTime::default();
        Self { kind: Kind::File(Content::of(bytes)), mode, written, hard_link_to: None, directory_time }
    }

    pub(crate) fn directory(mode: u32) -> Self {
        let (written, directory_time) = (WriteTime::Untold, DirectoryTime::default());
        Self { kind: Kind::Directory, mode, written, hard_link_to: None, directory_time }
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }

    /// Whether both are files, or both directories, and so on.
    pub(crate) fn is_of_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(&self.kind) == std::mem::discriminant(&other.kind)
    }

    /// Whether both are of the same kind with the same bytes, mode and time. Which names share an inode doesn't count.
    pub(crate) fn same(one: Option<&Self>, other: Option<&Self>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) => {
                one.kind == other.kind && one.mode == other.mode && one.written.matches(other.written)
            }
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// Whether both are of the same kind with the same bytes.
    pub(crate) fn same_content(one: Option<&Self>, other: Option<&Self>) -> bool {
        one.map(|node| &node.kind) == other.map(|node| &node.kind)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::File(content) => {
                let start = String::from_utf8_lossy(&content.start);
                write!(formatter, "file {:o} of {} bytes {start:?} {:?}", self.mode, content.size, self.written)
            }
            Kind::Directory => write!(formatter, "directory {:o}", self.mode),
            Kind::Link(target) => write!(formatter, "link to {:?}", String::from_utf8_lossy(target)),
            Kind::Pipe => write!(formatter, "pipe {:o}", self.mode),
            Kind::Other => write!(formatter, "something else {:o}", self.mode),
        }
    }
}

/// Everything beneath a directory. Goes from descriptor to descriptor, so a path may be longer than the kernel takes.
pub(crate) fn scan(root: &Path) -> Tree {
    let (mut tree, mut inodes) = (Tree::new(), BTreeMap::new());
    let root = rustix::fs::openat(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    scan_into(root.as_fd(), &TreePath(vec![]), &mut tree, &mut inodes);
    tree
}

type Inodes = BTreeMap<(u64, u64), TreePath>;

fn scan_into(directory: BorrowedFd<'_>, at: &TreePath, tree: &mut Tree, inodes: &mut Inodes) {
    let mut names: Vec<Vec<u8>> = Dir::read_from(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_bytes().to_vec())
        .filter(|name| name != b"." && name != b".." && !(at.0.is_empty() && name == STATE))
        .collect();
    names.sort();
    for name in names {
        let path = at.join(&name);
        let stat = rustix::fs::statat(directory, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let file_type = FileType::from_raw_mode(stat.st_mode);
        let kind = match file_type {
            FileType::RegularFile => read_file(directory, &name).map_or(Kind::Other, Kind::File),
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link(rustix::fs::readlinkat(directory, name.as_slice(), vec![]).unwrap().into()),
            FileType::Fifo => Kind::Pipe,
            _ => Kind::Other,
        };
        let mode = if file_type == FileType::Symlink { 0 } else { stat.st_mode & 0o7777 };
        let written = match file_type {
            FileType::RegularFile => WriteTime::At(time_of(&stat)),
            _ => WriteTime::Untold,
        };
        let shared = (file_type == FileType::RegularFile && stat.st_nlink > 1).then_some((stat.st_dev, stat.st_ino));
        let hard_link_to = shared.and_then(|inode| match inodes.get(&inode) {
            Some(first) => Some(first.clone()),
            None => inodes.insert(inode, path.clone()),
        });
        if kind == Kind::Directory
            && let Ok(opened) = open(directory, &name, OFlags::RDONLY | OFlags::DIRECTORY)
        {
            scan_into(opened.as_fd(), &path, tree, inodes);
        }
        let directory_time = DirectoryTime((kind == Kind::Directory).then(|| time_of(&stat)));
        tree.insert(path, Node { kind, mode, written, hard_link_to, directory_time });
    }
}

/// When a file was last written to, in nanoseconds since 1970.
pub(crate) fn time_of(stat: &Stat) -> i128 {
    i128::from(stat.st_mtime) * 1_000_000_000 + stat.st_mtime_nsec as i128
}

fn read_file(directory: BorrowedFd<'_>, name: &[u8]) -> Option<Content> {
    let file = open(directory, name, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    Content::read(std::fs::File::from(file)).ok()
}

pub(crate) fn open(directory: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(directory, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// What differs from `before` to `after`, hard links aside.
pub(crate) fn diff(before: &Tree, after: &Tree) -> TreeDiff {
    let paths = before.keys().chain(after.keys().filter(|path| !before.contains_key(*path)));
    paths
        .filter(|path| !Node::same(before.get(*path), after.get(*path)))
        .map(|path| (path.clone(), (before.get(path).cloned(), after.get(path).cloned())))
        .collect()
}

/// Directories that were given another time of the past since this moment (`touch`, `cp -a`), and nothing else: no difference
/// of two trees.
pub(crate) fn touched_directories(before: &Tree, after: &Tree, since: i128) -> BTreeSet<TreePath> {
    let is_given = |(path, now): &(&TreePath, &Node)| {
        let was = before.get(*path);
        let time = now.directory_time.0.filter(|time| *time < since);
        let is_other = was.is_some_and(|was| was.directory_time.0 != time);
        time.is_some() && is_other && Node::same(was, Some(now))
    };
    after.iter().filter(is_given).map(|(path, _)| path.clone()).collect()
}

/// The bytes of a file of the workspace; none if it isn't one.
pub(crate) fn read(root: &Path, path: &TreePath) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (directory, name) = open_parent(root, path)?;
    let file = open(directory.as_fd(), name, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    std::fs::File::from(file).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The directory that a path is in, opened step by step, and the last name.
pub(crate) fn open_parent<'a>(root: &Path, path: &'a TreePath) -> Option<(OwnedFd, &'a [u8])> {
    let mut directory = rustix::fs::openat(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let mut names = path.components().peekable();
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            return Some((directory, name));
        }
        directory = open(directory.as_fd(), name, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
    }
    None
}
