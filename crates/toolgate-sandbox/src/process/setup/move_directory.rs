//! Moves a directory of an overlay's lower layer entry by entry, since overlayfs doesn't rename it. Each file is renamed, which
//! copies it into the upper layer with its inode number, attributes and open descriptors; only directories are made anew. Where it
//! can't be finished, what was moved goes back. When everything is killed on the way, each file is in one of the two
//! directories.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use super::caller::NamedEntry;
use crate::files::attributes;

const OWNER_ACCESS: u32 = 0o700;

/// Moves a directory to another name in the same mount. What is there must be an empty directory, as for a rename.
pub(super) fn move_directory(old: &NamedEntry, new: &NamedEntry) -> Result<(), Errno> {
    let made = match rustix::fs::mkdirat(&new.directory, &new.name, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(error),
    };
    let top = OpenPair::open(&old.directory, &new.directory, &old.name, &new.name);
    let top = top.and_then(|top| match made || names(&top.new)?.is_empty() {
        true => Ok(top),
        false => Err(Errno::NOTEMPTY),
    });
    let moved = top.and_then(|top| {
        let mut moving = Moving { top: (old, new), open: vec![top], linked: HashMap::new() };
        moving.run().inspect_err(|_| moving.put_back())
    });
    if moved.is_err() && made {
        let _ = rustix::fs::unlinkat(&new.directory, &new.name, AtFlags::REMOVEDIR);
    }
    moved
}

/// A move that isn't finished.
struct Moving<'a> {
    top: (&'a NamedEntry, &'a NamedEntry),
    /// The directories that are being moved, each in the one before.
    open: Vec<OpenPair>,
    /// Files of the lower layer with several names, by inode number: where the first of them is now, in the new directory.
    linked: HashMap<u64, Vec<u8>>,
}

/// A directory at its old and at its new place.
struct OpenPair {
    name: CString,
    old: OwnedFd,
    new: OwnedFd,
    /// What the directory was.
    before: Stat,
    /// Names that are still to be moved.
    left: Vec<CString>,
}

