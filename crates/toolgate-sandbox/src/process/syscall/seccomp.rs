//! `seccomp`: installs a BPF program as system-call filter.

use rustix::io::Errno;

use super::checked;

const NO_FLAGS: libc::c_ulong = 0;

/// One BPF instruction: `struct sock_filter` (`linux/filter.h`).
pub(crate) type BpfInstruction = libc::sock_filter;

/// Installs the filter for this process and all that it starts. It can't be removed.
pub(crate) fn install(program: &[BpfInstruction]) -> Result<(), Errno> {
    let length = program.len().try_into().map_err(|_| Errno::TOOBIG)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies `len` instructions from `filter`, which lives during the call, and checks them.
    let answer =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, NO_FLAGS, &raw const program) };
    checked(answer)?;
    Ok(())
}
