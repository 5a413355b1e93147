//! Handing a system-call filter to the kernel.

use rustix::io::Errno;

use super::checked;

/// One instruction of a filter, as the kernel lays it out.
pub(crate) type BpfInstruction = libc::sock_filter;

/// Puts the filter on this process and all that it starts. It can't be taken off.
pub(crate) fn install(program: &[BpfInstruction]) -> Result<(), Errno> {
    let length = program.len().try_into().map_err(|_| Errno::TOOBIG)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies `len` instructions from `filter`, which lives during the call, and checks them.
    let answer = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0 as libc::c_ulong, &raw const program)
    };
    checked(answer)?;
    Ok(())
}
