//! What tells one workspace from another: a directory can be moved, copied, or replaced by another one at the same path.

use rustix::fs::{AtFlags, StatxFlags};
use toolgate_contract::sha256;

use crate::directory::DirectoryHandle;
use crate::{JournalError, WorkspaceIdentity};

/// The workspace that has this state directory.
pub(crate) fn workspace_identity(state: &DirectoryHandle) -> Result<WorkspaceIdentity, JournalError> {
    let path = state.path().parent().unwrap_or(state.path()).display().to_string();
    Ok(WorkspaceIdentity { path, directory: directory_identity(state)? })
}

/// A file name by the identity of the workspace's directory.
pub(crate) fn workspace_key(state: &DirectoryHandle) -> Result<String, JournalError> {
    Ok(sha256(&directory_identity(state)?)[..32].to_owned())
}

/// What tells the workspace's directory from every other one. Where the file system doesn't know when a directory was
/// made, its path and device are part of it, since inode numbers are used again.
pub(crate) fn directory_identity(state: &DirectoryHandle) -> Result<String, JournalError> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = rustix::fs::statx(state.fd(), "..", AtFlags::empty(), wanted)
        .map_err(|errno| state.error("couldn't be inspected", "..", errno.into()))?;
    let inode = found.stx_ino;
    Ok(match StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME) {
        true => format!("{inode} born {}.{:09}", found.stx_btime.tv_sec, found.stx_btime.tv_nsec),
        false => {
            let (major, minor, path) = (found.stx_dev_major, found.stx_dev_minor, state.path().display());
            format!("{inode} on {major}:{minor} at {path}")
        }
    })
}
