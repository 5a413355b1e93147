//! Changes several files, all or none. Every new file is first written beside its target, unless it was written ahead
//! (`unnamed_file`) or is moved; then all are renamed into place. If a rename fails, the files that were replaced are
//! restored.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
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
        let source = MovedFile::of(method, roots, edits, edit);
        match stage(method, roots[index], edit, source, draft, &new_name(id, index), &mut created) {
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

/// The file that an edit moves, where it still is.
struct MovedFile {
    directory: OwnedFd,
    name: Vec<u8>,
    stat: Stat,
}

impl MovedFile {
    /// None if nothing is moved, or if no other edit removes it there: then it is written like any other.
    fn of(method: OpenMethod, roots: &[BorrowedFd<'_>], edits: &[FileEdit], edit: &FileEdit) -> Option<Self> {
        let from = edit.moved_from.as_ref()?;
        let index = edits.iter().position(|other| other.place == *from && other.after.is_none())?;
        let (parent, name) = from.parent_and_name();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = openat2::open(method, roots[index], &parent, flags).ok()?;
        let stat = rustix::fs::statat(&directory, &*name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Self { directory, name: name.into_owned(), stat })
    }

    /// Gives the file itself a second name beside its target. Not if it is the target already, under another name: a
    /// rename between two names of one file does nothing.
    fn link(&self, beside: &OwnedFd, target: Option<&Stat>, temporary: &str) -> Result<(), Errno> {
        let identity = |stat: &Stat| (stat.st_dev, stat.st_ino);
        if target.is_some_and(|target| identity(target) == identity(&self.stat)) {
            return Err(Errno::EXIST);
        }
        self.sync();
        rustix::fs::linkat(&self.directory, &*self.name, beside, temporary, AtFlags::empty())
    }

    /// Somebody may have written the file a moment ago, and it may replace another one. What can't be opened for reading
    /// wasn't written by this user just now.
    fn sync(&self) {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::openat(&self.directory, &*self.name, flags, Mode::empty()) {
            let _ = rustix::fs::fsync(file);
        }
    }

    /// Sets the time of a copy, which was made because the file system can't link the file.
    fn give_time(&self, beside: &OwnedFd, temporary: &str) -> Result<(), Errno> {
        let omitted = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let modified = Timespec { tv_sec: self.stat.st_mtime, tv_nsec: self.stat.st_mtime_nsec as _ };
        let times = Timestamps { last_access: omitted, last_modification: modified };
        rustix::fs::utimensat(beside, temporary, &times, AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// Writes the new content beside its target, with the mode, owner and attributes of the file that it replaces. A file that is
/// moved is linked there.
fn stage(
    method: OpenMethod,
    root: BorrowedFd<'_>,
    edit: &FileEdit,
    source: Option<MovedFile>,
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
    let is_linked =
        || source.as_ref().is_some_and(|moved| moved.link(&staged.directory, there.as_ref().ok(), temporary).is_ok());
    match (&edit.after, there) {
        (_, Ok(stat)) if FileType::from_raw_mode(stat.st_mode).is_dir() => return Err(Errno::ISDIR),
        (Some(_), _) if is_linked() => staged.new = Some(temporary.to_owned()),
        (Some(link), _) if link.is_link() => {
            rustix::fs::symlinkat(&*link.bytes, &staged.directory, temporary)?;
            staged.new = Some(temporary.to_owned());
        }
        (Some(content), there) => {
            let replaced = there.ok().filter(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
            match draft.filter(|draft| replaced.is_some_and(|there| draft.fits(&there))) {
                Some(draft) => staged.held = Some(draft.give_name(&staged.directory, temporary)?),
                None => write_out(&staged, content, source.as_ref(), replaced.as_ref(), temporary)?,
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
    source: Option<&MovedFile>,
    replaced: Option<&Stat>,
    temporary: &str,
) -> Result<(), Errno> {
    let StagedEdit { directory, name, .. } = staged;
    // Owner and attributes are those of the file that is moved, or else of the one that is replaced.
    let like = source.map_or((replaced, directory, name), |moved| (Some(&moved.stat), &moved.directory, &moved.name));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // The file has no name until it is complete: a process that is killed leaves nothing behind.
    let (mut file, is_named) = match unnamed_file::create_unnamed(directory) {
        Ok(file) => (file, false),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {
            (rustix::fs::openat(directory, temporary, flags, unnamed_file::USUAL_MODE).map(File::from)?, true)
        }
        Err(error) => return Err(error),
    };
    let written = unnamed_file::fill(&mut file, content, like.0, like.1, like.2)
        .and_then(|()| if is_named { Ok(()) } else { unnamed_file::give_name(&file, directory, temporary) })
        .and_then(|()| source.map_or(Ok(()), |moved| moved.give_time(directory, temporary)));
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
