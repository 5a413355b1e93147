//! File leases: whether a process has a file open for writing. A process that writes through a memory mapping may not update
//! the modification time, but it has the file open for writing, and then the kernel refuses a read lease.

use std::fs::File;
use std::os::fd::AsRawFd;

/// `asm-generic/fcntl.h`: sets the signal that tells of a process which opens the file. `libc` doesn't have it for glibc.
const F_SETSIG: libc::c_int = 10;

/// Whether a process has the file open for writing, or that can't be known. Our `file` is open for reading only.
pub(crate) fn has_writers(file: &File) -> bool {
    // SAFETY: these commands of fcntl take a number, and the descriptor is open for as long as `file` is.
    let set = |command, value: libc::c_int| unsafe { libc::fcntl(file.as_raw_fd(), command, value) } != -1;
    // A process that opens the file while we hold the lease breaks it, and the kernel sends us a signal. The default, SIGIO,
    // would end this program; SIGURG is ignored by default.
    let got_lease = set(F_SETSIG, libc::SIGURG) && set(libc::F_SETLEASE, libc::F_RDLCK);
    if got_lease {
        set(libc::F_SETLEASE, libc::F_UNLCK);
    }
    !got_lease
}
