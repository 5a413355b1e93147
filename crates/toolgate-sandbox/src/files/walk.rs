//! Walks a directory tree on several threads. Directories, files and ignore files are opened from the root's descriptor without
//! following symlinks, so a directory that is replaced by a symlink meanwhile leads nowhere. A pipe called `.gitignore` doesn't
//! block. ripgrep's own matchers decide what is left out.

mod filter;
mod ignore_rules;
mod work_queue;

use std::borrow::Cow;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use rustix::fs::{AtFlags, FileType, OFlags, RawDir};
use rustix::io::Errno;
use toolgate_contract::{
    EntryKind, EntryMetadata, SkipReason, ToolError, VisitedEntry, Visitor, VisitorFactory, WalkHandle, WalkOptions,
    WalkStep, WorkspacePath, escape_path,
};

use self::filter::{EntryDisposition, WalkFilter};
use self::ignore_rules::IgnoreRules;
use self::work_queue::WorkQueue;
use crate::files::openat2;
use crate::files::openat2::{OpenMethod, split};
use crate::files::root::{kind_of, refusal, regular_file};

/// More threads than this contend for locks in the kernel.
const MOST_THREADS: usize = 8;
/// Entries that one thread visits in a row; the rest of a large directory is for other threads.
const PORTION: usize = 64;
/// Bytes of the buffer for the names of a directory; more are read in several calls.
pub(crate) const NAMES: usize = 32 * 1024;

static THREADS: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS));

/// A root, and how to open beneath it.
#[derive(Clone, Copy)]
pub(crate) struct WalkRoot<'a> {
    pub(crate) method: OpenMethod,
    pub(crate) root: BorrowedFd<'a>,
}

impl WalkRoot<'_> {
    fn open(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        openat2::open(self.method, self.root, path, flags)
    }

    /// Opens for reading; a pipe or device doesn't block.
    fn open_file(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }
}

/// A file or directory that the walk found.
struct FoundEntry {
    place: WorkspacePath,
    /// The path as the kernel has it, if `place` escapes some of it.
    exact: Option<Vec<u8>>,
    kind: EntryKind,
    depth: usize,
    left_out: Option<SkipReason>,
}

impl FoundEntry {
    fn path(&self) -> &[u8] {
        self.exact.as_deref().unwrap_or(self.place.path.as_bytes())
    }

    /// The entry `name` of this directory.
    fn child(&self, name: &[u8], kind: EntryKind) -> Self {
        let directory = &self.place.path;
        let mut path = String::with_capacity(directory.len() + 1 + name.len());
        if !directory.is_empty() {
            path.extend([directory, "/"]);
        }
        let shown = escape_path(name);
        path.push_str(&shown);
        let is_escaped = matches!(shown, Cow::Owned(_)) || self.exact.is_some();
        let exact = is_escaped.then(|| join(self.path(), name));
        let place = WorkspacePath { root: self.place.root, path };
        Self { place, exact, kind, depth: self.depth + 1, left_out: self.left_out }
    }
}

/// The names in a directory, as the kernel has them, and their types.
type ListedEntries = Vec<(Vec<u8>, EntryKind)>;

/// A piece of work in the queue.
enum WalkTask {
    /// Visit a directory, then list it. The rules are those that apply to the directory itself.
    Enter(FoundEntry, Arc<IgnoreRules>),
    /// Visit only.
    Visit(Vec<FoundEntry>),
}

/// Visits what is beneath `start`, or `start` itself when it is a file. Returns how many directories couldn't be read.
pub(crate) fn walk<'v>(
    root: WalkRoot<'_>,
    start: &WorkspacePath,
    options: &WalkOptions,
    visitors: &'v VisitorFactory<'v>,
) -> Result<u64, ToolError> {
    let filter = WalkFilter::new(options, start)?;
    let fault = |error| refusal(start, error);
    let exact = start.bytes();
    let stat = root.open(&exact, OFlags::PATH).and_then(rustix::fs::fstat).map_err(fault)?;
    let exact = Some(exact.into_owned()).filter(|exact| *exact != start.path.as_bytes());
    let entry = FoundEntry { place: start.clone(), exact, kind: kind_of(&stat), depth: 0, left_out: None };
    let walk = TreeWalk { root, filter, queue: WorkQueue::default(), unreadable: AtomicU64::new(0) };
    let mut worker = WalkWorker::new(&walk, visitors());
    if entry.kind != EntryKind::Directory {
        worker.visit(&entry, None);
        return Ok(0);
    }
    let rules = if options.gitignore { IgnoreRules::above(&root, &start.bytes()) } else { Arc::default() };
    worker.enter(&entry, &rules).map_err(fault)?;
    walk.go_on(worker, visitors);
    Ok(walk.unreadable.into_inner())
}

/// What the threads of one walk share.
struct TreeWalk<'a> {
    root: WalkRoot<'a>,
    filter: WalkFilter,
    queue: WorkQueue<WalkTask>,
    unreadable: AtomicU64,
}

impl TreeWalk<'_> {
    /// Works until the queue ends. Other threads start once there is work for them.
    fn go_on<'v>(&self, mut worker: WalkWorker<'_>, visitors: &'v VisitorFactory<'v>) {
        std::thread::scope(|scope| {
            let mut is_alone = true;
            while let Some(work) = self.queue.next() {
                worker.work(work.taken);
                drop(work.busy);
                if is_alone && self.queue.len() > 1 {
                    is_alone = false;
                    for _ in 1..*THREADS {
                        scope.spawn(|| WalkWorker::new(self, visitors()).run());
                    }
                }
            }
        });
    }
}

/// One thread's part.
struct WalkWorker<'a> {
    walk: &'a TreeWalk<'a>,
    visitor: Visitor<'a>,
    names: Vec<MaybeUninit<u8>>,
}

