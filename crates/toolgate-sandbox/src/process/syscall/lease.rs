//! Whether somebody has a file open for writing. Through a mapping, a file changes without getting another time of change once
//! its pages are dirty; but who has one has the file open for writing, and then the kernel refuses a lease on it.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Chooses the signal that tells of somebody who opens the file; `libc` has no name for it.
const SET_SIGNAL: libc::c_int = 10;

/// Whether somebody has it open for writing, or that can't be known. The file is open for reading alone.
pub(crate) fn has_writers(file: &File) -> bool {
    // SAFETY: these commands of fcntl take a number, and the descriptor is open for as long as `file` is.
    let set = |command, value: libc::c_int| unsafe { libc::fcntl(file.as_raw_fd(), command, value) } != -1;
    // Whoever opens it in the instant that we hold the lease is announced by a signal: by one that nobody minds, since the
    // usual one would end the program.
    let is_alone = set(SET_SIGNAL, libc::SIGURG) && set(libc::F_SETLEASE, libc::F_RDLCK);
    if is_alone {
        set(libc::F_SETLEASE, libc::F_UNLCK);
    }
    !is_alone
}
