//! Walking what is beneath a folder, on several threads. Folders, files and ignore files are all opened from the root's
//! descriptor with no link followed, so a folder that is swapped for a link meanwhile leads nowhere, and a pipe that is
//! called `.gitignore` is never waited for. What to leave out is decided by ripgrep's own matchers.

mod choice;
mod queue;
mod rules;

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use rustix::fs::{AtFlags, FileType, OFlags, RawDir};
use rustix::io::Errno;
use toolgate_contract::{
    EntryKind, Facts, Handle, LeftOut, Place, Step, ToolError, Visitor, Visitors, WalkOptions, Walked,
};

use self::choice::{Choice, Fate};
use self::queue::Queue;
use self::rules::Rules;
use crate::beneath::{self, OpenWay};
use crate::roots::{kind_of, readable, refusal, regular_file};

/// More threads than this wait for each other in the kernel.
const MOST_THREADS: usize = 8;
/// Things that one thread visits in a row; the rest of a large folder is for the others.
const PORTION: usize = 64;
/// Room for the names of a folder; more are read in several goes.
pub(crate) const NAMES: usize = 32 * 1024;

static THREADS: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS));

/// A root, and how to open beneath it.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) way: OpenWay,
    pub(crate) root: BorrowedFd<'a>,
}

impl Ground<'_> {
    fn open(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        beneath::open(self.way, self.root, path, flags)
    }

    /// Opens for reading; a pipe or device isn't waited for.
    fn open_file(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }
}

/// Something that the walk came by.
struct Spot {
    place: Place,
    /// The real path, where the place only shows it because it isn't UTF-8.
    exact: Option<Vec<u8>>,
    kind: EntryKind,
    depth: usize,
    left_out: Option<LeftOut>,
}

impl Spot {
    fn path(&self) -> &[u8] {
        self.exact.as_deref().unwrap_or(self.place.path.as_bytes())
    }

    /// What is called `name` in this folder.
    fn child(&self, name: &[u8], kind: EntryKind) -> Self {
        let folder = &self.place.path;
        let mut path = String::with_capacity(folder.len() + 1 + name.len());
        if !folder.is_empty() {
            path.extend([folder, "/"]);
        }
        let is_text = std::str::from_utf8(name).map(|name| path.push_str(name)).is_ok();
        if !is_text {
            path.push_str(&readable(name));
        }
        let exact = (!is_text || self.exact.is_some()).then(|| join(self.path(), name));
        let place = Place { root: self.place.root, path };
        Self { place, exact, kind, depth: self.depth + 1, left_out: self.left_out }
    }
}

/// What is still to be done.
enum Work {
    /// Visit a folder, then look into it. The rules are those that hold for the folder itself.
    Enter(Spot, Arc<Rules>),
    /// Visit only.
    Visit(Vec<Spot>),
}

/// Visits what is beneath `start`, or `start` itself when it is a file. Returns how many folders couldn't be read.
pub(crate) fn walk<'v>(
    ground: Ground<'_>,
    start: &Place,
    options: &WalkOptions,
    visitors: &'v Visitors<'v>,
) -> Result<u64, ToolError> {
    let choice = Choice::new(options, &start.path)?;
    let fault = |error| refusal(start, error);
    let stat = ground.open(start.path.as_bytes(), OFlags::PATH).and_then(rustix::fs::fstat).map_err(fault)?;
    let spot = Spot { place: start.clone(), exact: None, kind: kind_of(&stat), depth: 0, left_out: None };
    let walk = Walk { ground, choice, queue: Queue::default(), unreadable: AtomicU64::new(0) };
    let mut worker = Worker::new(&walk, visitors());
    if spot.kind != EntryKind::Folder {
        worker.visit(&spot);
        return Ok(0);
    }
    let rules = if options.gitignore { Rules::above(&ground, &start.path) } else { Arc::default() };
    worker.enter(&spot, &rules).map_err(fault)?;
    walk.go_on(worker, visitors);
    Ok(walk.unreadable.into_inner())
}

/// What the threads of one walk share.
struct Walk<'a> {
    ground: Ground<'a>,
    choice: Choice,
    queue: Queue<Work>,
    unreadable: AtomicU64,
}

impl Walk<'_> {
    /// Works until nothing is left. Others join in once there is something for them to do.
    fn go_on<'v>(&self, mut worker: Worker<'_>, visitors: &'v Visitors<'v>) {
        std::thread::scope(|scope| {
            let mut is_alone = true;
            while let Some(work) = self.queue.next() {
                worker.work(work.taken);
                drop(work.busy);
                if is_alone && self.queue.len() > 1 {
                    is_alone = false;
                    for _ in 1..*THREADS {
                        scope.spawn(|| Worker::new(self, visitors()).run());
                    }
                }
            }
        });
    }
}

