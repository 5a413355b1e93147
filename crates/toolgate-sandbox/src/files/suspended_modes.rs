//! Directories whose mode keeps their owner out, and that were made accessible for a moment. They are reported with the mode that
//! they had, so that nobody takes the moment for a change.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};

use parking_lot::Mutex;
use rustix::fs::Mode;
use rustix::io::Errno;
use toolgate_contract::{FileMetadata, FileState, WorkspacePath};

/// The modes of directories that are accessible for now.
#[derive(Debug, Default)]
pub(crate) struct SuspendedModes(Mutex<BTreeMap<WorkspacePath, SuspendedMode>>);

#[derive(Debug)]
struct SuspendedMode {
    /// The permission bits that it had.
    before: u32,
    /// Several calls may need it at once; the last one restores the mode.
    users: usize,
}

impl SuspendedModes {
    /// Makes a directory accessible. The descriptor is of the directory at this path.
    pub(crate) fn suspend(&self, place: &WorkspacePath, directory: &OwnedFd) -> Result<(), Errno> {
        let mut modes = self.0.lock();
        if let Some(known) = modes.get_mut(place) {
            known.users += 1;
            return Ok(());
        }
        let before = rustix::fs::fstat(directory)?.st_mode & 0o7777;
        rustix::fs::chmod(itself(directory), Mode::from_raw_mode(before) | Mode::RWXU)?;
        modes.insert(place.clone(), SuspendedMode { before, users: 1 });
        Ok(())
    }

    /// A change gave a directory another mode meanwhile, which may be the one that makes it accessible: that one stays.
    pub(crate) fn replace(&self, place: &WorkspacePath, mode: u32) {
        if let Some(known) = self.0.lock().get_mut(place) {
            known.before = mode;
        }
    }

    /// Gives a directory its mode back, unless it got another one since.
    pub(crate) fn restore(&self, place: &WorkspacePath, directory: &OwnedFd) {
        let mut modes = self.0.lock();
        let Some(known) = modes.get_mut(place) else { return };
        known.users -= 1;
        if known.users > 0 {
            return;
        }
        let before = Mode::from_raw_mode(known.before);
        let now = rustix::fs::fstat(directory).map(|found| Mode::from_raw_mode(found.st_mode & 0o7777));
        if now == Ok(before | Mode::RWXU) {
            let _ = rustix::fs::chmod(itself(directory), before);
        }
        modes.remove(place);
    }

    /// What is at a path, with the mode that it had.
    pub(crate) fn as_it_was(&self, place: &WorkspacePath, found: FileMetadata) -> FileMetadata {
        if !found.state.is_directory() {
            return found;
        }
        let modes = self.0.lock();
        let suspended = modes.get(place).filter(|known| found.state.permissions() == known.before | 0o700);
        let mode = suspended.map_or(found.state.mode, |known| found.state.kind() | known.before);
        FileMetadata { state: FileState { mode, ..found.state }, ..found }
    }
}

fn itself(directory: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", directory.as_raw_fd())
}
