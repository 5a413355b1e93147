//! What a path is: a file, a symlink, a directory or something else, with the hash of a file's content.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};

use jiff::Timestamp;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, StatxFlags};
use rustix::io::Errno;
use toolgate_contract::{
    EntryKind, EntryStatus, FileMetadata, FileOwner, FileState, LINK_MODE, escape_path, sha256, sha256_of,
};

use crate::files::attributes;
use crate::files::sparse_reader::SparseReader;

/// Examines a name in a directory; none if it doesn't exist.
pub(crate) fn look(directory: BorrowedFd<'_>, name: &[u8], hashed: bool) -> Result<Option<FileMetadata>, Errno> {
    let found = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        other => other?,
    };
    let file = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile if hashed => Some(open(directory, name)?),
        _ => None,
    };
    let sha256 = match (&file, FileType::from_raw_mode(found.st_mode)) {
        (Some(file), _) => {
            sha256_of(SparseReader::new(file)).map_err(|error| crate::files::change_writer::errno(&error))?.0
        }
        (None, FileType::Symlink) => sha256(rustix::fs::readlinkat(directory, name, Vec::new())?.into_bytes()),
        (None, _) => sha256(""),
    };
    Ok(Some(FileMetadata {
        state: FileState {
            modified: modified(&found).filter(|_| FileType::from_raw_mode(found.st_mode).is_file()),
            owner: owner_of(&found),
            ..FileState::new(sha256, size_of(&found), mode_of(&found))
        },
        changed: changed(&found),
        modified: modified(&found).unwrap_or(Timestamp::MAX),
        links: found.st_nlink as u64,
        number: found.st_ino,
        device: found.st_dev,
        attributes: file.as_ref().map(attributes::read).unwrap_or_default(),
        file,
    }))
}

/// What the file system says about a name in a directory, without following a link.
pub(crate) fn status(directory: BorrowedFd<'_>, name: &[u8]) -> Result<EntryStatus, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = rustix::fs::statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, wanted)?;
    let time = |at: rustix::fs::StatxTimestamp| Timestamp::new(at.tv_sec, at.tv_nsec as i32).unwrap_or(Timestamp::MAX);
    let kind = match FileType::from_raw_mode(u32::from(found.stx_mode)) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    };
    let target = match kind {
        EntryKind::Link => Some(rustix::fs::readlinkat(directory, name, Vec::new())?.into_bytes()),
        _ => None,
    };
    Ok(EntryStatus {
        kind,
        size: found.stx_size,
        mode: u32::from(found.stx_mode) & 0o7777,
        owner: FileOwner { user: found.stx_uid, group: found.stx_gid },
        links: u64::from(found.stx_nlink),
        modified: time(found.stx_mtime),
        accessed: time(found.stx_atime),
        changed: time(found.stx_ctime),
        created: StatxFlags::from_bits_retain(found.stx_mask)
            .contains(StatxFlags::BTIME)
            .then(|| time(found.stx_btime)),
        target: target.map(|target| escape_path(&target).into_owned()),
    })
}

/// Opens a file for reading. If a pipe or device has replaced it meanwhile, that doesn't block.
fn open(directory: BorrowedFd<'_>, name: &[u8]) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => crate::files::grant_owner_access::file(directory, name, flags),
        opened => opened.map(|opened: OwnedFd| File::from(opened)),
    }
}

fn size_of(found: &Stat) -> u64 {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile | FileType::Symlink => found.st_size as u64,
        _ => 0,
    }
}

fn modified(found: &Stat) -> Option<Timestamp> {
    Timestamp::new(found.st_mtime, found.st_mtime_nsec as i32).ok()
}

/// The owner, unless it is the user who runs this process.
pub(crate) fn owner_of(found: &Stat) -> Option<FileOwner> {
    let ours = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let owner = FileOwner { user: found.st_uid, group: found.st_gid };
    (ours != (owner.user, owner.group)).then_some(owner)
}

/// The mode as a change records it: the permission bits of a file; of a symlink only its type.
pub(crate) fn mode_of(found: &Stat) -> u32 {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => found.st_mode & 0o7777,
        FileType::Symlink => LINK_MODE,
        _ => found.st_mode,
    }
}

/// The time of the last change of any kind (`ctime`). No program can set it, so no program can hide a change.
pub(crate) fn changed(found: &Stat) -> Timestamp {
    Timestamp::new(found.st_ctime, found.st_ctime_nsec as i32).unwrap_or(Timestamp::MAX)
}
