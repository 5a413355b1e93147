//! Gives the owner access to files and directories that only their mode bits deny to us. A command can remove its own
//! permissions, and what it wrote there has to be found all the same.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::files::openat2;
use crate::files::openat2::OpenMethod;
use crate::files::walk::{NAMES, each_entry};

/// Makes every directory beneath a root readable that we own and can't read, apart from these paths. The new modes stay.
pub(crate) fn directories(
    method: OpenMethod,
    root: BorrowedFd<'_>,
    except: &BTreeSet<Cow<'_, [u8]>>,
) -> Result<(), Errno> {
    let mut left: Vec<Vec<u8>> = vec![Vec::new()];
    let mut buffer = vec![MaybeUninit::uninit(); NAMES];
    while let Some(path) = left.pop() {
        let open = || openat2::open(method, root, &path, OFlags::RDONLY | OFlags::DIRECTORY);
        let directory = match open() {
            Err(Errno::ACCESS) => {
                let closed = openat2::open(method, root, &path, OFlags::PATH | OFlags::DIRECTORY);
                closed.and_then(|closed| allow(&closed, Mode::RWXU)).and_then(|_| open())
            }
            other => other,
        };
        // Another user owns it, or it has gone.
        let Ok(directory) = directory else { continue };
        each_entry(&directory, &mut buffer, |name, kind| {
            let inner = if path.is_empty() { name.to_vec() } else { [&path[..], b"/", name].concat() };
            if kind == toolgate_contract::EntryKind::Directory && !except.contains(&inner[..]) {
                left.push(inner);
            }
        })?;
    }
    Ok(())
}

/// Opens a file for reading that we own and can't read. Its mode is restored at once.
pub(crate) fn file(directory: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<File, Errno> {
    let closed = rustix::fs::openat(directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if !FileType::from_raw_mode(rustix::fs::fstat(&closed)?.st_mode).is_file() {
        return Err(Errno::ACCESS);
    }
    let before = allow(&closed, Mode::RUSR)?;
    let opened = rustix::fs::openat(CWD, itself(&closed), flags - OFlags::NOFOLLOW, Mode::empty());
    rustix::fs::chmod(itself(&closed), before)?;
    opened.map(File::from)
}

/// Adds permissions for the owner, and returns the mode before.
fn allow(closed: &OwnedFd, more: Mode) -> Result<Mode, Errno> {
    let found = rustix::fs::fstat(closed)?;
    let before = Mode::from_raw_mode(found.st_mode & 0o7777);
    rustix::fs::chmod(itself(closed), before | more)?;
    Ok(before)
}

fn itself(handle: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}
