//! The host's Unix sockets. A read-only mount doesn't keep a process from connecting to a socket, and most kernels have nothing
//! else that would; so each visible socket is hidden.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::plan::{PinnedPath, TmpfsMount};
use super::path_lookup::PathLookup;
use super::path_of;

/// Every socket with a path that a command can see: in what was granted, or else in what can be read and no tmpfs hides.
pub(super) fn of_host<'a>(
    lookup: &PathLookup,
    tmpfs_mounts: &[TmpfsMount],
    granted: impl Iterator<Item = &'a PinnedPath>,
    only: Option<&[PinnedPath]>,
) -> Vec<PinnedPath> {
    let granted: Vec<PathBuf> = granted.map(path_of).collect();
    let readable: Option<Vec<PathBuf>> = only.map(|only| only.iter().map(path_of).collect());
    let hidden: Vec<PathBuf> =
        tmpfs_mounts.iter().map(|tmpfs| PathBuf::from(OsStr::from_bytes(tmpfs.path.to_bytes()))).collect();
    let lies_in = |places: &[PathBuf], path: &Path| places.iter().any(|place| path.starts_with(place));
    let can_be_seen = |path: &&Path| {
        lies_in(&granted, path)
            || readable.as_ref().is_none_or(|readable| lies_in(readable, path)) && !lies_in(&hidden, path)
    };
    let table = sockets_of_machine().unwrap_or_default();
    let paths = table.lines().filter_map(|line| line.find(" /").map(|at| Path::new(&line[at + 1..])));
    paths.filter(can_be_seen).filter_map(|path| lookup.find(path)).filter(|place| !place.directory).collect()
}

/// The kernel's list. The kernel generates it anew for every `read`, so the buffer is large.
fn sockets_of_machine() -> std::io::Result<String> {
    let mut bytes = Vec::with_capacity(64 * 1024);
    std::io::Read::read_to_end(&mut std::fs::File::open("/proc/net/unix")?, &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
