//! The modes of directories in a layer. A command can make directories that keep their owner out; as long as its changes are
//! staged, such a directory is accessible to us, and an extended attribute holds the mode that the command gave it.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::XattrFlags;
use toolgate_contract::DIRECTORY_MODE;

const ATTRIBUTE: &str = "user.toolgate.mode";
const OWNER_ACCESS: u32 = 0o700;

/// The mode of a layer's directory or file as the command left it, with the file type.
pub(super) fn of(path: &Path, found: &Metadata) -> u32 {
    recorded(path).filter(|_| found.is_dir()).unwrap_or(found.mode())
}

/// The mode of a directory that was made accessible.
pub(super) fn recorded(directory: &Path) -> Option<u32> {
    let mut value = [0; 8];
    let length = rustix::fs::lgetxattr(directory, ATTRIBUTE, &mut value).ok()?;
    let permissions = u32::from_str_radix(std::str::from_utf8(value.get(..length)?).ok()?, 8).ok()?;
    Some(DIRECTORY_MODE | permissions & 0o7777)
}

/// Gives the owner access to a layer's directory, and records the mode that it had.
pub(super) fn make_accessible(directory: &Path, found: &Metadata) -> io::Result<()> {
    let permissions = found.mode() & 0o7777;
    if permissions & OWNER_ACCESS == OWNER_ACCESS {
        return Ok(());
    }
    // Attributes of a directory can be set only by who can write to it.
    fs::set_permissions(directory, Permissions::from_mode(permissions | OWNER_ACCESS))?;
    Ok(rustix::fs::lsetxattr(directory, ATTRIBUTE, format!("{permissions:o}").as_bytes(), XattrFlags::empty())?)
}
