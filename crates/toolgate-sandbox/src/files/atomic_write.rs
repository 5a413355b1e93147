//! Changes several files, all or none. Every new file is first written beside its target, unless it was written ahead
//! (`unnamed_file`); then all are renamed into place. If a rename fails, the files that were replaced are restored.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use toolgate_contract::{FileContent, FileEdit};

use crate::files::openat2;
use crate::files::openat2::OpenMethod;
use crate::files::unnamed_file;
use crate::files::unnamed_file::{ReplacedFile, UnnamedFile, UnnamedFiles};

const USUAL_DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);

/// A failure on one path.
pub(crate) struct FailedChange {
    pub(crate) index: usize,
    pub(crate) error: Errno,
}

/// One edit, written to disk and ready to be renamed.
struct StagedEdit {
    directory: OwnedFd,
    name: Vec<u8>,
    /// The new file's name beside its target; none if the target is removed.
    new: Option<String>,
    /// A second name of the old file, until all renames are done.
    old: Option<String>,
    is_in_place: bool,
    /// The old file, if it is kept open until the change is made.
    held: Option<ReplacedFile>,
}

/// Makes all edits, or none. `roots` gives each edit's root; `id` makes the temporary names unique.
pub(crate) fn apply(
    method: OpenMethod,
    roots: &[BorrowedFd<'_>],
    edits: &[FileEdit],
    mut drafts: UnnamedFiles,
    id: &str,
) -> Result<(), FailedChange> {
    let mut created = Vec::new();
    let mut staged = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let draft = drafts.remove(&index);
        match stage(method, roots[index], edit, draft, &new_name(id, index), &mut created) {
            Ok(one) => staged.push(one),
            Err(error) => {
                discard(&staged, &created);
                return Err(FailedChange { index, error });
            }
        }
    }
    for index in 0..staged.len() {
        // The last edit needs no backup: nothing can fail after it.
        let needs_way_back = index + 1 < staged.len();
        let second = needs_way_back.then(|| old_name(id, index));
        if let Err(error) = put_in_place(&mut staged[index], second) {
            put_back(&mut staged);
            discard(&staged, &created);
            return Err(FailedChange { index, error });
        }
    }
    finish(&staged);
    Ok(())
}

