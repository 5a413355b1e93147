//! Notices changes in directories by inotify. The kernel puts an event into the queue before the call that made the change
//! returns, so whoever asks afterwards sees it.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;
use toolgate_contract::{TreeWatch, WorkspacePath};

use crate::files::openat2;
use crate::files::openat2::OpenMethod;
use crate::files::read_directory::keeps_time;

/// Bytes of the buffer that events are read into.
const EVENT_BUFFER_BYTES: usize = 16 * 1024;

/// Everything that changes an entry or its content. Opening and reading aren't changes.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The watched directories of some roots.
pub(crate) struct DirectoryWatch {
    method: OpenMethod,
    roots: Vec<OwnedFd>,
    queue: OwnedFd,
    /// Whether the queue couldn't be read: then anything may have changed.
    is_broken: AtomicBool,
}

impl DirectoryWatch {
    pub(crate) fn new(method: OpenMethod, roots: Vec<OwnedFd>) -> Result<Self, Errno> {
        let queue = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self { method, roots, queue, is_broken: AtomicBool::new(false) })
    }

    fn open(&self, directory: &WorkspacePath) -> Result<OwnedFd, Errno> {
        let root = self.roots.get(directory.root).ok_or(Errno::BADF)?;
        openat2::open(self.method, root.as_fd(), &directory.bytes(), OFlags::PATH | OFlags::DIRECTORY)
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
        // By its descriptor, so that no link on the way is followed. A file system that is written to from elsewhere says
        // nothing of that.
        let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
        keeps_time(&opened) && add_watch(&self.queue, path, CHANGES).is_ok()
    }

    fn has_changes(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); EVENT_BUFFER_BYTES];
        let mut events = Reader::new(&self.queue, &mut buffer);
        let mut found = self.is_broken.load(Ordering::Relaxed);
        loop {
            match events.next() {
                // A watch that ends with its directory was told of before; an overflow is a change of anything.
                Ok(event) => found |= event.events() != ReadFlags::IGNORED,
                Err(Errno::AGAIN) => return found,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.is_broken.store(true, Ordering::Relaxed);
                    return true;
                }
            }
        }
    }
}