impl OpenPair {
    fn open(old: &OwnedFd, new: &OwnedFd, old_name: &CStr, new_name: &CStr) -> Result<Self, Errno> {
        let before = rustix::fs::statat(old, old_name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mode = before.st_mode & 0o7777;
        if mode & OWNER_ACCESS != OWNER_ACCESS {
            // Renaming a directory needs no access to what is in it; moving its entries does.
            rustix::fs::chmodat(old, old_name, Mode::from_raw_mode(mode | OWNER_ACCESS), AtFlags::empty())?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |at: &OwnedFd, name: &CStr| rustix::fs::openat(at, name, flags, Mode::empty());
        let (old, new) = (open(old, old_name)?, open(new, new_name)?);
        let left = names(&old)?;
        Ok(Self { name: old_name.to_owned(), old, new, before, left })
    }

    /// Gives the new directory what the old one had beside its entries.
    fn finish(&self) -> Result<(), Errno> {
        let _ = rustix::fs::fchown(
            &self.new,
            Some(rustix::fs::Uid::from_raw(self.before.st_uid)),
            Some(rustix::fs::Gid::from_raw(self.before.st_gid)),
        );
        attributes::copy(&self.old, &self.new)?;
        rustix::fs::fchmod(&self.new, Mode::from_raw_mode(self.before.st_mode & 0o7777))?;
        set_times(&self.new, &self.before)
    }
}

impl Moving<'_> {
    fn run(&mut self) -> Result<(), Errno> {
        while let Some(pair) = self.open.last_mut() {
            match pair.left.pop() {
                Some(name) => self.move_entry(&name)?,
                None => self.close()?,
            }
        }
        Ok(())
    }

    /// Moves an entry of the innermost directory. A directory that overlayfs doesn't rename becomes the innermost one.
    fn move_entry(&mut self, name: &CStr) -> Result<(), Errno> {
        let Some(pair) = self.open.last() else { return Ok(()) };
        let found = match rustix::fs::statat(&pair.old, name, AtFlags::SYMLINK_NOFOLLOW) {
            // Somebody else removed it.
            Err(Errno::NOENT) => return Ok(()),
            found => found?,
        };
        let is_directory = FileType::from_raw_mode(found.st_mode).is_dir();
        if !is_directory && found.st_nlink > 1 {
            return self.move_linked(name, found.st_ino);
        }
        match rustix::fs::renameat(&pair.old, name, &pair.new, name) {
            // EACCES: a directory that its owner can't write to can't get another parent.
            Err(Errno::XDEV | Errno::ACCESS) if is_directory => {
                rustix::fs::mkdirat(&pair.new, name, Mode::RWXU)?;
                let inner = OpenPair::open(&pair.old, &pair.new, name, name);
                let inner = inner.inspect_err(|_| {
                    let _ = rustix::fs::unlinkat(&pair.new, name, AtFlags::REMOVEDIR);
                })?;
                self.open.push(inner);
                Ok(())
            }
            other => other,
        }
    }

    /// Moves a file with several names. Copying one into the upper layer breaks the link, so later names are linked again.
    fn move_linked(&mut self, name: &CStr, inode: u64) -> Result<(), Errno> {
        let (Some(pair), Some(top)) = (self.open.last(), self.open.first()) else { return Ok(()) };
        if let Some(first) = self.linked.get(&inode) {
            rustix::fs::linkat(&top.new, first.as_slice(), &pair.new, name, AtFlags::empty())?;
            return rustix::fs::unlinkat(&pair.old, name, AtFlags::empty());
        }
        rustix::fs::renameat(&pair.old, name, &pair.new, name)?;
        let now = rustix::fs::statat(&pair.new, name, AtFlags::SYMLINK_NOFOLLOW)?.st_ino;
        if now != inode {
            let above = self.open.iter().skip(1).flat_map(|pair| [pair.name.to_bytes(), b"/"].concat());
            let path = above.chain(name.to_bytes().iter().copied()).collect();
            self.linked.insert(inode, path);
        }
        Ok(())
    }

    /// Removes the innermost directory at its old place, once it is empty there.
    fn close(&mut self) -> Result<(), Errno> {
        let Some(pair) = self.open.last() else { return Ok(()) };
        pair.finish()?;
        let above = self.open.len().checked_sub(2).map_or(&self.top.0.directory, |above| &self.open[above].old);
        match rustix::fs::unlinkat(above, &pair.name, AtFlags::REMOVEDIR) {
            // Somebody else added an entry meanwhile.
            Err(Errno::NOTEMPTY) => {
                let left = names(&pair.old)?;
                self.open.last_mut().map_or(Ok(()), |pair| {
                    pair.left = left;
                    rustix::fs::fchmod(&pair.new, Mode::RWXU)
                })
            }
            other => {
                other?;
                self.open.pop();
                // The time of the directory above changed with it; that of its copy is set when it is closed.
                Ok(())
            }
        }
    }

    /// Moves everything back, innermost first. New directories are only in the upper layer, and are renamed as a whole.
    fn put_back(&mut self) {
        while let Some(pair) = self.open.pop() {
            for name in names(&pair.new).unwrap_or_default() {
                let _ = rustix::fs::renameat(&pair.new, &name, &pair.old, &name);
            }
            let _ = rustix::fs::fchmod(&pair.old, Mode::from_raw_mode(pair.before.st_mode & 0o7777));
            let _ = set_times(&pair.old, &pair.before);
            if let Some(above) = self.open.last() {
                let _ = rustix::fs::unlinkat(&above.new, &pair.name, AtFlags::REMOVEDIR);
            }
        }
    }
}

/// The names in a directory.
fn names(directory: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            found.push(name);
        }
    }
    Ok(found)
}

fn set_times(directory: &OwnedFd, from: &Stat) -> Result<(), Errno> {
    let time = |seconds, nanoseconds: u64| Timespec { tv_sec: seconds, tv_nsec: nanoseconds as _ };
    let last_access = time(from.st_atime as _, from.st_atime_nsec as _);
    let last_modification = time(from.st_mtime as _, from.st_mtime_nsec as _);
    rustix::fs::futimens(directory, &Timestamps { last_access, last_modification })
}
