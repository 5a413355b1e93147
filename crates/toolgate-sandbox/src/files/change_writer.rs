//! Writes many files, symlinks, directories and pipes, one after the other. First, what has to go is removed, deepest first.
//! Then new content is written, outermost first, and renamed into place when all of it is on disk. Directories get their modes
//! last, so that a read-only one can still be filled. Everything starts at a root's descriptor and follows no symlink.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use toolgate_contract::{Change, ChangeSource, FileState, PIPE_MODE, WorkspacePath, unescape_path};

use crate::files::atomic_write::{FailedChange, new_name};
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
    let mut order: Vec<usize> = (0..changes.len()).collect();
    order.sort_by(|one, other| changes[*one].place.cmp(&changes[*other].place));
    let failed = |index| move |error| FailedChange { index, error };
    for &index in order.iter().rev().filter(|index| needs_removal(&changes[**index])) {
        writer.remove(index).map_err(failed(index))?;
    }
    for &index in order.iter().filter(|index| changes[**index].after.is_some()) {
        writer.write_out(index).map_err(failed(index))?;
    }
    writer.flush.finish().map_err(failed(0))?;
    for &index in order.iter().filter(|index| changes[**index].after.is_some()) {
        writer.place(index).map_err(failed(index))?;
    }
    for &index in order.iter().rev() {
        writer.finish(index).map_err(failed(index))?;
    }
    writer.tighten();
    Ok(())
}

/// Whether the old side has to be removed first: for good, or because a directory can't be replaced by a rename.
fn needs_removal(change: &Change) -> bool {
    let is_directory = |state: &Option<FileState>| state.as_ref().is_some_and(FileState::is_directory);
    change.before.is_some() && (change.after.is_none() || is_directory(&change.before) != is_directory(&change.after))
}

/// Whether only the mode changes.
fn has_same_content(change: &Change) -> bool {
    change.before.as_ref().zip(change.after.as_ref()).is_some_and(|(before, after)| before.is(after))
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
    loosened: Vec<(OwnedFd, String, Mode)>,
}

impl ChangeWriter<'_> {
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
            () if has_same_content(change) && !after.is_link() => Ok(()),
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
            () if has_same_content(change) && !after.is_link() => set_mode(parent, name, after.permissions()),
            () if after.kind() == PIPE_MODE => make_pipe(parent, name, &temporary, after.permissions()),
            () => source.put(change, parent, name, &temporary).map_err(|error| errno(&error)),
        })
    }

    /// Sets the modes of directories, deepest first.
    fn finish(&mut self, index: usize) -> Result<(), Errno> {
        let change = &self.changes[index];
        let Some(after) = change.after.as_ref().filter(|after| after.is_directory()) else { return Ok(()) };
        let source = self.source;
        self.in_parent(index, |parent, name| {
            set_mode(parent, name, after.permissions())?;
            source.finish(change, parent, name);
            Ok(())
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
            self.parent = Some((directory, opened));
        }
        let Some((_, parent)) = &self.parent else { return Err(Errno::NOENT) };
        match act(parent.as_fd(), name) {
            Err(Errno::ACCESS) => {}
            other => return other,
        }
        let mode = Mode::from_raw_mode(rustix::fs::fstat(parent)?.st_mode & 0o7777);
        rustix::fs::chmodat(parent, ".", mode | Mode::RWXU, AtFlags::empty())?;
        self.loosened.push((parent.try_clone().map_err(|error| errno(&error))?, ".".into(), mode));
        act(parent.as_fd(), name)
    }

    /// Restores the modes of directories that still exist.
    fn tighten(&self) {
        let gone = |directory: &OwnedFd| rustix::fs::fstat(directory).is_ok_and(|found| found.st_nlink == 0);
        for (directory, name, mode) in self.loosened.iter().filter(|(directory, ..)| !gone(directory)) {
            let _ = rustix::fs::chmodat(directory, name.as_str(), *mode, AtFlags::empty());
        }
    }
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

fn make_pipe(parent: BorrowedFd<'_>, name: &[u8], temporary: &str, permissions: u32) -> Result<(), Errno> {
    rustix::fs::mknodat(parent, temporary, FileType::Fifo, Mode::from_raw_mode(permissions), 0)?;
    set_mode(parent, temporary.as_bytes(), permissions)?;
    rustix::fs::renameat(parent, temporary, parent, name)
}

pub(crate) fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}
