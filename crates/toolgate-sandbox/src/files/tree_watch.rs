//! Notices changes in directories by inotify. The kernel puts an event into the queue before the call that made the change
//! returns, so whoever asks afterwards sees it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::fs::inotify::{CreateFlags, Event, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;
use toolgate_contract::{ChangedDirectories, TreeWatch, WatchedChanges, WorkspacePath};

use crate::files::openat2;
use crate::files::openat2::OpenMethod;
use crate::files::read_directory::keeps_time;

/// Bytes of the buffer that events are read into.
const EVENT_BUFFER_BYTES: usize = 16 * 1024;

/// Directories that are watched at most: the kernel limits them for all programs of a user together.
const MOST_WATCHED: usize = 50_000;

/// The kernel's list of mounts. Polling it tells whether it changed: what is mounted over a directory hides the watched one.
const MOUNTS: &str = "/proc/self/mountinfo";

/// What changes the names in a directory, or which of them can be reached.
const NAMES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// Everything that changes an entry or its content. Opening and reading aren't changes.
const NAMES_AND_CONTENTS: WatchFlags = NAMES.union(WatchFlags::MODIFY).union(WatchFlags::CLOSE_WRITE);

/// The watched directories of some roots.
pub(crate) struct DirectoryWatch {
    method: OpenMethod,
    roots: Vec<OwnedFd>,
    queue: OwnedFd,
    mounts: File,
    of: WatchedChanges,
    state: Mutex<WatchState>,
}

#[derive(Default)]
struct WatchState {
    /// The paths of each watched directory, by watch descriptor. It has several if it is mounted at several places.
    paths: HashMap<i32, Vec<WorkspacePath>>,
    /// Whether the queue couldn't be read: then anything may have changed.
    is_broken: bool,
}

impl DirectoryWatch {
    pub(crate) fn new(method: OpenMethod, roots: Vec<OwnedFd>, of: WatchedChanges) -> std::io::Result<Self> {
        let queue = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let watch = Self { method, roots, queue, mounts: File::open(MOUNTS)?, of, state: Mutex::default() };
        // The first poll reports how the mounts are now.
        watch.has_other_mounts();
        Ok(watch)
    }

    fn open(&self, directory: &WorkspacePath) -> Result<OwnedFd, Errno> {
        let root = self.roots.get(directory.root).ok_or(Errno::BADF)?;
        openat2::open(self.method, root.as_fd(), &directory.bytes(), OFlags::PATH | OFlags::DIRECTORY)
    }

    /// Whether something was mounted or unmounted since this was last asked.
    fn has_other_mounts(&self) -> bool {
        let mut mounts = [PollFd::new(&self.mounts, PollFlags::PRI)];
        match poll(&mut mounts, Some(&Timespec::default())) {
            Ok(_) => mounts[0].revents().intersects(PollFlags::PRI | PollFlags::ERR),
            Err(_) => true,
        }
    }

    /// Whether an event is a change that is watched for.
    fn is_change(&self, event: &Event<'_>) -> bool {
        // Another mode of a directory may let nobody into it; that of a file changes no name.
        let concerns_directory = event.file_name().is_none() || event.events().contains(ReadFlags::ISDIR);
        let is_of_attributes = event.events().difference(ReadFlags::ISDIR) == ReadFlags::ATTRIB;
        self.of == WatchedChanges::NamesAndContents || !is_of_attributes || concerns_directory
    }
}

impl TreeWatch for DirectoryWatch {
    fn add(&self, directory: &WorkspacePath) -> bool {
        let opened = match self.open(directory) {
            Ok(opened) => opened,
            // Gone already; the directory that it was in says so.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return !directory.path.is_empty(),
            Err(_) => return false,
        };
        let flags = match self.of {
            WatchedChanges::Names => NAMES,
            WatchedChanges::NamesAndContents => NAMES_AND_CONTENTS,
        };
        // By its descriptor, so that no link on the way is followed. A file system that is written to from elsewhere says
        // nothing of that.
        let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let mut state = self.state.lock();
        if state.paths.len() >= MOST_WATCHED || !keeps_time(&opened) {
            return false;
        }
        let Ok(descriptor) = add_watch(&self.queue, path, flags) else { return false };
        let paths = state.paths.entry(descriptor).or_default();
        if !paths.contains(directory) {
            paths.push(directory.clone());
        }
        true
    }

    fn changes(&self) -> ChangedDirectories {
        let mut state = self.state.lock();
        let (mut buffer, mut changed) = ([MaybeUninit::uninit(); EVENT_BUFFER_BYTES], HashSet::new());
        let mut events = Reader::new(&self.queue, &mut buffer);
        let mut is_known = !self.has_other_mounts();
        loop {
            match events.next() {
                // The watch ends with its directory, which was told of before.
                Ok(event) if event.events().contains(ReadFlags::IGNORED) => drop(state.paths.remove(&event.wd())),
                Ok(event) if !self.is_change(&event) => {}
                Ok(event) => match state.paths.get(&event.wd()) {
                    Some(paths) => changed.extend(paths.iter().cloned()),
                    // The queue overflowed.
                    None => is_known = false,
                },
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => {
                    state.is_broken = true;
                    break;
                }
            }
        }
        if is_known && !state.is_broken { ChangedDirectories::These(changed) } else { ChangedDirectories::Unknown }
    }
}