/// One thread's part.
struct Worker<'a> {
    walk: &'a Walk<'a>,
    visitor: Visitor<'a>,
    names: Vec<MaybeUninit<u8>>,
}

impl<'a> Worker<'a> {
    fn new(walk: &'a Walk<'a>, visitor: Visitor<'a>) -> Self {
        Self { walk, visitor, names: vec![MaybeUninit::uninit(); NAMES] }
    }

    fn run(mut self) {
        while let Some(work) = self.walk.queue.next() {
            self.work(work.taken);
            drop(work.busy);
        }
    }

    fn work(&mut self, work: Work) {
        match work {
            Work::Visit(spots) => self.visit_all(&spots),
            Work::Enter(folder, rules) => {
                if self.visit(&folder) != Step::On {
                    return;
                }
                match self.enter(&folder, &rules) {
                    // Gone, or swapped for something else, since its parent was read: then it isn't there.
                    Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(_) => {
                        self.walk.unreadable.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    fn visit_all(&mut self, spots: &[Spot]) {
        for spot in spots {
            if self.walk.queue.is_over() || self.visit(spot) == Step::Stop {
                return;
            }
        }
    }

    fn visit(&mut self, spot: &Spot) -> Step {
        let handle = At { ground: &self.walk.ground, spot };
        let (kind, depth, left_out) = (spot.kind, spot.depth, spot.left_out);
        let step = (self.visitor)(&Walked { place: &spot.place, kind, depth, left_out, handle: &handle });
        if step == Step::Stop {
            self.walk.queue.end();
        }
        step
    }

    /// Sorts a folder's entries into what is visited now, what others can do, and what was left out.
    fn enter(&mut self, folder: &Spot, rules: &Arc<Rules>) -> Result<(), Errno> {
        let (walk, entries) = (self.walk, self.read(folder)?);
        let rules = match (walk.choice.gitignore, folder.left_out) {
            (true, None) => Rules::of(&walk.ground, folder.path(), &entries, rules),
            _ => Arc::clone(rules),
        };
        let (mut here, mut ahead, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for (name, kind) in entries {
            let mut spot = folder.child(&name, kind);
            let is_entered = kind == EntryKind::Folder && walk.choice.may_enter(spot.depth);
            match walk.choice.fate(&spot, &name, &rules) {
                Fate::Excluded => {}
                Fate::Visited if is_entered => ahead.push(Work::Enter(spot, Arc::clone(&rules))),
                Fate::Visited => here.push(spot),
                Fate::LeftOut(why) => {
                    spot.left_out = Some(why);
                    left_out.push(if is_entered {
                        Work::Enter(spot, Arc::clone(&rules))
                    } else {
                        Work::Visit(vec![spot])
                    });
                }
            }
        }
        let others = here.split_off(here.len().min(PORTION));
        walk.queue.add_later(left_out);
        walk.queue.add(portions(others).into_iter().chain(ahead));
        self.visit_all(&here);
        Ok(())
    }

    /// A folder's entries, by name, so that the walk goes roughly in the order of paths.
    fn read(&mut self, folder: &Spot) -> Result<Vec<(Vec<u8>, EntryKind)>, Errno> {
        let fd = self.walk.ground.open(folder.path(), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        each_entry(&fd, &mut self.names, |name, kind| entries.push((name.to_vec(), kind)))?;
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(entries)
    }
}

/// Tells the name and kind of everything in an open folder.
pub(crate) fn each_entry(
    folder: &OwnedFd,
    room: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(&[u8], EntryKind),
) -> Result<(), Errno> {
    let mut names = RawDir::new(folder, room);
    while let Some(entry) = names.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Link,
            FileType::Unknown => match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
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
fn portions(spots: Vec<Spot>) -> Vec<Work> {
    let mut spots = spots.into_iter();
    let portion = || {
        let portion: Vec<Spot> = spots.by_ref().take(PORTION).collect();
        (!portion.is_empty()).then_some(Work::Visit(portion))
    };
    std::iter::from_fn(portion).collect()
}

/// Touches a spot, starting from the root.
struct At<'a> {
    ground: &'a Ground<'a>,
    spot: &'a Spot,
}

impl Handle for At<'_> {
    fn open(&self) -> Result<File, ToolError> {
        let place = &self.spot.place;
        let fd = self.ground.open_file(self.spot.path()).map_err(|error| refusal(place, error))?;
        regular_file(fd, place).map(|opened| opened.file)
    }

    fn facts(&self) -> Option<Facts> {
        let (parent, name) = split(self.spot.path());
        let parent = self.ground.open(parent, OFlags::PATH | OFlags::DIRECTORY).ok()?;
        let stat = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let modified = (stat.st_mtime as i64).saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64);
        Some(Facts { size: stat.st_size as u64, modified })
    }
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// A path's folder and its last name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}
