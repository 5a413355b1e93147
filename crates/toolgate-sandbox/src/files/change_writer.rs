//! Writes many files, symlinks, directories and pipes, one after the other. First, what has to go is removed, deepest first.
//! Then new content is written, outermost first, and renamed into place when all of it is on disk. Directories get their modes
//! last, so that a read-only one can still be filled. Everything starts at a root's descriptor and follows no symlink.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use toolgate_contract::{Change, ChangeSource, FileOwner, FileState, PIPE_MODE, WorkspacePath, unescape_path};

use crate::files::atomic_write::{FailedChange, new_name};
use crate::files::attributes;
use crate::files::fsync::SyncBatch;
use crate::files::openat2;
use crate::files::openat2::OpenMethod;

/// Writes the new side of every change. `roots` gives each change's root.
pub(crate) fn write_changes(
    method: OpenMethod,
    roots: &[BorrowedFd<'_>],
    changes: &[Change],
    source: &dyn ChangeSource,
    id: &str,
) -> Result<(), FailedChange> {
    let flush =
        SyncBatch::of(changes.iter().filter(|change| change.after.as_ref().is_some_and(FileState::is_file)).count());
    let mut writer = ChangeWriter { method, roots, changes, source, id, flush, parent: None, loosened: Vec::new() };
    let written = writer.write();
    writer.tighten();
    written
}

/// Whether the old side has to be removed first: for good, or because a directory can't be replaced by a rename.
fn needs_removal(change: &Change) -> bool {
    let is_directory = |state: &Option<FileState>| state.as_ref().is_some_and(FileState::is_directory);
    change.before.is_some() && (change.after.is_none() || is_directory(&change.before) != is_directory(&change.after))
}

struct ChangeWriter<'a> {
    method: OpenMethod,
    roots: &'a [BorrowedFd<'a>],
    changes: &'a [Change],
    source: &'a dyn ChangeSource,
    id: &'a str,
    flush: SyncBatch,
    /// The directory that was used last, kept open because the next change is often in it.
    parent: Option<(WorkspacePath, OwnedFd)>,
    /// Directories that were made writable meanwhile, and their modes before.
    loosened: Vec<(WorkspacePath, OwnedFd, Mode)>,
}

impl ChangeWriter<'_> {
    fn write(&mut self) -> Result<(), FailedChange> {
        let changes = self.changes;
        let mut order: Vec<usize> = (0..changes.len()).collect();
        order.sort_by(|one, other| changes[*one].place.cmp(&changes[*other].place));
        let failed = |index| move |error| FailedChange { index, error };
        for &index in order.iter().rev().filter(|index| needs_removal(&changes[**index])) {
            self.remove(index).map_err(failed(index))?;
        }
        for &index in order.iter().filter(|index| changes[**index].after.is_some()) {
            self.write_out(index).map_err(failed(index))?;
        }
        self.flush.finish().map_err(failed(0))?;
        for &index in order.iter().filter(|index| changes[**index].after.is_some()) {
            self.place(index).map_err(failed(index))?;
        }
        for &index in order.iter().rev() {
            self.finish(index).map_err(failed(index))?;
        }
        Ok(())
    }

    fn remove(&mut self, index: usize) -> Result<(), Errno> {
        let change = &self.changes[index];
        let directory = change.before.as_ref().is_some_and(FileState::is_directory);
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match self.in_parent(index, |parent, name| rustix::fs::unlinkat(parent, name, flags)) {
            // Another process added something meanwhile: that stays, and so does the directory.
            Err(Errno::NOTEMPTY | Errno::EXIST) if change.after.is_none() => Ok(()),
            other => other,
        }
    }

    /// Creates directories, and writes files under temporary names beside their targets.
    fn write_out(&mut self, index: usize) -> Result<(), Errno> {
        let change = &self.changes[index];
        let Some(after) = &change.after else { return Ok(()) };
        let (source, temporary, mut written) = (self.source, new_name(self.id, index), None);
        self.in_parent(index, |parent, name| match () {
            () if stays(change, after, source, parent, name) => Ok(()),
            // No other user may read it before it has its own mode.
            () if after.is_directory() => rustix::fs::mkdirat(parent, name, Mode::RWXU),
            () if after.kind() == PIPE_MODE => Ok(()),
            () => {
                written = source.write_out(change, parent, &temporary).map_err(|error| errno(&error))?;
                Ok(())
            }
        })?;
        written.map_or(Ok(()), |file| self.flush.add(file))
    }

    fn place(&mut self, index: usize) -> Result<(), Errno> {
        let change = &self.changes[index];
        let Some(after) = &change.after else { return Ok(()) };
        let (source, temporary) = (self.source, new_name(self.id, index));
        self.in_parent(index, |parent, name| match () {
            () if after.is_directory() => Ok(()),
            () if stays(change, after, source, parent, name) => set_metadata(parent, name, after),
            () if after.kind() == PIPE_MODE => make_pipe(parent, name, &temporary, after.permissions()),
            () => source.put(change, parent, name, &temporary).map_err(|error| errno(&error)),
        })
    }

    /// Sets the modes and times of directories, deepest first.
    fn finish(&mut self, index: usize) -> Result<(), Errno> {
        let change = &self.changes[index];
        let Some(after) = change.after.as_ref().filter(|after| after.is_directory()) else { return Ok(()) };
        let source = self.source;
        self.in_parent(index, |parent, name| {
            give_owner(parent, name, after);
            set_mode(parent, name, after.permissions())?;
            source.finish(change, parent, name);
            set_time(parent, name, after)
        })
    }

    /// Does something in the directory of a change's path. A directory of ours that isn't writable is made writable for that
    /// long: the command could have done so, too.
    fn in_parent(
        &mut self,
        index: usize,
        mut act: impl FnMut(BorrowedFd<'_>, &[u8]) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let place = &self.changes[index].place;
        let (directory, name) = place.path.rsplit_once('/').unwrap_or(("", &place.path));
        if name.is_empty() {
            return Err(Errno::ISDIR);
        }
        let name = &*unescape_path(name);
        let directory = WorkspacePath { root: place.root, path: directory.to_owned() };
        if self.parent.as_ref().is_none_or(|(known, _)| *known != directory) {
            let opened =
                openat2::open(self.method, self.roots[index], &directory.bytes(), OFlags::PATH | OFlags::DIRECTORY)?;
            self.parent = Some((directory.clone(), opened));
        }
        let Some((_, parent)) = &self.parent else { return Err(Errno::NOENT) };
        match act(parent.as_fd(), name) {
            Err(Errno::ACCESS) => {}
            other => return other,
        }
        let mode = Mode::from_raw_mode(rustix::fs::fstat(parent)?.st_mode & 0o7777);
        rustix::fs::chmodat(parent, ".", mode | Mode::RWXU, AtFlags::empty())?;
        self.loosened.push((directory, parent.try_clone().map_err(|error| errno(&error))?, mode));
        act(parent.as_fd(), name)
    }

    /// Restores the modes of directories that still exist, apart from those that the change itself gave a mode.
    fn tighten(&self) {
        let is_gone = |directory: &OwnedFd| rustix::fs::fstat(directory).is_ok_and(|found| found.st_nlink == 0);
        let given: BTreeSet<&WorkspacePath> =
            self.changes.iter().filter(|change| change.after.is_some()).map(|change| &change.place).collect();
        for (place, directory, mode) in self.loosened.iter().rev() {
            if !given.contains(place) && !is_gone(directory) {
                let _ = rustix::fs::chmodat(directory, ".", *mode, AtFlags::empty());
            }
        }
    }
}

