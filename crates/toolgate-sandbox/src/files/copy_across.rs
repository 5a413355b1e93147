//! Moves a file or symlink to another file system, where it can't be renamed. It is copied under a temporary name first, so
//! that no reader sees half of it.

use std::fs::{self, File};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps};

pub(crate) fn copy(from: &Path, directory: BorrowedFd<'_>, name: &[u8], temporary: &str) -> std::io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    // Without a temporary name of its own, the copy gets one here.
    let temporary = if temporary.as_bytes() == name { format!(".{temporary}-copy") } else { temporary.to_owned() };
    let copied = match found.is_symlink() {
        true => Ok(rustix::fs::symlinkat(fs::read_link(from)?, directory, &*temporary)?),
        false => copy_file(from, &found, directory, &temporary),
    };
    let placed = copied.and_then(|()| Ok(rustix::fs::renameat(directory, &*temporary, directory, name)?));
    if placed.is_err() {
        let _ = rustix::fs::unlinkat(directory, &*temporary, AtFlags::empty());
    }
    placed
}

fn copy_file(from: &Path, found: &fs::Metadata, directory: BorrowedFd<'_>, temporary: &str) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut to = File::from(rustix::fs::openat(directory, temporary, flags, Mode::RUSR | Mode::WUSR)?);
    std::io::copy(&mut File::open(from)?, &mut to)?;
    let _ = std::os::unix::fs::fchown(&to, Some(found.uid()), Some(found.gid()));
    rustix::fs::fchmod(&to, Mode::from_raw_mode(found.mode() & 0o7777))?;
    let time = Timespec { tv_sec: found.mtime(), tv_nsec: found.mtime_nsec() as _ };
    Ok(rustix::fs::futimens(&to, &Timestamps { last_access: time, last_modification: time })?)
}