impl<'a> WalkWorker<'a> {
    fn new(walk: &'a TreeWalk<'a>, visitor: Visitor<'a>) -> Self {
        Self { walk, visitor, names: vec![MaybeUninit::uninit(); NAMES] }
    }

    fn run(mut self) {
        while let Some(work) = self.walk.queue.next() {
            self.work(work.taken);
            drop(work.busy);
        }
    }

    fn work(&mut self, work: WalkTask) {
        match work {
            WalkTask::Visit(entries) => self.visit_all(&entries, None),
            WalkTask::Enter(directory, rules) => {
                if self.visit(&directory, None) != WalkStep::On {
                    return;
                }
                match self.enter(&directory, &rules) {
                    // Removed or replaced since its parent was listed: then it isn't there.
                    Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(_) => {
                        self.walk.unreadable.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    fn visit_all(&mut self, entries: &[FoundEntry], parent: Option<&OwnedFd>) {
        for entry in entries {
            if self.walk.queue.is_over() || self.visit(entry, parent) == WalkStep::Stop {
                return;
            }
        }
    }

    /// Visits an entry; its directory needn't be opened once more if it is open already.
    fn visit(&mut self, entry: &FoundEntry, parent: Option<&OwnedFd>) -> WalkStep {
        let handle = RootedEntry { root: &self.walk.root, entry, parent };
        let (kind, depth, left_out) = (entry.kind, entry.depth, entry.left_out);
        let step = (self.visitor)(&VisitedEntry { place: &entry.place, kind, depth, left_out, handle: &handle });
        if step == WalkStep::Stop {
            self.walk.queue.end();
        }
        step
    }

    /// Sorts a directory's entries into what is visited now, what other threads can do, and what is left out.
    fn enter(&mut self, directory: &FoundEntry, rules: &Arc<IgnoreRules>) -> Result<(), Errno> {
        let walk = self.walk;
        let (fd, entries) = self.read(directory)?;
        let rules = match (walk.filter.gitignore, directory.left_out) {
            (true, None) => IgnoreRules::of(&walk.root, directory.path(), &entries, rules),
            _ => Arc::clone(rules),
        };
        let (mut here, mut ahead, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for (name, kind) in entries {
            let mut entry = directory.child(&name, kind);
            let is_entered = kind == EntryKind::Directory && walk.filter.may_enter(entry.depth);
            match walk.filter.disposition(&entry, &name, &rules) {
                EntryDisposition::Excluded => {}
                EntryDisposition::Visited if is_entered => ahead.push(WalkTask::Enter(entry, Arc::clone(&rules))),
                EntryDisposition::Visited => here.push(entry),
                EntryDisposition::LeftOut(why) => {
                    entry.left_out = Some(why);
                    left_out.push(if is_entered {
                        WalkTask::Enter(entry, Arc::clone(&rules))
                    } else {
                        WalkTask::Visit(vec![entry])
                    });
                }
            }
        }
        let others = here.split_off(here.len().min(PORTION));
        walk.queue.add_later(left_out);
        walk.queue.add(portions(others).into_iter().chain(ahead));
        self.visit_all(&here, Some(&fd));
        Ok(())
    }

    /// A directory and its entries, by name, so that the walk goes roughly in the order of paths.
    fn read(&mut self, directory: &FoundEntry) -> Result<(OwnedFd, ListedEntries), Errno> {
        let fd = self.walk.root.open(directory.path(), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        each_entry(&fd, &mut self.names, |name, kind| entries.push((name.to_vec(), kind)))?;
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok((fd, entries))
    }
}

/// Lists the name and type of everything in an open directory.
pub(crate) fn each_entry(
    directory: &OwnedFd,
    buffer: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(&[u8], EntryKind),
) -> Result<(), Errno> {
    let mut names = RawDir::new(directory, buffer);
    while let Some(entry) = names.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            FileType::Unknown => match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => kind_of(&stat),
                Err(_) => continue,
            },
            _ => EntryKind::Other,
        };
        each(name.to_bytes(), kind);
    }
    Ok(())
}

/// What one thread leaves to others, in portions.
fn portions(entries: Vec<FoundEntry>) -> Vec<WalkTask> {
    let mut entries = entries.into_iter();
    let portion = || {
        let portion: Vec<FoundEntry> = entries.by_ref().take(PORTION).collect();
        (!portion.is_empty()).then_some(WalkTask::Visit(portion))
    };
    std::iter::from_fn(portion).collect()
}

/// Opens or examines an entry, starting from the root.
struct RootedEntry<'a> {
    root: &'a WalkRoot<'a>,
    entry: &'a FoundEntry,
    /// Its directory, if that is open.
    parent: Option<&'a OwnedFd>,
}

impl WalkHandle for RootedEntry<'_> {
    fn open(&self) -> Result<File, ToolError> {
        let place = &self.entry.place;
        let fd = self.root.open_file(self.entry.path()).map_err(|error| refusal(place, error))?;
        regular_file(fd, place).map(|opened| opened.file)
    }

    fn facts(&self) -> Option<EntryMetadata> {
        let (path, name) = split(self.entry.path());
        let look = |parent: BorrowedFd<'_>| rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let stat = match self.parent {
            Some(parent) => look(parent.as_fd())?,
            None => look(self.root.open(path, OFlags::PATH | OFlags::DIRECTORY).ok()?.as_fd())?,
        };
        let time = |seconds: i64, nanoseconds: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
        Some(EntryMetadata {
            size: stat.st_size as u64,
            modified: time(stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: time(stat.st_ctime, stat.st_ctime_nsec as i64),
            device: stat.st_dev,
            inode: stat.st_ino,
            links: stat.st_nlink,
        })
    }
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}