/// Whether a file stays where it is and only gets other metadata. One with several names doesn't, where the change is of one of
/// them alone.
fn stays(change: &Change, after: &FileState, source: &dyn ChangeSource, parent: BorrowedFd<'_>, name: &[u8]) -> bool {
    let has_other_names = || {
        let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_file() && found.st_nlink > 1)
    };
    let is_replaced = || source.has_files_of_metadata_changes() && has_other_names();
    change.is_metadata_only() && !after.is_link() && !is_replaced()
}

/// Sets permission bits. A symlink that was put there meanwhile isn't followed.
fn set_mode(parent: BorrowedFd<'_>, name: &[u8], permissions: u32) -> Result<(), Errno> {
    let opened = rustix::fs::openat(parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    let itself = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&opened));
    rustix::fs::chmod(itself, Mode::from_raw_mode(permissions))
}

/// Sets the owner, if it isn't the user who runs this process and if we may. `chown` clears the special bits, so the mode is
/// set afterwards.
fn give_owner(parent: BorrowedFd<'_>, name: &[u8], state: &FileState) {
    if let Some(FileOwner { user, group }) = state.owner {
        let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        let _ = rustix::fs::chownat(parent, name, user, group, AtFlags::SYMLINK_NOFOLLOW);
    }
}

/// Sets permission bits, the modification time if it is known, and the owner if we may.
fn set_metadata(parent: BorrowedFd<'_>, name: &[u8], state: &FileState) -> Result<(), Errno> {
    give_owner(parent, name, state);
    set_attributes(parent, name, state)?;
    set_mode(parent, name, state.permissions())?;
    set_time(parent, name, state)
}

/// Sets the attributes of a regular file, if they are known. The mode is set afterwards, since an access control list has the
/// permissions of the group in it.
fn set_attributes(parent: BorrowedFd<'_>, name: &[u8], state: &FileState) -> Result<(), Errno> {
    let Some(wanted) = state.attributes.as_ref().filter(|_| state.is_file()) else { return Ok(()) };
    let opened = rustix::fs::openat(parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if !FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode).is_file() {
        return Err(Errno::LOOP);
    }
    let itself = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&opened));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let readable = rustix::fs::openat(rustix::fs::CWD, &itself, flags, Mode::empty());
    let there = readable.map(attributes::read).unwrap_or_default();
    attributes::write(&itself, wanted, &there)
}

fn set_time(parent: BorrowedFd<'_>, name: &[u8], state: &FileState) -> Result<(), Errno> {
    let Some(modified) = state.modified else { return Ok(()) };
    let omitted = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let modified = Timespec { tv_sec: modified.as_second(), tv_nsec: modified.subsec_nanosecond() as _ };
    let times = Timestamps { last_access: omitted, last_modification: modified };
    rustix::fs::utimensat(parent, name, &times, AtFlags::SYMLINK_NOFOLLOW)
}

fn make_pipe(parent: BorrowedFd<'_>, name: &[u8], temporary: &str, permissions: u32) -> Result<(), Errno> {
    rustix::fs::mknodat(parent, temporary, FileType::Fifo, Mode::from_raw_mode(permissions), 0)?;
    set_mode(parent, temporary.as_bytes(), permissions)?;
    rustix::fs::renameat(parent, temporary, parent, name)
}

pub(crate) fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}
