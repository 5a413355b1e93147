//! Lists a directory, unless its modification time proves that it has the same names as before.

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use toolgate_contract::{DirectoryScan, DirectoryStamp, EntryKind, escape_path};

use crate::files::openat2;
use crate::files::openat2::OpenMethod;
use crate::files::walk::{NAMES, each_entry};

/// `f_type` of ZFS, which isn't in `linux/magic.h` (OpenZFS: `sys/zfs_vfsops_os.h`).
const ZFS_SUPER_MAGIC: u32 = 0x2fc1_2fc1;

/// File systems that set the modification time of a directory, by this machine's clock, whenever an entry is added, removed or
/// renamed. Others may be written to from elsewhere.
const KEEPS_TIME: [u32; 8] = [
    libc::EXT4_SUPER_MAGIC as u32,
    libc::XFS_SUPER_MAGIC as u32,
    libc::BTRFS_SUPER_MAGIC as u32,
    libc::TMPFS_MAGIC as u32,
    libc::OVERLAYFS_SUPER_MAGIC as u32,
    libc::F2FS_SUPER_MAGIC as u32,
    libc::BCACHEFS_SUPER_MAGIC as u32,
    ZFS_SUPER_MAGIC,
];

/// A directory that was changed less than this many seconds ago has no mark: another change could get the same time. No file
/// system above has coarser timestamps.
const SETTLED_AFTER: i64 = 3;

/// Lists the name and type of everything in the directory at `path`, unless it still has this mark.
pub(crate) fn look(
    method: OpenMethod,
    root: BorrowedFd<'_>,
    path: &[u8],
    known: Option<&DirectoryStamp>,
    each: &mut dyn FnMut(&str, EntryKind),
) -> Result<DirectoryScan, Errno> {
    if known.is_some() && known == marked(root, path).as_ref() {
        return Ok(DirectoryScan::Unchanged);
    }
    let directory = match openat2::open(method, root, path, OFlags::RDONLY | OFlags::DIRECTORY) {
        // Removed or replaced since its parent was listed.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_empty() => return Ok(DirectoryScan::Absent),
        Err(Errno::ACCESS) if !path.is_empty() => {
            return Ok(if is_within_reach(root, path) { DirectoryScan::Closed } else { DirectoryScan::Absent });
        }
        other => other?,
    };
    // Taken before the directory is read: a later change gives it a later time than its mark.
    let now = clock_gettime(ClockId::RealtimeCoarse).tv_sec;
    let found = rustix::fs::fstat(&directory)?;
    if !path.is_empty() && keeps_owner_out(&found) {
        return Ok(DirectoryScan::Closed);
    }
    let mark = mark(&found);
    let is_reliable = mark.changed.0 < now - SETTLED_AFTER && keeps_time(&directory);
    let mut buffer = vec![MaybeUninit::uninit(); NAMES];
    each_entry(&directory, &mut buffer, |name, kind| each(&escape_path(name), kind))?;
    Ok(DirectoryScan::Scanned(is_reliable.then_some(mark)))
}

/// Whether a directory of ours can be listed but not entered: a command could change its mode, and reach what we can't see.
fn keeps_owner_out(found: &Stat) -> bool {
    let user = rustix::process::geteuid();
    !user.is_root() && found.st_uid == user.as_raw() && found.st_mode & Mode::XUSR.as_raw_mode() == 0
}

/// Whether a command of this user could access something in a directory that we can't list: by name, or after a `chmod`.
fn is_within_reach(root: BorrowedFd<'_>, path: &[u8]) -> bool {
    let is_ours = |found: Stat| found.st_uid == rustix::process::geteuid().as_raw();
    rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_ours)
        || rustix::fs::accessat(root, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// The mark of the directory at a path. A symlink that is put there this moment could only lead to one with another mark.
fn marked(root: BorrowedFd<'_>, path: &[u8]) -> Option<DirectoryStamp> {
    let path = if path.is_empty() { b"." } else { path };
    let found = rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    FileType::from_raw_mode(found.st_mode).is_dir().then(|| mark(&found))
}

fn mark(found: &Stat) -> DirectoryStamp {
    let changed = (found.st_ctime, found.st_ctime_nsec as i64);
    DirectoryStamp { device: found.st_dev, inode: found.st_ino, changed }
}

/// Whether only this machine changes the directory's file system, and says so by times and events.
pub(crate) fn keeps_time(directory: &OwnedFd) -> bool {
    rustix::fs::fstatfs(directory).is_ok_and(|system| KEEPS_TIME.contains(&(system.f_type as u32)))
}
