//! Changing files, all or none (C-24). Every new file is written out whole beside its target before the first target is
//! touched; then they are renamed into place. If that fails half-way, what was replaced is put back.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use toolgate_contract::{Content, Edit};

use crate::beneath::{self, OpenWay};

/// A new file's permission bits before the umask.
const USUAL_MODE: u32 = 0o666;
const USUAL_FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// A failure at one place.
pub(crate) struct Failure {
    pub(crate) index: usize,
    pub(crate) error: Errno,
}

/// One edit, written out and ready to take its place.
struct Staged {
    folder: OwnedFd,
    name: String,
    /// The new file's name beside its target; none when the target is to be removed.
    new: Option<String>,
    /// The old file's second name, kept until everything is in place.
    old: Option<String>,
    is_in_place: bool,
}

/// Makes all edits, or none. `roots` gives each edit's root; `id` makes the temporary names unique.
pub(crate) fn apply(way: OpenWay, roots: &[BorrowedFd<'_>], edits: &[Edit], id: &str) -> Result<(), Failure> {
    let mut created = Vec::new();
    let mut staged = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        match stage(way, roots[index], edit, &new_name(id, index), &mut created) {
            Ok(one) => staged.push(one),
            Err(error) => {
                discard(&staged, &created);
                return Err(Failure { index, error });
            }
        }
    }
    for index in 0..staged.len() {
        // The last one needs no way back: nothing can fail after it.
        let needs_way_back = index + 1 < staged.len();
        let second = needs_way_back.then(|| old_name(id, index));
        if let Err(error) = put_in_place(&mut staged[index], second) {
            put_back(&mut staged);
            discard(&staged, &created);
            return Err(Failure { index, error });
        }
    }
    finish(&staged);
    Ok(())
}

/// Writes the new content out beside its target, with everything that belongs to the file it replaces.
fn stage(
    way: OpenWay,
    root: BorrowedFd<'_>,
    edit: &Edit,
    temporary: &str,
    created: &mut Vec<(OwnedFd, String)>,
) -> Result<Staged, Errno> {
    let (parent, name) = edit.place.path.rsplit_once('/').unwrap_or(("", &edit.place.path));
    if name.is_empty() {
        return Err(Errno::ISDIR);
    }
    let folder = open_folder(way, root, parent, edit.after.is_some(), created)?;
    let mut staged = Staged { folder, name: name.to_owned(), new: None, old: None, is_in_place: false };
    let there = rustix::fs::statat(&staged.folder, name, AtFlags::SYMLINK_NOFOLLOW);
    match (&edit.after, there) {
        (_, Ok(stat)) if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() => return Err(Errno::ISDIR),
        (Some(link), _) if link.is_link() => {
            rustix::fs::symlinkat(&*link.bytes, &staged.folder, temporary)?;
            staged.new = Some(temporary.to_owned());
        }
        (Some(content), there) => {
            let replaced = there.ok().filter(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file());
            write_out(&staged, content, replaced.as_ref(), temporary)?;
            staged.new = Some(temporary.to_owned());
        }
        (None, Err(error)) => return Err(error),
        (None, Ok(_)) => {}
    }
    Ok(staged)
}

/// Opens the folder at `path`, making what is missing of it. Each step starts at the folder before.
fn open_folder(
    way: OpenWay,
    root: BorrowedFd<'_>,
    path: &str,
    may_create: bool,
    created: &mut Vec<(OwnedFd, String)>,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    match beneath::open(way, root, path, flags) {
        Err(Errno::NOENT) if may_create => {}
        other => return other,
    }
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parent = open_folder(way, root, parent, true, created)?;
    match rustix::fs::mkdirat(&parent, name, USUAL_FOLDER_MODE) {
        Ok(()) => created.push((parent, name.to_owned())),
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    beneath::open(way, root, path, flags)
}

fn write_out(
    staged: &Staged,
    content: &Content,
    replaced: Option<&rustix::fs::Stat>,
    temporary: &str,
) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let is_anonymous = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(USUAL_MODE);
    // Without a name until it is whole: a process that is killed while it writes leaves nothing behind.
    let (fd, is_named) = match rustix::fs::openat(&staged.folder, ".", is_anonymous, mode) {
        Ok(fd) => (fd, false),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {
            (rustix::fs::openat(&staged.folder, temporary, flags, mode)?, true)
        }
        Err(error) => return Err(error),
    };
    let mut file = File::from(fd);
    let written = fill(&mut file, content, replaced, staged)
        .and_then(|()| if is_named { Ok(()) } else { give_name(&file, &staged.folder, temporary) });
    if written.is_err() && is_named {
        let _ = rustix::fs::unlinkat(&staged.folder, temporary, AtFlags::empty());
    }
    written
}