/// Writes the new content beside its target, with the mode, owner and attributes of the file that it replaces.
fn stage(
    method: OpenMethod,
    root: BorrowedFd<'_>,
    edit: &FileEdit,
    draft: Option<UnnamedFile>,
    temporary: &str,
    created: &mut Vec<(OwnedFd, Vec<u8>)>,
) -> Result<StagedEdit, Errno> {
    let (parent, name) = edit.place.parent_and_name();
    if name.is_empty() {
        return Err(Errno::ISDIR);
    }
    let directory = open_directory(method, root, &parent, edit.after.is_some(), created)?;
    let mut staged =
        StagedEdit { directory, name: name.into_owned(), new: None, old: None, is_in_place: false, held: None };
    let there = rustix::fs::statat(&staged.directory, &*staged.name, AtFlags::SYMLINK_NOFOLLOW);
    match (&edit.after, there) {
        (_, Ok(stat)) if FileType::from_raw_mode(stat.st_mode).is_dir() => return Err(Errno::ISDIR),
        (Some(link), _) if link.is_link() => {
            rustix::fs::symlinkat(&*link.bytes, &staged.directory, temporary)?;
            staged.new = Some(temporary.to_owned());
        }
        (Some(content), there) => {
            let replaced = there.ok().filter(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
            match draft.filter(|draft| replaced.is_some_and(|there| draft.fits(&there))) {
                Some(draft) => staged.held = Some(draft.give_name(&staged.directory, temporary)?),
                None => write_out(&staged, content, replaced.as_ref(), temporary)?,
            }
            staged.new = Some(temporary.to_owned());
        }
        (None, Err(error)) => return Err(error),
        (None, Ok(_)) => {}
    }
    Ok(staged)
}

/// Opens the directory at `path`, and creates what is missing. Each step starts at the descriptor of the one before.
fn open_directory(
    method: OpenMethod,
    root: BorrowedFd<'_>,
    path: &[u8],
    may_create: bool,
    created: &mut Vec<(OwnedFd, Vec<u8>)>,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    match openat2::open(method, root, path, flags) {
        Err(Errno::NOENT) if may_create => {}
        other => return other,
    }
    let (parent, name) = openat2::split(path);
    let parent = open_directory(method, root, parent, true, created)?;
    match rustix::fs::mkdirat(&parent, name, USUAL_DIRECTORY_MODE) {
        Ok(()) => created.push((parent, name.to_owned())),
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    openat2::open(method, root, path, flags)
}

fn write_out(
    staged: &StagedEdit,
    content: &FileContent,
    replaced: Option<&Stat>,
    temporary: &str,
) -> Result<(), Errno> {
    let StagedEdit { directory, name, .. } = staged;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // The file has no name until it is complete: a process that is killed leaves nothing behind.
    let (mut file, is_named) = match unnamed_file::create_unnamed(directory) {
        Ok(file) => (file, false),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {
            (rustix::fs::openat(directory, temporary, flags, unnamed_file::USUAL_MODE).map(File::from)?, true)
        }
        Err(error) => return Err(error),
    };
    let written = unnamed_file::fill(&mut file, content, replaced, directory, name)
        .and_then(|()| if is_named { Ok(()) } else { unnamed_file::give_name(&file, directory, temporary) });
    if written.is_err() && is_named {
        let _ = rustix::fs::unlinkat(directory, temporary, AtFlags::empty());
    }
    written
}

/// The temporary name of a file's new content.
pub(crate) fn new_name(id: &str, index: usize) -> String {
    format!(".toolgate-{id}-{index}")
}

/// The temporary name of a file's old content.
pub(crate) fn old_name(id: &str, index: usize) -> String {
    format!(".toolgate-{id}-{index}-old")
}

/// Renames the new file into place. If `second` is given, the old file keeps that name as a backup.
fn put_in_place(staged: &mut StagedEdit, second: Option<String>) -> Result<(), Errno> {
    let StagedEdit { directory, name, new, old, is_in_place, .. } = staged;
    if let Some(second) = second {
        match rustix::fs::linkat(&*directory, &*name, &*directory, &second, AtFlags::empty()) {
            Ok(()) => *old = Some(second),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    match new {
        Some(new) => rustix::fs::renameat(&*directory, &*new, &*directory, &*name)?,
        None => rustix::fs::unlinkat(&*directory, &*name, AtFlags::empty())?,
    }
    *is_in_place = true;
    Ok(())
}

/// Restores every replaced file under its name, and removes new ones.
fn put_back(staged: &mut [StagedEdit]) {
    for StagedEdit { directory, name, old, is_in_place, .. } in staged.iter_mut().rev().filter(|one| one.is_in_place) {
        let _ = match old.take() {
            Some(old) => rustix::fs::renameat(&*directory, old, &*directory, &*name),
            None => rustix::fs::unlinkat(&*directory, &*name, AtFlags::empty()),
        };
        *is_in_place = false;
    }
}

/// Removes the temporary files of a change that wasn't made.
fn discard(staged: &[StagedEdit], created: &[(OwnedFd, Vec<u8>)]) {
    for one in staged {
        for name in [&one.new, &one.old].into_iter().flatten() {
            let _ = rustix::fs::unlinkat(&one.directory, name, AtFlags::empty());
        }
    }
    for (parent, name) in created.iter().rev() {
        let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
    }
}

/// Finishes a change that was made: removes the backups, and syncs the directories.
fn finish(staged: &[StagedEdit]) {
    for one in staged {
        if let Some(old) = &one.old {
            let _ = rustix::fs::unlinkat(&one.directory, old, AtFlags::empty());
        }
    }
    let mut synced: Vec<(u64, u64)> = Vec::new();
    for one in staged {
        let Ok(stat) = rustix::fs::fstat(&one.directory) else { continue };
        if !synced.contains(&(stat.st_dev, stat.st_ino)) {
            let _ = rustix::fs::fsync(one.directory.as_fd());
            synced.push((stat.st_dev, stat.st_ino));
        }
    }
}
