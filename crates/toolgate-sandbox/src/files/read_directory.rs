//! Looking into a directory, unless it is known to hold the same names as before.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Access, AtFlags, FileType, OFlags, Stat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use toolgate_contract::{DirectoryScan, DirectoryStamp, EntryKind};

use crate::files::openat2;
use crate::files::openat2::OpenMethod;
use crate::files::walk::{NAMES, each_entry};

/// File systems that give a directory the time of this machine's clock whenever something is added, removed or renamed in it:
/// ext4, XFS, Btrfs, tmpfs, overlayfs, F2FS, ZFS and bcachefs. Others may be written to from elsewhere.
const KEEPS_TIME: [u32; 8] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e];

/// A directory that was changed less than this many seconds ago has no mark: another change could have the same time. No file
/// system that keeps time counts in larger steps.
const SETTLED_AFTER: i64 = 3;

/// Tells the name and kind of everything in the directory at `path`, unless it still has this mark.
pub(crate) fn look(
    way: OpenMethod,
    root: BorrowedFd<'_>,
    path: &[u8],
    known: Option<&DirectoryStamp>,
    each: &mut dyn FnMut(&OsStr, EntryKind),
) -> Result<DirectoryScan, Errno> {
    if known.is_some() && known == marked(root, path).as_ref() {
        return Ok(DirectoryScan::AsBefore);
    }
    let directory = match openat2::open(way, root, path, OFlags::RDONLY | OFlags::DIRECTORY) {
        // Gone or swapped since its parent was looked into.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_empty() => return Ok(DirectoryScan::Nothing),
        Err(Errno::ACCESS) if !path.is_empty() => {
            return Ok(if is_within_reach(root, path) { DirectoryScan::Closed } else { DirectoryScan::Nothing });
        }
        other => other?,
    };
    // Before it is read: what is changed from here on gives it a later time than its mark.
    let now = clock_gettime(ClockId::RealtimeCoarse).tv_sec;
    let mark = mark(&rustix::fs::fstat(&directory)?);
    let is_reliable = mark.changed.0 < now - SETTLED_AFTER && keeps_time(&directory);
    let mut room = vec![MaybeUninit::uninit(); NAMES];
    each_entry(&directory, &mut room, |name, kind| each(OsStr::from_bytes(name), kind))?;
    Ok(DirectoryScan::Anew(is_reliable.then_some(mark)))
}

/// Whether a command of this user could get at something in a directory that we can't list: by name, or by opening it first.
fn is_within_reach(root: BorrowedFd<'_>, path: &[u8]) -> bool {
    let is_ours = |found: Stat| found.st_uid == rustix::process::geteuid().as_raw();
    rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_ours)
        || rustix::fs::accessat(root, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// The mark of the directory at a path. A link on the way, put there this very moment, could only lead to one with another mark.
fn marked(root: BorrowedFd<'_>, path: &[u8]) -> Option<DirectoryStamp> {
    let path = if path.is_empty() { b"." } else { path };
    let found = rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    FileType::from_raw_mode(found.st_mode).is_dir().then(|| mark(&found))
}

fn mark(found: &Stat) -> DirectoryStamp {
    let changed = (found.st_ctime, found.st_ctime_nsec as i64);
    DirectoryStamp { device: found.st_dev, inode: found.st_ino, changed }
}

fn keeps_time(directory: &OwnedFd) -> bool {
    rustix::fs::fstatfs(directory).is_ok_and(|system| KEEPS_TIME.contains(&(system.f_type as u32)))
}
