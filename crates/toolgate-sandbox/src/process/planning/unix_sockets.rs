//! The host's Unix sockets. A read-only mount doesn't keep a process from connecting to a socket, and most kernels have nothing
//! else that would; so each visible socket is hidden.

use std::path::Path;

use super::super::plan::{PinnedPath, TmpfsMount};
use super::{find, path_of};

/// Every socket with a path that no tmpfs hides anyway.
pub(super) fn of_host(tmpfs_mounts: &[TmpfsMount], roots: &[PinnedPath]) -> Vec<PinnedPath> {
    let table = sockets_of_machine().unwrap_or_default();
    let paths = table.lines().filter_map(|line| line.find(" /").map(|at| Path::new(&line[at + 1..])));
    let can_be_seen = |path: &&Path| {
        let inside =
            |outer: &std::ffi::CString| path.starts_with(Path::new(std::ffi::OsStr::new(&*outer.to_string_lossy())));
        roots.iter().any(|root| path.starts_with(path_of(root)))
            || !tmpfs_mounts.iter().any(|tmpfs| inside(&tmpfs.path))
    };
    paths.filter(can_be_seen).filter_map(find).filter(|place| !place.directory).collect()
}

/// The kernel's list. The kernel generates it anew for every `read`, so the buffer is large.
fn sockets_of_machine() -> std::io::Result<String> {
    let mut bytes = Vec::with_capacity(64 * 1024);
    std::io::Read::read_to_end(&mut std::fs::File::open("/proc/net/unix")?, &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