fn fill(file: &mut File, content: &Content, replaced: Option<&rustix::fs::Stat>, staged: &Staged) -> Result<(), Errno> {
    file.write_all(&content.bytes).map_err(|error| errno(&error))?;
    if let Some(old) = replaced {
        // Only root can give a file away; an ordinary user's new file simply is theirs.
        let _ = rustix::fs::fchown(&*file, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
        copy_attributes(staged, file);
    }
    if let Some(mode) = content.mode.or(replaced.map(|old| old.st_mode & 0o7777)) {
        rustix::fs::fchmod(&*file, Mode::from_raw_mode(mode))?;
    }
    rustix::fs::fsync(&*file)
}

/// Extended attributes (access lists, labels) belong to the path, not to the bytes: the new file keeps them where the
/// file system lets it.
fn copy_attributes(staged: &Staged, new: &File) {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(old) = rustix::fs::openat(&staged.folder, &staged.name, flags, Mode::empty()) else { return };
    let mut names = vec![0; 4096];
    let Ok(length) = rustix::fs::flistxattr(&old, &mut names[..]) else { return };
    for name in names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 65_536];
        if let Ok(length) = rustix::fs::fgetxattr(&old, name, &mut value[..]) {
            let _ = rustix::fs::fsetxattr(new, name, &value[..length], rustix::fs::XattrFlags::empty());
        }
    }
}

fn give_name(file: &File, folder: &OwnedFd, name: &str) -> Result<(), Errno> {
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(rustix::fs::CWD, itself, folder, name, AtFlags::SYMLINK_FOLLOW)
}

/// Where the new content of a change's file waits.
pub(crate) fn new_name(id: &str, index: usize) -> String {
    format!(".toolgate-{id}-{index}")
}

/// Where the old content of a change's file waits.
pub(crate) fn old_name(id: &str, index: usize) -> String {
    format!(".toolgate-{id}-{index}-old")
}

/// Takes its place; `second` is the name that keeps what was there, where a way back is needed.
fn put_in_place(staged: &mut Staged, second: Option<String>) -> Result<(), Errno> {
    let Staged { folder, name, new, old, is_in_place } = staged;
    if let Some(second) = second {
        match rustix::fs::linkat(&*folder, &*name, &*folder, &second, AtFlags::empty()) {
            Ok(()) => *old = Some(second),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    match new {
        Some(new) => rustix::fs::renameat(&*folder, &*new, &*folder, &*name)?,
        None => rustix::fs::unlinkat(&*folder, &*name, AtFlags::empty())?,
    }
    *is_in_place = true;
    Ok(())
}

/// Puts every replaced file back under its name, and takes away what was new.
fn put_back(staged: &mut [Staged]) {
    for Staged { folder, name, old, is_in_place, .. } in staged.iter_mut().rev().filter(|one| one.is_in_place) {
        let _ = match old.take() {
            Some(old) => rustix::fs::renameat(&*folder, old, &*folder, &*name),
            None => rustix::fs::unlinkat(&*folder, &*name, AtFlags::empty()),
        };
        *is_in_place = false;
    }
}

/// Leaves nothing behind of a change that didn't happen.
fn discard(staged: &[Staged], created: &[(OwnedFd, String)]) {
    for one in staged {
        for name in [&one.new, &one.old].into_iter().flatten() {
            let _ = rustix::fs::unlinkat(&one.folder, name, AtFlags::empty());
        }
    }
    for (parent, name) in created.iter().rev() {
        let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
    }
}

/// The change has happened: the second names go, and the folders are made to remember.
fn finish(staged: &[Staged]) {
    for one in staged {
        if let Some(old) = &one.old {
            let _ = rustix::fs::unlinkat(&one.folder, old, AtFlags::empty());
        }
    }
    let mut synced: Vec<(u64, u64)> = Vec::new();
    for one in staged {
        let Ok(stat) = rustix::fs::fstat(&one.folder) else { continue };
        if !synced.contains(&(stat.st_dev, stat.st_ino)) {
            let _ = rustix::fs::fsync(one.folder.as_fd());
            synced.push((stat.st_dev, stat.st_ino));
        }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}
