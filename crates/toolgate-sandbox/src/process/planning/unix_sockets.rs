//! The host's Unix sockets. A read-only mount doesn't stop anybody from connecting to one, and most kernels can't be asked
//! to; so each that can be seen is hidden.

use std::path::Path;

use super::super::plan::{PinnedPath, TmpfsMount};
use super::{find, path_of};

/// Every socket with a path that isn't covered anyway.
pub(super) fn of_host(covered: &[TmpfsMount], writable: &[PinnedPath]) -> Vec<PinnedPath> {
    let table = sockets_of_machine().unwrap_or_default();
    let paths = table.lines().filter_map(|line| line.find(" /").map(|at| Path::new(&line[at + 1..])));
    let can_be_seen = |path: &&Path| {
        let inside =
            |outer: &std::ffi::CString| path.starts_with(Path::new(std::ffi::OsStr::new(&*outer.to_string_lossy())));
        writable.iter().any(|root| path.starts_with(path_of(root))) || !covered.iter().any(|cover| inside(&cover.path))
    };
    paths.filter(can_be_seen).filter_map(find).filter(|place| !place.directory).collect()
}

/// The kernel's list. It writes it anew for every read, so it is read in large pieces.
fn sockets_of_machine() -> std::io::Result<String> {
    let mut bytes = Vec::with_capacity(64 * 1024);
    std::io::Read::read_to_end(&mut std::fs::File::open("/proc/net/unix")?, &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
